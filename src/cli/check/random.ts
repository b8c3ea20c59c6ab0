/** `muster check MODEL --random`, and `--replay`: single runs instead of all. */
import { readFileSync } from "node:fs";
import {
  type ItfTrace,
  type Model,
  replay,
  simulateAsync,
  type Simulation,
  traceText,
} from "../../checker/mod.ts";
import { EXIT } from "../exit-codes.ts";
import { drawn } from "./found.ts";
import { Refusal, whyOf } from "./refusal.ts";
import type { Watch } from "./watch.ts";

export interface RandomFlags {
  readonly random?: string | boolean;
  readonly runs: number;
  readonly steps: number;
  readonly seed: number;
}

/** Makes random runs, until all are made or somebody interrupts. */
export async function simulated(
  model: Model,
  flags: RandomFlags,
  watch: Pick<Watch, "signal" | "draw">,
): Promise<Simulation> {
  const chooser = flags.random === true ? "uniform" : flags.random;
  if (chooser !== "uniform" && chooser !== "pct") {
    throw new Refusal(`--random is ${chooser}: uniform or pct`);
  }
  const { runs, steps, seed } = flags;
  return await simulateAsync(model, {
    chooser,
    runs,
    steps,
    seed,
    signal: watch.signal,
    onProgress: ({ runs: made, steps, ends, seconds }) =>
      watch.draw(
        `${made} of ${runs} runs, ${steps} steps, ${ends} different ends, ${seconds.toFixed(1)} s`,
        seconds,
      ),
  });
}

/** What random runs came to, in words, with the shrunk run when one broke something. */
export async function simulationText(result: Simulation, diagram: string): Promise<string> {
  const { violation, model, runs, steps, seed, chooser, ends, seconds } = result;
  const head = `${
    violation === undefined ? "inconclusive" : "violated"
  }: ${model}: ${runs} random runs (${chooser}, seed ${seed}), ${steps} steps, ${ends} different ends, ${
    seconds.toFixed(2)
  } s`;
  if (violation === undefined) return `${head}\n  Random runs that break nothing prove nothing.`;
  const { found, steps: fewer, faults, arguments: smaller, search } = violation.shrunk;
  return [
    head,
    "",
    `${violation.kind} violated: ${violation.property}`,
    `  found in run ${violation.run} after ${found} steps; ${fewer} are left after shrinking steps, ${faults} after faults, ${smaller} after arguments${
      search === undefined ? "" : `; the shortest has ${search}`
    }`,
    traceText(violation.trace),
    "",
    await drawn(violation.trace, diagram),
  ].join("\n");
}

/** Replays a trace file. Returns the exit code. */
export async function replayed(
  model: Model,
  path: string,
  diagram: string,
  json: boolean,
  out: (text: string) => void,
): Promise<number> {
  let file: ItfTrace;
  try {
    file = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new Refusal(`--replay ${path} is no trace: ${whyOf(error)}`);
  }
  const trace = replay(model, file);
  out(
    json
      ? `${JSON.stringify(trace, undefined, 2)}\n`
      : `${traceText(trace)}\n\n${await drawn(trace, diagram)}\n`,
  );
  return EXIT.ok;
}
