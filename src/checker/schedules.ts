/**
 * Schedules for fast-check: what happens, faults included, as data, so that shrinking works on steps and not on a seed.
 *
 * ```ts
 * fc.assert(scheduleProperty(agreement({ ranks: 3 })));
 * ```
 *
 * A model says by itself what can happen. Worlds of other kinds take the same schedules: see {@link schedules} and {@link follow}.
 */
import fc from "fast-check";
import { hashText } from "../kernel/mod.ts";
import type { Model } from "./model.ts";
import { type Choice, type Chooser, type Run, Runner } from "./run.ts";
import { randomOf } from "./simulate.ts";
import { traceText } from "./verdict-text.ts";

/** One step of a schedule. Numbers are counted round what is possible, so that a schedule fits everything. */
export type ScheduleStep<Fault = number> =
  /** The n-th of what can happen by itself. */
  | { readonly step: number }
  /** So many steps, in an order that `salt` gives. */
  | { readonly stretch: number; readonly salt: number }
  /** Something goes wrong: the n-th of the faults that are possible, or what the world calls a fault. */
  | { readonly fault: Fault };

export interface ScheduleOptions<Fault = number> {
  /** How long a schedule may be (default 60). */
  readonly steps?: number;
  /** One in so many is a fault (default 8; 0: no faults). */
  readonly oneFaultIn?: number;
  /** How long a stretch of ordinary steps may be (default 0: no stretches). */
  readonly stretch?: number;
  /** Faults of a world that is no model. */
  readonly faults?: fc.Arbitrary<Fault>;
}

/** Arbitrary schedules. */
export function schedules<Fault = number>(
  options: ScheduleOptions<Fault> = {},
): fc.Arbitrary<ScheduleStep<Fault>[]> {
  const { steps = 60, oneFaultIn = 8, stretch = 0 } = options;
  const faults = options.faults ??
    fc.nat({ max: 63 }) as fc.Arbitrary<unknown> as fc.Arbitrary<Fault>;
  const step: fc.Arbitrary<ScheduleStep<Fault>> = fc.record({ step: fc.nat({ max: 63 }) });
  const long = fc.record({ stretch: fc.nat({ max: stretch }), salt: fc.nat({ max: 1_000 }) });
  const ordinary = stretch === 0 ? step : fc.oneof(step, long);
  const any = oneFaultIn === 0 ? ordinary : fc.oneof(
    { weight: oneFaultIn - 1, arbitrary: ordinary },
    { weight: 1, arbitrary: fc.record({ fault: faults }) },
  );
  return fc.array(any, { maxLength: steps, size: "max" });
}

/** What a world does on the steps of a schedule. */
export interface Followed<Fault> {
  /** How many things can happen by themselves now. */
  possible(): number;
  /** One of them happens. */
  happen(nth: number): void;
  /** Something goes wrong. */
  fails(fault: Fault): void;
}

/** Lets a world that is no model follow a schedule. What is not possible at its turn is left out. */
export function play<Fault>(
  schedule: readonly ScheduleStep<Fault>[],
  world: Followed<Fault>,
): void {
  for (const step of schedule) {
    if ("fault" in step) {
      world.fails(step.fault);
      continue;
    }
    for (const nth of numbersOf(step)) {
      const possible = world.possible();
      if (possible === 0) break;
      world.happen(nth % possible);
    }
  }
}

/** The numbers that ordinary steps choose by. */
function* numbersOf(step: Exclude<ScheduleStep, { readonly fault: unknown }>): Generator<number> {
  if ("step" in step) yield step.step;
  else {
    const random = randomOf(step.salt);
    for (let i = 0; i < step.stretch; i++) yield random(1 << 20);
  }
}

/** A chooser that lets a model follow a schedule. A fault that is not possible at its turn is left out. */
export function follow(schedule: readonly ScheduleStep[]): Chooser {
  const wanted = (function* () {
    for (const step of schedule) {
      if ("fault" in step) yield { fault: true, nth: step.fault };
      else for (const nth of numbersOf(step)) yield { fault: false, nth };
    }
  })();
  return (choices: readonly Choice[]) => {
    for (;;) {
      const next = wanted.next();
      if (next.done === true) return undefined;
      const { fault, nth } = next.value;
      const some = choices.filter((c) => c.action.fault === fault);
      if (some.length > 0) return some[nth % some.length]!.index;
    }
  };
}

/** The same schedule led to two different runs: something is not a function of the state. */
export class NotDeterministicError extends Error {
  readonly code = "not-deterministic";
}

/** A schedule broke a property. */
export class BrokenPropertyError extends Error {
  readonly code = "broken-property";
  readonly property: string;
  readonly run: Run;
  constructor(property: string, run: Run, text: string) {
    super(text);
    this.property = property;
    this.run = run;
  }
}

/**
 * That a model's `always` properties hold in every scheduled run. Each run is made twice, by two compositions of the model, and must come
 * out the same.
 */
export function scheduleProperty(
  model: Model,
  options: ScheduleOptions = {},
): fc.IPropertyWithHooks<[ScheduleStep[]]> {
  const runners = [new Runner(model), new Runner(model)];
  return fc.property(schedules(options), (schedule) => {
    const runs = runners.values();
    const run = twice(
      `model ${model.name}`,
      () => runs.next().value!.run(follow(schedule)),
      (r) =>
        `${r.actions.map((a) => a.label).join("\n")}\n${r.broken ?? "nothing"} broken, ${r.digest}`,
    );
    if (run.broken !== undefined) {
      throw new BrokenPropertyError(
        run.broken,
        run,
        `${run.broken}\n${traceText(runners[0]!.trace(run), { changes: false })}`,
      );
    }
  });
}

/**
 * Makes a run twice, and compares the hashes of what it did and left: whether a run is a function of its schedule.
 *
 * @param told what a run did and left, as text. Everything that must be the same.
 * @throws NotDeterministicError with the first line of that text that is not the same.
 */
export function twice<R>(what: string, run: () => R, told: (run: R) => string): R {
  const first = run();
  const [one, other] = [told(first), told(run())];
  const [a, b] = [hashText(one), hashText(other)];
  if (a.lo === b.lo && a.hi === b.hi) return first;
  const [some, others] = [one.split("\n"), other.split("\n")];
  const line = some.findIndex((text, i) => text !== others[i]);
  throw new NotDeterministicError(
    `${what}: the same schedule led to two runs; line ${line + 1} is\n  ${some[line]}\nand\n  ${
      others[line] ?? "nothing"
    }`,
  );
}
