/**
 * An old rank's front-end as the original's behaves in external scaling (wire spec, 7.5 and 7.7), as a pure machine of small steps: each looks at
 * the stores or writes one thing. For properties of mixed clusters; it is driven by whoever holds the stores and the engine.
 */
import type { Bootstrap } from "../machines/effects/scaling.ts";
import {
  bootstrapOf,
  CURRENT_EPOCH,
  entryOf,
  epochViewOf,
  errorKey,
  factIn,
  keyOf,
  type Look,
  phaseKey,
} from "../machines/scaling/store-view.ts";

export type UpstreamStage =
  | "asked"
  | "joining"
  | "reinitializing"
  | "awaitingEngines"
  | "voting"
  | "awaitingVotes"
  | "pausing"
  | "committing"
  | "underWay"
  | "finished"
  | "completing"
  | "resuming"
  | "completed"
  | "failing"
  | "failed";

export interface UpstreamRank {
  readonly rank: number;
  readonly oldSize: number;
  readonly target: number;
  readonly stage: UpstreamStage;
  readonly epoch: string;
  readonly bootstrap: Bootstrap | null;
  /** Steps within the stage. */
  readonly at: number;
  readonly error: string;
}

/** What a step asks for. */
export type UpstreamAct =
  | {
    readonly do: "set";
    readonly store: "control" | "reconfig";
    readonly key: string;
    readonly value: string;
  }
  | { readonly do: "engine"; readonly method: string; readonly leave?: boolean }
  /** Nothing to do now. */
  | { readonly do: "wait" }
  | { readonly do: "nothing" };

export const upstreamRank = (rank: number, oldSize: number, target: number): UpstreamRank => ({
  rank,
  oldSize,
  target,
  stage: "asked",
  epoch: "",
  bootstrap: null,
  at: 0,
  error: "",
});

type Step = readonly [rank: UpstreamRank, act: UpstreamAct];

/** Something raises, wherever it is: it publishes the error by itself. */
export function raise(u: UpstreamRank, error: string): UpstreamRank {
  if (u.stage === "completed" || u.stage === "failed" || u.stage === "failing") return u;
  return u.epoch === ""
    ? { ...u, stage: "failed", error }
    : { ...u, stage: "failing", at: 0, error };
}

/** The engine answered, or notified. */
export function answered(
  u: UpstreamRank,
  what: "reply" | "failure" | "notified",
  text = "",
): UpstreamRank {
  if (what === "failure") return raise(u, text);
  const next: Partial<Record<UpstreamStage, UpstreamStage>> = {
    reinitializing: "awaitingEngines",
    pausing: "committing",
    committing: "underWay",
    resuming: "completed",
  };
  if (what === "reply") {
    const stage = next[u.stage];
    return stage === undefined ? u : { ...u, stage, at: 0 };
  }
  return u.stage === "underWay" || u.stage === "committing"
    ? { ...u, stage: "finished", at: 0 }
    : u;
}

/** The next small step of a rank that sees these stores. */
export function stepUpstream(u: UpstreamRank, control: Look, reconfig: Look): Step {
  const { rank, oldSize, target, epoch, at } = u;
  const remains = target > oldSize || rank < target;
  const watched = { epoch, oldSize, target };
  const set = (store: "control" | "reconfig", key: string, value: string): UpstreamAct => ({
    do: "set",
    store,
    key,
    value,
  });
  const to = (stage: UpstreamStage): UpstreamRank => ({ ...u, stage, at: 0 });
  const more: UpstreamRank = { ...u, at: at + 1 };
  const wait: Step = [u, { do: "wait" }];
  const error = epoch === "" ? undefined : control(errorKey(epoch));
  switch (u.stage) {
    case "asked": {
      const view = epochViewOf(control);
      if (view === null || view.error !== null || view.completed || !view.prepared) return wait;
      if (view.bootstrap?.size !== target) return wait;
      const bootstrap = bootstrapOf(control(keyOf("bootstrap", view.epoch, rank)));
      return [{ ...u, stage: "joining", epoch: view.epoch, bootstrap, at: 0 }, { do: "nothing" }];
    }
    case "joining":
      return at === 0 ? [more, set("reconfig", CURRENT_EPOCH, epoch)] : [
        to(remains ? "reinitializing" : "awaitingEngines"),
        set("reconfig", phaseKey(epoch), "preparing"),
      ];
    case "reinitializing":
      return at === 0 ? [more, { do: "engine", method: "reinitialize_distributed" }] : wait;
    case "awaitingEngines":
      if (error !== undefined) return [raise(u, error), { do: "nothing" }];
      return factIn(reconfig, "enginesReady", watched) === undefined
        ? wait
        : [to("voting"), { do: "nothing" }];
    case "voting":
      return [
        to("awaitingVotes"),
        set("reconfig", ...entryOf({ key: "commit_ready", value: "1" }, epoch, rank)),
      ];
    case "awaitingVotes":
      if (error !== undefined) return [raise(u, error), { do: "nothing" }];
      return factIn(reconfig, "everyoneVoted", watched) === undefined
        ? wait
        : [to("pausing"), { do: "nothing" }];
    case "pausing":
      return at === 0 ? [more, { do: "engine", method: "pause_scheduler" }] : wait;
    case "committing":
      if (at > 0) return wait;
      return [
        more,
        remains
          ? { do: "engine", method: "commit_prepared_elastic_ep" }
          : { do: "engine", method: "reinitialize_distributed", leave: true },
      ];
    case "underWay":
      return error === undefined ? wait : [raise(u, error), { do: "nothing" }];
    case "finished": {
      const own = remains ? "old_rank_finished" : "shutdown_complete";
      // It takes the new topology over when it has finished itself.
      return [
        to(rank === 0 ? "completing" : remains ? "resuming" : "completed"),
        set("reconfig", keyOf(own, epoch, rank), "1"),
      ];
    }
    case "completing":
      if (at > 0) return [to("resuming"), set("reconfig", keyOf("completed", epoch, rank), "1")];
      if (error !== undefined) return [raise(u, error), { do: "nothing" }];
      return factIn(reconfig, "everyoneFinished", watched) === undefined
        ? wait
        : [more, set("control", keyOf("completed", epoch, rank), "1")];
    case "resuming":
      return at === 0 ? [more, { do: "engine", method: "resume_scheduler" }] : wait;
    case "failing":
      // Last writer wins, on both stores.
      return at === 0
        ? [more, set("control", errorKey(epoch), u.error)]
        : [to("failed"), set("reconfig", errorKey(epoch), u.error)];
    default:
      return wait;
  }
}
