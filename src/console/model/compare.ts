import type { JournalRecord } from "../../journal/mod.ts";
import { differences } from "./difference.ts";

/** The first difference of two runs. */
export interface RunDifference {
  /** Sequence number of the first record that differs. */
  readonly seq: number;
  /** `input`: something else happened; `result`: the same happened and led elsewhere; `end`: one run ends here. */
  readonly kind: "input" | "result" | "end";
  readonly text: string;
  readonly left: JournalRecord | undefined;
  readonly right: JournalRecord | undefined;
}

/**
 * Where two runs part, or undefined when they are the same. Wall-clock times are not compared: no two runs share them.
 */
export function firstDifference(
  left: readonly JournalRecord[],
  right: readonly JournalRecord[],
): RunDifference | undefined {
  const length = Math.max(left.length, right.length);
  for (let i = 0; i < length; i++) {
    const [a, b] = [left[i], right[i]];
    const seq = (a ?? b)!.seq;
    if (a === undefined || b === undefined) {
      const shorter = a === undefined ? "The first" : "The second";
      return {
        seq,
        kind: "end",
        text: `${shorter} run ends before record ${seq}.`,
        left: a,
        right: b,
      };
    }
    if (a.to !== b.to || JSON.stringify(a.event) !== JSON.stringify(b.event)) {
      return { seq, kind: "input", text: inputText(a, b), left: a, right: b };
    }
    if (a.digest !== "" && b.digest !== "" && a.digest !== b.digest) {
      const what = a.digest.slice(0, 16) === b.digest.slice(0, 16)
        ? "other effects"
        : "another state";
      const text =
        `Record ${seq} is the same in both, but led to ${what}: the runs are of different versions.`;
      return { seq, kind: "result", text, left: a, right: b };
    }
  }
  return undefined;
}

function inputText(a: JournalRecord, b: JournalRecord): string {
  if (a.to !== b.to || a.event.type !== b.event.type) {
    return `Record ${a.seq}: ${a.event.type} to ${a.to} in the first run, ${b.event.type} to ${b.to} in the second.`;
  }
  const parts = differences(a.event, b.event).slice(0, 3)
    .map(({ what, before, after }) => `${what} is ${before ?? "absent"} and ${after ?? "absent"}`);
  return `Record ${a.seq}, ${a.event.type} to ${a.to}: ${parts.join(", ")}.`;
}
