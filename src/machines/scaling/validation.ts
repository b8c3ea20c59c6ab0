/** What can be said about a scaling request before anything is published (wire spec, 7.5 step 2). */

/** What a rank knows of the model and of the limits of its deployment. */
export interface Expertise {
  /** Logical experts of the model; 0 for a dense one. */
  readonly experts: number;
  /** Redundant experts at the current size. */
  readonly redundant: number;
  readonly maxSize: number;
}

export type TargetCheck =
  | { readonly ok: true; readonly redundancy: number }
  | { readonly ok: false; readonly code: TargetRefusal; readonly text: string };

export type TargetRefusal =
  | "not-a-size"
  | "same-size"
  | "above-maximum"
  | "too-few-ranks"
  | "no-store"
  | "retiring-ranks";

/** Redundant experts after a change of size: `floor((experts + redundant) * target / current) - experts`. */
export const redundancyAfter = (
  experts: number,
  redundant: number,
  current: number,
  target: number,
): number => Math.floor((experts + redundant) * target / current) - experts;

/** Whether a rank can scale from `current` to `target`, and with how many redundant experts; otherwise why not. */
export function checkTarget(expertise: Expertise, current: number, target: number): TargetCheck {
  const refuse = (code: TargetRefusal, text: string): TargetCheck => ({ ok: false, code, text });
  if (!Number.isInteger(target) || target < 1) {
    return refuse("not-a-size", "new_data_parallel_size must be a positive integer");
  }
  if (target === current) {
    return refuse("same-size", `the data-parallel size is ${current} already`);
  }
  if (target > expertise.maxSize) {
    return refuse(
      "above-maximum",
      `Cannot scale to data_parallel_size ${target}; --elastic-ep-max-dp-size is ${expertise.maxSize}.`,
    );
  }
  const { experts, redundant } = expertise;
  const redundancy = redundancyAfter(experts, redundant, current, target);
  if (redundancy < 0) {
    return refuse(
      "too-few-ranks",
      `Cannot scale external Elastic EP from DP size ${current} to ${target}: the target topology cannot retain all model experts.`,
    );
  }
  return { ok: true, redundancy };
}

/**
 * Whether these ranks may be the ones that leave. External load balancing numbers the new group 0..target-1 and every
 * engine keeps its rank, so only the highest can go.
 */
export function checkRetiring(
  current: number,
  target: number,
  retire: readonly number[],
): TargetCheck {
  const wanted = [...new Set(retire)].sort((a, b) => a - b);
  const possible = Array.from({ length: Math.max(0, current - target) }, (_, i) => target + i);
  if (JSON.stringify(wanted) === JSON.stringify(possible)) return { ok: true, redundancy: 0 };
  return {
    ok: false,
    code: "retiring-ranks",
    text: possible.length === 0
      ? `no rank leaves when ${current} ranks become ${target}`
      : `${
        named(wanted)
      } cannot be retired: engines keep their ranks, so a group of ${target} is ranks 0 to ${
        target - 1
      }, and what leaves is ${named(possible)}`,
  };
}

const named = (ranks: readonly number[]): string =>
  `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;
