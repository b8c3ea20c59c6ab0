/**
 * Shrinks a broken run: fewer steps, then fewer faults, then smaller arguments, until no single step can be left out.
 *
 * A run is shrunk as the list of its actions in words. An action that cannot happen any more at its turn is left out too.
 */
import type { Run, Runner } from "./run.ts";
import type { Trace } from "./trace.ts";

export interface Shrunk {
  readonly trace: Trace;
  /** Steps after each phase. `search` is there when a search looked for a shorter run. */
  readonly how: {
    readonly found: number;
    readonly steps: number;
    readonly faults: number;
    readonly arguments: number;
    readonly search?: number;
  };
}

/** The result is 1-minimal: leaving out any one of its steps no longer breaks the property. */
export function shrink(runner: Runner, run: Run): Shrunk {
  const property = run.broken;
  const tryOut = (labels: readonly string[]): Run | undefined => {
    const again = runner.follow(labels);
    return again.broken === property ? again : undefined;
  };
  const found = run.choices.length;
  let best = fewerSteps(run, tryOut);
  const steps = best.choices.length;
  best = fewerSteps(fewerFaults(best, tryOut), tryOut);
  const faults = best.choices.length;
  best = fewerSteps(smallerArguments(runner, best, property), tryOut);
  const how = { found, steps, faults, arguments: best.choices.length };
  return { trace: runner.trace(best), how };
}

type TryOut = (labels: readonly string[]) => Run | undefined;
const labelsOf = (run: Run): string[] => run.actions.map((a) => a.label);

/** Leaves out ever smaller pieces. */
function fewerSteps(run: Run, tryOut: TryOut): Run {
  let best = run;
  for (
    let size = Math.ceil(best.choices.length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let again = true; again;) {
      again = false;
      for (let at = best.choices.length - size; at >= 0; at--) {
        const labels = labelsOf(best);
        labels.splice(at, size);
        const shorter = tryOut(labels);
        if (shorter !== undefined && shorter.choices.length < best.choices.length) {
          best = shorter;
          again = true;
          break;
        }
      }
    }
  }
  return best;
}

/** Tries without each fault, even where that makes the run no shorter. */
function fewerFaults(run: Run, tryOut: TryOut): Run {
  let best = run;
  const faults = (r: Run) => r.actions.filter((a) => a.fault).length;
  for (let at = best.actions.length - 1; at >= 0; at--) {
    if (best.actions[at]?.fault !== true) continue;
    const without = tryOut(labelsOf(best).filter((_, i) => i !== at));
    if (without !== undefined && faults(without) < faults(best)) best = without;
  }
  return best;
}

/** Tries to replace each step by one of the same kind at the same instance whose event is smaller. */
function smallerArguments(runner: Runner, run: Run, property: string | undefined): Run {
  let best = run;
  for (let at = 0; at < best.actions.length; at++) {
    const { kind, to, event } = best.actions[at]!;
    if (event === undefined) continue;
    const smaller: string[] = [];
    let step = 0;
    runner.run((choices) => {
      if (step === at) {
        for (const { action } of choices) {
          if (action.kind === kind && action.to === to && isSmaller(action.event, event)) {
            smaller.push(action.label);
          }
        }
        return undefined;
      }
      return best.choices[step++];
    });
    for (const label of smaller) {
      const labels = labelsOf(best);
      labels[at] = label;
      const other = runner.follow(labels);
      if (other.broken === property && other.choices.length <= best.choices.length) {
        best = other;
        break;
      }
    }
  }
  return best;
}

function isSmaller(a: unknown, b: unknown): boolean {
  const [x, y] = [JSON.stringify(a) ?? "", JSON.stringify(b) ?? ""];
  return x.length < y.length || (x.length === y.length && x < y);
}
