/** What is made of a counterexample: a drawing, a trace file, a test. */
import { accessSync, constants, existsSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { regressionTest, toItf, type Trace, type Violation } from "../../checker/mod.ts";
import { Refusal, whyOf } from "./refusal.ts";
import type { Named } from "./which-model.ts";

export type Diagram = "text" | "mermaid" | "svg";
const DIAGRAMS: readonly string[] = ["text", "mermaid", "svg"];

export interface FoundFlags {
  readonly trace?: string;
  readonly regression?: boolean;
  readonly diagram: string;
}

/** Refuses before a long search what could not be done with its result. */
export function refuseEarly({ trace, diagram }: FoundFlags): void {
  if (!DIAGRAMS.includes(diagram)) {
    throw new Refusal(`--diagram is ${diagram}: ${DIAGRAMS.join(", ")}`);
  }
  if (trace === undefined) return;
  const there = existsSync(trace);
  try {
    if (there && statSync(trace).isDirectory()) {
      throw Object.assign(new Error(), { code: "EISDIR" });
    }
    accessSync(there ? trace : dirname(trace), constants.W_OK);
  } catch (error) {
    throw new Refusal(`--trace ${trace} cannot be written: ${whyOf(error)}`);
  }
}

/** The sequence diagram of a run. */
export async function drawn(trace: Trace, kind: string): Promise<string> {
  const charts = await import("../../charts/mod.ts");
  const steps = charts.stepsOfTrace(trace);
  switch (kind as Diagram) {
    case "text":
      return charts.toSequenceText(steps);
    case "mermaid":
      return charts.toSequenceMermaid(steps);
    case "svg":
      return charts.toSequenceSvg(steps);
  }
}

/** Writes the trace file, when one is asked for. */
export function writeTrace(
  { trace: path }: FoundFlags,
  violation: Pick<Violation, "property" | "trace"> | undefined,
  command: readonly string[],
): void {
  if (path === undefined) return;
  if (violation?.trace === undefined) {
    process.stderr.write("there is no counterexample to write\n");
    return;
  }
  try {
    writeFileSync(
      path,
      `${JSON.stringify(toItf(violation.trace, violation.property), undefined, 1)}\n`,
    );
  } catch (error) {
    throw new Refusal(`--trace ${path} cannot be written: ${whyOf(error)}`);
  }
  process.stderr.write(
    `wrote ${path}; replay it: muster check ${[...command, "--replay", path].join(" ")}\n`,
  );
}

/** The counterexample as a test for node:test, when one is asked for. */
export const testOf = (
  violation: Pick<Violation, "property" | "trace"> | undefined,
  { source }: Named,
  { regression }: FoundFlags,
): string | undefined =>
  regression === true && violation !== undefined ? regressionTest(violation, source) : undefined;
