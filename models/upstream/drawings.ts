/** The page that shows every defect of the original with its shortest counterexample, drawn. */
import { check } from "../../src/checker/mod.ts";
import { stepsOfTrace, toSequenceMermaid, toSequenceText } from "../../src/charts/mod.ts";
import { type UpstreamDefect, upstreamDefects } from "./mod.ts";

/** Markdown: what goes wrong, the shortest run as text and as Mermaid, and what ours does instead. */
export function upstreamPage(): string {
  const parts = [
    "# What the original gets wrong, in as few steps as possible",
    "",
    "Each section is a model of the original's rules in this folder, and the shortest run that breaks the property.",
    "This page is generated (`npm run upstream`); a test fails when it is stale.",
  ];
  for (const defect of upstreamDefects) parts.push("", ...section(defect));
  return `${parts.join("\n")}\n`;
}

function section(defect: UpstreamDefect): string[] {
  const { name, number, what, ours, model, property } = defect;
  const { violations, states } = check(model);
  const trace = violations.find((v) => v.property === property)?.trace;
  if (trace === undefined) throw new Error(`${name}: the property "${property}" holds`);
  const steps = stepsOfTrace(trace);
  return [
    `## ${name}`,
    "",
    what,
    "",
    `Defect ${number} of the wire specification's list. Broken: *${property}*, after ${trace.steps.length} steps${
      trace.loop === undefined
        ? ""
        : trace.loop === trace.steps.length
        ? ", and there it stays"
        : ", and round for ever"
    } (${states} states searched).`,
    "",
    "```text",
    toSequenceText(steps).trimEnd(),
    "```",
    "",
    "```mermaid",
    toSequenceMermaid(steps).trimEnd(),
    "```",
    "",
    `**Ours:** ${ours}`,
  ];
}
