/** Random runs: many, seeded, and shrunk when one of them breaks a property. */
import { check } from "./check.ts";
import type { Model } from "./model.ts";
import { type Choice, type Chooser, type Run, Runner } from "./run.ts";
import { shrink, type Shrunk } from "./shrink.ts";
import type { Trace } from "./trace.ts";

export interface SimulateOptions {
  /** How many runs (default 1,000). */
  readonly runs?: number;
  /** How long each may be (default 100 steps). */
  readonly steps?: number;
  /** The same seed gives the same runs, on every runtime and in every version. Default 1. */
  readonly seed?: number;
  /**
   * `uniform`: every choice alike. `pct`: each process has a random priority, and the highest that can act does, with `changes`
   * random moments at which it falls to the lowest (probabilistic concurrency testing): finds bugs that need few, but particular orders.
   */
  readonly chooser?: "uniform" | "pct";
  readonly changes?: number;
  /** States to search when a shrunk run is shortened by search (default 100,000; 0: not at all). */
  readonly searchStates?: number;
}

export interface Simulation {
  readonly model: string;
  /** Runs that were made. */
  readonly runs: number;
  readonly steps: number;
  readonly seed: number;
  readonly chooser: "uniform" | "pct";
  readonly seconds: number;
  /** Different states at the ends of runs. */
  readonly ends: number;
  readonly violation:
    | {
      readonly property: string;
      readonly kind: "always" | "rest";
      /** Which run, from 0; with the seed it is found again. */
      readonly run: number;
      /** Steps of the run as it was found. */
      readonly found: number;
      readonly trace: Trace;
      /** How the trace became as short as it is. */
      readonly shrunk: Shrunk["how"];
    }
    | undefined;
}

/** Runs a model at random until a property breaks or all runs are made. A run in which nothing broke proves nothing. */
export function simulate(model: Model, options: SimulateOptions = {}): Simulation {
  const simulating = runs(model, options);
  for (;;) {
    const { done, value } = simulating.next();
    if (done === true) return value;
  }
}

/**
 * As {@link simulate}, and lets other things happen in between.
 *
 * @param options.signal ends it with the runs that were made until then.
 * @param options.onProgress is told some times a second.
 */
export async function simulateAsync(
  model: Model,
  options: SimulateOptions & {
    readonly signal?: AbortSignal;
    readonly onProgress?: (sofar: Simulation) => void;
  } = {},
): Promise<Simulation> {
  const simulating = runs(model, options);
  for (let told = performance.now();;) {
    const { done, value } = simulating.next();
    if (done === true || options.signal?.aborted === true) return value;
    if (performance.now() - told < 200) continue;
    options.onProgress?.(value);
    await new Promise((resume) => setTimeout(resume));
    told = performance.now();
  }
}

/** One run after another; what they came to so far after each. */
function* runs(model: Model, options: SimulateOptions): Generator<Simulation, Simulation> {
  const { runs = 1000, steps = 100, seed = 1, chooser = "uniform", changes = 2 } = options;
  const runner = new Runner(model);
  const began = performance.now();
  const ends = new Set<string>();
  let taken = 0;
  let longest = 0;
  const sofar = (made: number, violation?: Simulation["violation"]): Simulation => ({
    model: model.name,
    runs: made,
    steps: taken,
    seed,
    chooser,
    seconds: (performance.now() - began) / 1000,
    ends: ends.size,
    violation,
  });
  for (let r = 0; r < runs; r++) {
    const random = randomOf(seed, r);
    const choose = chooser === "uniform"
      ? uniform(random, steps)
      : pct(random, steps, Math.max(1, longest), changes);
    const run = runner.run(choose);
    longest = Math.max(longest, run.choices.length);
    taken += run.choices.length;
    ends.add(run.end);
    if (run.broken !== undefined) {
      const shrunk = shortest(model, runner, run, options.searchStates ?? 100_000);
      return sofar(r + 1, {
        property: run.broken,
        kind: model.properties.always?.[run.broken] === undefined ? "rest" : "always",
        run: r,
        found: run.choices.length,
        trace: shrunk.trace,
        shrunk: shrunk.how,
      });
    }
    yield sofar(r + 1);
  }
  return sofar(runs);
}

/** Shrinks a broken run, and then looks by search whether there is a shorter one. */
function shortest(model: Model, runner: Runner, run: Run, states: number): Shrunk {
  const shrunk = shrink(runner, run);
  if (states === 0 || run.broken === "rest") return shrunk;
  const depth = shrunk.trace.steps.length - 1;
  if (depth < 1) return shrunk;
  const always = { [run.broken!]: model.properties.always![run.broken!]! };
  const searched = check({ ...model, properties: { always } }, {
    bounds: { states, depth },
    symmetry: false,
  });
  const found = searched.violations[0]?.trace;
  if (found !== undefined) {
    return { trace: found, how: { ...shrunk.how, search: found.steps.length } };
  }
  return searched.stoppedBy === "states"
    ? shrunk
    : { ...shrunk, how: { ...shrunk.how, search: depth + 1 } };
}

/** Pseudo-random numbers in [0, n), the same for the same seed everywhere. */
export type Random = (n: number) => number;

/** Marsaglia's xorshift with 32 bits of state, seeded by two numbers. */
export function randomOf(seed: number, stream = 0): Random {
  let x = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(stream + 1, 0x85ebca6b)) | 0 || 1;
  return (n) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return Math.floor((x >>> 0) / 2 ** 32 * n);
  };
}

const uniform = (random: Random, steps: number): Chooser => (choices, step) =>
  step < steps ? random(choices.length) : undefined;

/** @param length how long runs are, as far as is known: moments of change lie within. */
function pct(random: Random, steps: number, length: number, changes: number): Chooser {
  const priorities = new Map<string, number>();
  const moments = new Set(Array.from({ length: changes }, () => random(length)));
  let lowest = 0;
  const priority = (choice: Choice): number => {
    const who = choice.action.fault ? "faults" : choice.action.to ?? choice.action.label;
    let p = priorities.get(who);
    if (p === undefined) priorities.set(who, p = 1 + random(1 << 20));
    return p;
  };
  return (choices, step) => {
    if (step >= steps) return undefined;
    const highest = Math.max(...choices.map(priority));
    const best = choices.filter((c) => priority(c) === highest);
    const chosen = best[random(best.length)]!;
    if (moments.has(step)) {
      priorities.set(
        chosen.action.fault ? "faults" : chosen.action.to ?? chosen.action.label,
        --lowest,
      );
    }
    return chosen.index;
  };
}
