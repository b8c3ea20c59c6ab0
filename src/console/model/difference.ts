import { valueText } from "../../charts/mod.ts";
import type { Applied } from "../../journal/mod.ts";

/** One fact of an instance that a record changed. */
export interface Change {
  readonly instance: string;
  /** `state`, or a path in the context such as `left` or `bound.handshake`. */
  readonly what: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** What a record changed, instance by instance: the state, then the context member by member. */
export function changesOf(applied: Applied): readonly Change[] {
  const changes: Change[] = [];
  for (const { instance, before, after } of applied.transitions) {
    const [was, is] = [before?.snapshot, after?.snapshot];
    const state = [was, is].map((s) => s === undefined ? undefined : valueText(s.value));
    if (state[0] !== state[1]) {
      changes.push({ instance, what: "state", before: state[0], after: state[1] });
    }
    if (was === undefined || is === undefined) continue; // a start or an end: the state says it
    for (const change of differences(was.context, is.context)) {
      changes.push({ instance, ...change });
    }
  }
  return changes;
}

/** Members that differ between two JSON values, by path; whole values where their kinds differ. */
export function differences(
  before: unknown,
  after: unknown,
  path = "",
): readonly Omit<Change, "instance">[] {
  if (before === after) return [];
  if (isRecord(before) && isRecord(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
      differences(before[key], after[key], path === "" ? key : `${path}.${key}`)
    );
  }
  const [was, is] = [before, after].map((v) => v === undefined ? undefined : JSON.stringify(v));
  return was === is ? [] : [{ what: path || "value", before: was, after: is }];
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
