/**
 * Schedules for fast-check: what happens, faults included, as data, so that shrinking works on steps and not on a seed.
 *
 * ```ts
 * fc.assert(scheduleProperty(agreement({ ranks: 3 })));
 * ```
 */
import fc from "fast-check";
import type { Model } from "./model.ts";
import { type Chooser, type Run, Runner } from "./run.ts";
import { traceText } from "./verdict-text.ts";

/** One step of a schedule: the n-th of what can happen, counted round; or the n-th of the faults that are possible. */
export type ScheduleStep = { readonly step: number } | { readonly fault: number };

export interface ScheduleOptions {
  /** How long a schedule may be (default 60 steps). */
  readonly steps?: number;
  /** One in so many steps is a fault (default 8; 0: no faults). */
  readonly oneFaultIn?: number;
}

/** Arbitrary schedules. They fit every model: numbers are taken modulo what is possible. */
export function schedules(options: ScheduleOptions = {}): fc.Arbitrary<ScheduleStep[]> {
  const { steps = 60, oneFaultIn = 8 } = options;
  const step: fc.Arbitrary<ScheduleStep> = fc.record({ step: fc.nat({ max: 63 }) });
  const fault: fc.Arbitrary<ScheduleStep> = fc.record({ fault: fc.nat({ max: 63 }) });
  const any = oneFaultIn === 0 ? step : fc.oneof(
    { weight: oneFaultIn - 1, arbitrary: step },
    { weight: 1, arbitrary: fault },
  );
  return fc.array(any, { maxLength: steps, size: "max" });
}

/** A chooser that follows a schedule. A fault that is not possible at its turn is left out. */
export function follow(schedule: readonly ScheduleStep[]): Chooser {
  let at = 0;
  return (choices) => {
    for (; at < schedule.length; at++) {
      const step = schedule[at]!;
      const wanted = choices.filter((c) => c.action.fault === ("fault" in step));
      if (wanted.length === 0) continue;
      at++;
      return wanted[("fault" in step ? step.fault : step.step) % wanted.length]!.index;
    }
    return undefined;
  };
}

/** The same schedule led to two different runs: something in the model is not a function of its state. */
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
  const runner = new Runner(model);
  const second = new Runner(model);
  return fc.property(schedules(options), (schedule) => {
    const run = runner.run(follow(schedule));
    const again = second.run(follow(schedule));
    if (labels(run) !== labels(again) || run.broken !== again.broken) {
      throw new NotDeterministicError(
        `model ${model.name}: the same schedule led to two runs:\n${labels(run)}\n\n${
          labels(again)
        }`,
      );
    }
    if (run.broken !== undefined) {
      throw new BrokenPropertyError(
        run.broken,
        run,
        `${run.broken}\n${traceText(runner.trace(run), { changes: false })}`,
      );
    }
  });
}

const labels = (run: Run): string => run.actions.map((a) => a.label).join("\n");
