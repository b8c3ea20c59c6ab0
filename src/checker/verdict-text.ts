/** A verdict in words: what was explored, what was found, and what that does not say. */
import type { Verdict } from "./check.ts";
import type { Trace } from "./trace.ts";
import { counted } from "./words.ts";

/** The whole verdict as lines of text. */
export function verdictText(verdict: Verdict): string {
  const lines = [headline(verdict), ""];
  const row = (name: string, text: string) => lines.push(`  ${name.padEnd(12)}${text}`);
  const what = verdict.symmetric ? "orbits of states" : "distinct states";
  row(
    "explored",
    `${count(verdict.states)} ${what}, ${verdict.order}, ${
      verdict.fingerprints
        ? "remembered by 64 bits each"
        : `stored exactly in ${verdict.bits} bits each`
    }`,
  );
  row(
    "generated",
    `${count(verdict.generated)} steps; ${count(verdict.stutters)} that change nothing left out`,
  );
  row("depth", counted(verdict.depth, "step"));
  row(
    "frontier",
    verdict.frontier === 0
      ? "empty: nothing was left out"
      : `${counted(verdict.frontier, "state")} found, but not left`,
  );
  row("bounds", boundsText(verdict));
  row("collisions", collisionsText(verdict));
  row(
    "took",
    `${verdict.seconds.toFixed(2)} s, ${(verdict.bytes / 2 ** 20).toFixed(0)} MiB of tables, ${
      count(Math.round(verdict.states / Math.max(verdict.seconds, 1e-3)))
    } states a second`,
  );
  for (const { property, trace } of verdict.witnesses) {
    row("witness", `${property}: after ${steps(trace)}`);
  }
  for (const { chart, event, error } of verdict.threw.slice(0, 5)) {
    row("threw", `${chart} on ${event}: ${short(error)} (its state stays)`);
  }
  for (const { component, values, member } of verdict.growth) {
    const most = member === undefined
      ? ""
      : `; of its context, ${member.name} took ${count(member.values)}`;
    row("grows", `${component} took ${count(values)} values${most}`);
  }
  for (const { property, kind, trace } of verdict.violations) {
    lines.push("", `${kind} violated: ${property}`);
    if (trace === undefined) lines.push("  no reachable state satisfies it");
    else lines.push(traceText(trace));
  }
  lines.push("", "  What this does not say:", ...verdict.notSaid.map((line) => `  - ${line}`));
  return lines.join("\n");
}

/** A run, one line a step, with what each step changed. */
export function traceText(trace: Trace, options: { readonly changes?: boolean } = {}): string {
  const lines: string[] = [];
  for (const step of trace.steps) {
    if (trace.loop === step.index - 1) lines.push("  -- from here for ever --");
    lines.push(`  ${String(step.index).padStart(3)}  ${step.action.label}`);
    if (options.changes === false) continue;
    for (const { component, before, after } of step.changes) {
      lines.push(`         ${component}: ${difference(before, after)}`);
    }
  }
  if (trace.loop === trace.steps.length) lines.push("  -- and here it stays --");
  return lines.join("\n");
}

function headline(verdict: Verdict): string {
  const { outcome, model, violations, properties, inconclusive, stoppedBy } = verdict;
  switch (outcome) {
    case "ok":
      return `ok: ${model}: ${properties} properties hold in every run`;
    case "violated":
      return `violated: ${model}: ${violations.map((v) => v.property).join("; ")}`;
    case "inconclusive":
      return `inconclusive: ${model}: nothing was found ${
        stoppedBy === "interrupted" || stoppedBy === "memory"
          ? "until the search was ended"
          : "within the bounds"
      }${
        inconclusive.length === 0
          ? ""
          : `, and nothing can be said about: ${inconclusive.join("; ")}`
      }`;
  }
}

function boundsText({ bounds, stoppedBy }: Verdict): string {
  const parts: string[] = [];
  if (bounds.states !== undefined) parts.push(`${count(bounds.states)} states`);
  if (bounds.depth !== undefined) parts.push(`${bounds.depth} steps`);
  if (bounds.within) parts.push("the model's own");
  const text = parts.length === 0 ? "none but the model's budgets" : parts.join(", ");
  switch (stoppedBy) {
    case undefined:
      return text;
    case "violation":
      return `${text}; stopped at the first violation`;
    case "interrupted":
      return `${text}; interrupted`;
    case "memory":
      return `${text}; stopped before memory ran out: smaller numbers, --fingerprints or a larger heap go further`;
    default:
      return `${text}; stopped by: ${stoppedBy}`;
  }
}

function collisionsText({ fingerprints, collisions }: Verdict): string {
  if (!fingerprints) return "impossible: states are compared in full, not by fingerprint";
  return `${
    collisions.toExponential(1)
  } expected: pairs of different states that were taken for one, if fingerprints are as good as random`;
}

const count = (n: number): string => n.toLocaleString("en-US");
const steps = (trace: Trace): string => counted(trace.steps.length, "step");

/** What differs: of two instances the state and the members of the context that are not the same. */
function difference(before: unknown, after: unknown): string {
  if (!isRecord(before) || !isRecord(after)) {
    return `${short(stateOf(before))} -> ${short(stateOf(after))}`;
  }
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const parts: string[] = [];
  for (const name of names) {
    const [was, is] = [before[name], after[name]];
    if (JSON.stringify(was) === JSON.stringify(is)) continue;
    if (name === "context" && isRecord(was) && isRecord(is)) parts.push(difference(was, is));
    else parts.push(`${name === "state" ? "" : `${name} `}${short(was)} -> ${short(is)}`);
  }
  return parts.join(", ");
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const stateOf = (value: unknown): unknown =>
  isRecord(value) && "state" in value ? value["state"] : value;

function short(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length <= 160 ? text : `${text.slice(0, 157)}...`;
}
