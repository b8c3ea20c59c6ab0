import { assign } from "xstate";
import { addRanks, type Placement, removeRanks } from "../../planning/mod.ts";
import {
  launchOf,
  newRanks,
  oldRanks,
  type RayScalingContext,
  type RayScalingEvent,
  remaining,
  removed,
  sizeOf,
  type Stage,
  started,
} from "./context.ts";

type Args = { context: RayScalingContext; event: RayScalingEvent };
type Of<T extends RayScalingEvent["type"]> = RayScalingEvent & { type: T };
type Assign = (args: Args, params: { stage: Stage }) => Partial<RayScalingContext>;

const keys = (kind: string, ranks: readonly number[]): string[] => ranks.map((r) => `${kind}/${r}`);
const without = (waiting: readonly string[], ...done: string[]): readonly string[] =>
  waiting.filter((w) => !done.includes(w));
const withRank = (ranks: readonly number[], rank: number): readonly number[] =>
  ranks.includes(rank) ? ranks : [...ranks, rank].sort((a, b) => a - b);

/** The placement of the target on what is free, or null; `addRanks` says why in its refusals. */
export function planOf(context: RayScalingContext, event: RayScalingEvent): Placement | null {
  const { placement, masterIp, target } = context;
  const answer = target < sizeOf(context)
    ? removeRanks(placement, target)
    : addRanks(placement, (event as Of<"snapshotTaken">).nodes, masterIp, target);
  return answer.ok ? answer.plan : null;
}

/** Why it does not fit, in the planner's words. */
function shortfallOf(context: RayScalingContext, event: RayScalingEvent): string {
  const { placement, masterIp, target } = context;
  const answer = addRanks(placement, (event as Of<"snapshotTaken">).nodes, masterIp, target);
  const refusal = answer.ok ? undefined : answer.refusals[0];
  return refusal ? `${refusal.message} ${refusal.fix}` : "";
}

/** Which slot a reply answers: the same method is used for different steps. */
const SLOTS = ["reinitialize", "pause", "commit", "resume", "relay"];

const changes: Readonly<Record<string, Assign>> = {
  noteOperation: ({ event }) => {
    const { operation, target } = event as Of<"scale">;
    return {
      operation,
      target,
      stage: "planning",
      planned: null,
      waiting: [],
      joined: [],
      left: [],
      paused: [],
      failure: null,
    };
  },
  noteStage: (_, { stage }) => ({ stage }),
  notePlan: ({ context, event }) => ({ planned: planOf(context, event) }),
  noteShortfall: ({ context, event }) => ({
    failure: { rank: null, text: shortfallOf(context, event) },
  }),
  noteDrawn: ({ context, event }) => {
    const { epoch, masterPort, masterPorts } = event as Of<"drawn">;
    const { masterIp, target: size } = context;
    return { epoch, bootstrap: { size, masterIp, masterPort, masterPorts, storePort: 0 } };
  },
  noteStore: ({ context, event }) => {
    const { address } = event as Of<"storeServing">;
    return { store: address, bootstrap: { ...context.bootstrap!, storePort: address.port } };
  },
  noteFailure: ({ context, event }) => {
    const { rank = null, text = "the operation did not end within its deadline" } = event as {
      rank?: number;
      text?: string;
    };
    return { failure: context.failure ?? { rank, text } };
  },
  awaitPrepared: ({ context }) => ({
    waiting: [
      ...keys("reinitialize", remaining(context)),
      ...keys("launch", newRanks(context)),
      "ready",
    ],
  }),
  awaitPaused: ({ context }) => ({
    waiting: keys("pause", oldRanks(context)),
    paused: oldRanks(context),
  }),
  awaitCommitted: ({ context }) => ({
    waiting: [
      ...keys("commit", [
        ...remaining(context),
        ...removed(context).filter((r) => !context.left.includes(r)),
      ]),
      "finished",
      ...keys("frame", newRanks(context).filter((r) => !context.joined.includes(r))),
    ],
  }),
  awaitInit: ({ context }) => ({
    waiting: [
      ...keys("reinitialize", [...remaining(context), ...removed(context)]),
      ...keys("launch", newRanks(context)),
      ...keys("init", newRanks(context)),
    ],
  }),
  awaitWeights: ({ context }) => ({
    waiting: [
      ...context.waiting,
      ...keys("relay", oldRanks(context)),
      ...keys("weights", newRanks(context)),
    ],
  }),
  awaitFinished: ({ context }) => ({
    waiting: [
      ...context.waiting,
      ...(newRanks(context).length ? keys("relay", oldRanks(context)) : []),
      "finished",
      ...keys("frame", newRanks(context).filter((r) => !context.joined.includes(r))),
    ],
  }),
  awaitResumed: ({ context }) => ({
    waiting: Array.from({ length: context.target }, (_, r) => `resume/${r}`),
  }),
  awaitLeft: ({ context }) => ({
    waiting: keys("left", removed(context).filter((r) => !context.left.includes(r))),
  }),
  awaitRemovedStopped: ({ context }) => ({ waiting: keys("stop", removed(context)) }),
  awaitUndone: ({ context }) => ({
    waiting: [...keys("stop", started(context)), ...keys("resume", context.paused)],
    // What was asked to reinitialize holds a reconfiguration, whether it answered or not.
    enginesToRestart: context.stage === "planning" ? [] : remaining(context),
  }),
  noteReply: ({ context, event }) => {
    const { rank } = event as Of<"engineReplied">;
    const slot = SLOTS.find((s) => context.waiting.includes(`${s}/${rank}`) && answers(event, s));
    return slot ? { waiting: without(context.waiting, `${slot}/${rank}`) } : {};
  },
  noteLaunched: ({ context, event }) => ({
    waiting: without(context.waiting, `launch/${(event as Of<"rankLaunched">).rank}`),
  }),
  noteReady: ({ context }) => ({ waiting: without(context.waiting, "ready") }),
  noteStopped: ({ context, event }) => ({
    waiting: without(context.waiting, `stop/${(event as Of<"rankStopped">).rank}`),
  }),
  noteJoined: ({ context, event }) => {
    const { rank } = event as Of<"joined">;
    return {
      joined: withRank(context.joined, rank),
      waiting: without(context.waiting, `frame/${rank}`),
    };
  },
  /** Each notification counts once, whoever repeats it. */
  noteNotified: ({ context, event }) => {
    const { rank, kind } = event as Of<"notified">;
    switch (kind) {
      case "NEW_CORE_ENGINES_INIT_READY":
        return { waiting: without(context.waiting, `init/${rank}`) };
      case "NEW_CORE_ENGINES_WEIGHTS_INIT_READY":
        return { waiting: without(context.waiting, `weights/${rank}`) };
      case "RECONFIGURE_FINISHED":
        return { waiting: without(context.waiting, "finished") };
      case "SHUTDOWN_COMPLETE":
        return gone(context, rank);
    }
  },
  /** A removed rank that is gone has left; nothing of it is waited for. */
  noteGone: ({ context, event }) => gone(context, (event as Of<"rankGone">).rank),
  /** Size, placement and launches change in one place, at once. */
  adoptPlan: ({ context }) => ({
    launches: context.planned!.ranks.map(({ rank }) => launchOf(context, rank)),
    placement: context.planned!,
  }),
  noteBroken: ({ context }) => ({
    enginesToRestart: Array.from(
      { length: Math.max(sizeOf(context), context.target) },
      (_, rank) => rank,
    ),
  }),
  noteRestarted: ({ context, event }) => ({
    enginesToRestart: context.enginesToRestart.filter((r) =>
      r !== (event as Of<"engineRestarted">).rank
    ),
  }),
  noteRegrouped: ({ event }) => {
    const { placement, launches } = event as Of<"regrouped">;
    return { placement, launches, enginesToRestart: [] };
  },
};

/** What internal scaling remembers, ready for the chart. */
export const assigns: Readonly<Record<string, ReturnType<typeof assign>>> = Object.fromEntries(
  Object.entries(changes).map(([name, change]) => [name, assign(change as never)]),
) as never;

function gone(context: RayScalingContext, rank: number): Partial<RayScalingContext> {
  return {
    left: withRank(context.left, rank),
    waiting: without(
      context.waiting,
      `left/${rank}`,
      `commit/${rank}`,
      `pause/${rank}`,
      `reinitialize/${rank}`,
    ),
  };
}

const METHODS: Readonly<Record<string, readonly string[]>> = {
  reinitialize: ["reinitialize_distributed"],
  pause: ["pause_scheduler"],
  commit: ["commit_prepared_elastic_ep", "reinitialize_distributed"],
  resume: ["resume_scheduler"],
  relay: ["eep_handle_engine_core_notification"],
};
const answers = (event: RayScalingEvent, slot: string): boolean =>
  METHODS[slot]!.includes((event as Of<"engineReplied">).method);
