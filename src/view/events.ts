/** What happened to a cluster, one line at a time: for those who follow it rather than look at its status. */
import { rankOf, type StepResult } from "../kernel/mod.ts";
import type { FailureRecord } from "./failure-record.ts";
import { refusalText } from "./refusal-text.ts";
import type { ClusterPhase, RankState, StatusFold } from "./status.ts";

export type ClusterEvent =
  & { readonly at: number; readonly seq: number }
  & (
    | { readonly type: "phase"; readonly phase: ClusterPhase }
    | { readonly type: "rank"; readonly rank: number; readonly state: RankState }
    | {
      readonly type: "refused";
      readonly rank: number;
      readonly reason: string;
      readonly text: string;
    }
    | {
      readonly type: "strangers";
      readonly kind: string;
      readonly count: number;
      readonly sample: string;
    }
    | {
      readonly type: "process";
      readonly launch: string;
      readonly state: string;
      readonly pid: number | null;
    }
    | { readonly type: "failure"; readonly failure: FailureRecord }
  );

/** Applies a step to the status and says what changed. */
export function eventsOf(fold: StatusFold, step: Omit<StepResult, "system">): ClusterEvent[] {
  const before = fold.brief();
  fold.apply(step);
  const after = fold.brief();
  const { at, seq } = step.input;
  const events: ClusterEvent[] = [];
  for (const { instance, chart, before: from, after: to, event } of step.transitions) {
    if (to === undefined) continue;
    const changed = from?.snapshot.value !== to.snapshot.value;
    if ((chart === "engine" || chart === "joiner") && changed) {
      const state = to.snapshot.value as RankState;
      events.push({ at, seq, type: "rank", rank: rankOf(instance)!, state });
    }
    if (chart === "process" && changed) {
      const launch = instance.slice("process/".length);
      const status = fold.process(launch);
      if (status !== undefined) {
        events.push({ at, seq, type: "process", launch, state: status.state, pid: status.pid });
      }
    }
    if (chart === "startup" && event.type === "rankRefused") {
      const rank = rankOf(String(event["from"]))!;
      const reason = String(event["reason"]);
      const text = refusalText(event, fold.configuration!.mode);
      events.push({ at, seq, type: "refused", rank, reason, text });
    }
    if (chart === "startup" && event.type === "strangers") {
      const { kind, count, sample } = event as unknown as {
        kind: string;
        count: number;
        sample: string;
      };
      events.push({ at, seq, type: "strangers", kind, count, sample });
    }
  }
  if (after.phase !== before.phase) events.push({ at, seq, type: "phase", phase: after.phase });
  if (after.failure !== before.failure && after.failure !== null) {
    events.push({ at, seq, type: "failure", failure: after.failure });
  }
  return events;
}
