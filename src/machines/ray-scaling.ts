/**
 * Internal elastic scaling over a Ray cluster (wire spec, section 6): one owner of size, placement and launches, one
 * operation at a time, and both generations of the notification flow.
 *
 * serving -> planning -> preparing -> committing -> leaving -> serving; a failure before anything was committed is undone,
 * one after it is `broken`, and says so.
 */
import { setup } from "xstate";
import type { Chart } from "../kernel/mod.ts";
import { asks } from "./ray-scaling/actions.ts";
import { assigns, planOf } from "./ray-scaling/assigns.ts";
import {
  newRanks,
  type RayScalingContext,
  type RayScalingEvent,
  type RayScalingInput,
  refusalOf,
  sizeOf,
  type Stage,
} from "./ray-scaling/context.ts";

export type {
  NotificationFlow,
  RayScalingContext,
  RayScalingEvent,
  RayScalingInput,
} from "./ray-scaling/context.ts";

type Args = { context: RayScalingContext; event: RayScalingEvent };
// deno-lint-ignore no-explicit-any -- as many kinds of parameters as there are actions
type Actions = Record<string, (args: any, params: any) => void>;
type Asked = RayScalingEvent & { type: "scale" };

/** Before anything was committed a failure is undone; from then on nobody can say how far the engines are. */
const UNDONE = [
  {
    guard: { type: "isAt", params: { stage: "planning" } },
    target: "#undoing",
    actions: "noteFailure",
  },
  {
    guard: { type: "isAt", params: { stage: "preparing" } },
    target: "#undoing",
    actions: "noteFailure",
  },
] as const;
const FAILED = [
  ...UNDONE,
  {
    guard: { type: "isAt", params: { stage: "committing" } },
    target: "#broken",
    actions: "noteFailure",
  },
] as const;
const settled = (...kinds: string[]) => ({ type: "settled", params: { kinds } }) as const;
const at = (stage: Stage) => ({ type: "noteStage", params: { stage } }) as const;

export const rayScaling: Chart<RayScalingContext, RayScalingEvent> = setup({
  types: {} as { context: RayScalingContext; events: RayScalingEvent; input: RayScalingInput },
  delays: {
    deadline: ({ context }: { context: RayScalingContext }) => context.deadlineMs,
    settle: ({ context }: { context: RayScalingContext }) => context.settleMs,
  },
  guards: {
    isCurrentSize: ({ context, event }: Args) =>
      (event as Asked).target === sizeOf(context) && context.enginesToRestart.length === 0,
    isPossible: ({ context, event }: Args) => refusalOf(context, (event as Asked).target) === null,
    isSame: ({ context, event }: Args) => (event as Asked).target === context.target,
    grows: ({ context }: Args) => context.target > sizeOf(context),
    fits: ({ context, event }: Args) => planOf(context, event) !== null,
    relays: ({ context }: Args) => context.flow === "relay",
    isAt: ({ context }: Args, params: { stage: Stage }) => context.stage === params.stage,
    /** Nothing of these kinds is awaited any more. */
    settled: ({ context }: Args, { kinds }: { kinds: string[] }) =>
      !context.waiting.some((w) => kinds.length === 0 || kinds.includes(w.split("/")[0]!)),
    someoneJoins: ({ context }: Args) => newRanks(context).length > 0,
    someoneLeaves: ({ context }: Args) => context.target < sizeOf(context),
    isLeaver: ({ context, event }: Args) =>
      context.target < sizeOf(context) && (event as { rank: number }).rank >= context.target,
  },
  actions: { ...asks, ...assigns } as unknown as Actions,
}).createMachine({
  id: "ray-scaling",
  context: ({ input }) => ({
    ...input,
    operation: "",
    target: input.placement.ranks.length,
    stage: "planning",
    planned: null,
    bootstrap: null,
    store: null,
    epoch: "",
    waiting: [],
    joined: [],
    left: [],
    paused: [],
    failure: null,
    enginesToRestart: [],
  }),
  initial: "serving",
  on: {
    scale: [
      { guard: "isSame", actions: "answerJoined" },
      { actions: "answerBusy" },
    ],
    // A late word of an operation that is over changes nothing.
    notified: {},
    joined: {},
    engineReplied: {},
    engineFailed: {},
    rankStopped: {},
    rankLaunched: {},
    rankLaunchFailed: {},
    enginesReady: {},
    rankGone: {},
    abort: {},
    storeLost: {},
    engineRestarted: { actions: "noteRestarted" },
    regrouped: { target: ".serving", actions: "noteRegrouped" },
  },
  states: {
    serving: {
      on: {
        scale: [
          { guard: "isCurrentSize", actions: "answerSame" },
          {
            guard: "isPossible",
            target: "operating",
            actions: ["noteOperation", "answerAccepted"],
          },
          { actions: "answerRefused" },
        ],
      },
    },
    operating: {
      initial: "planning",
      after: { deadline: FAILED },
      on: {
        abort: UNDONE,
        snapshotFailed: FAILED,
        drawFailed: FAILED,
        storeServeFailed: FAILED,
        storeLost: FAILED,
        rankLaunchFailed: FAILED,
        engineFailed: [{ guard: "isLeaver" as const, actions: "noteReply" }, ...FAILED],
        rankGone: [{ guard: "isLeaver" as const, actions: "noteGone" }, ...FAILED],
        engineReplied: { actions: "noteReply" },
        rankLaunched: { actions: "noteLaunched" },
        enginesReady: { actions: "noteReady" },
        joined: { actions: "noteJoined" },
      },
      states: {
        planning: {
          entry: "askSnapshot",
          on: {
            snapshotTaken: [
              { guard: "fits", target: "drawing", actions: "notePlan" },
              { target: "#undoing", actions: "noteShortfall" },
            ],
          },
        },
        drawing: {
          entry: "askDraw",
          on: { drawn: { target: "opening", actions: "noteDrawn" } },
        },
        opening: {
          entry: "askStore",
          on: {
            storeServing: [
              { guard: "relays", target: "relaying", actions: ["noteStore", "keepStore"] },
              { target: "preparing", actions: ["noteStore", "keepStore"] },
            ],
          },
        },
        /** Every rank of the target reaches its commit point: old ones while they serve, new ones as they start. */
        preparing: {
          entry: [at("preparing"), "awaitPrepared", "watchReady", "askReinitialize", "askLaunches"],
          exit: "stopWatching",
          always: { guard: settled(), target: "pausing" },
        },
        pausing: {
          entry: ["awaitPaused", "askPause"],
          always: { guard: settled(), target: "committing" },
        },
        committing: {
          entry: [at("committing"), "awaitCommitted", "askCommit"],
          on: { notified: { actions: "noteNotified" } },
          always: { guard: settled(), target: "resuming" },
        },
        /** Middle releases: the client passes on what new ranks tell. */
        relaying: {
          initial: "initialising",
          on: { notified: { actions: "noteNotified" } },
          states: {
            initialising: {
              entry: [at("preparing"), "awaitInit", "askReinitialize", "askLaunches"],
              always: [
                { guard: "someoneLeaves", target: "finishing" },
                { guard: settled("launch", "init"), target: "weighing" },
              ],
            },
            weighing: {
              entry: ["awaitWeights", "relayInit"],
              always: { guard: settled("relay", "weights"), target: "relayingWeights" },
            },
            relayingWeights: {
              entry: "relayWeights",
              always: "finishing",
            },
            finishing: {
              entry: [at("committing"), "awaitFinished"],
              always: { guard: settled(), target: "#resuming" },
            },
          },
        },
        resuming: {
          id: "resuming",
          initial: "choosing",
          on: { notified: { actions: "noteNotified" } },
          states: {
            choosing: {
              entry: "tellCoordinator",
              always: [{ guard: "relays", target: "#left" }, { target: "asking" }],
            },
            asking: {
              entry: ["awaitResumed", "askResume"],
              always: { guard: settled(), target: "#left" },
            },
          },
        },
        /** Removed ranks leave by themselves; those that do not are ended after a while. */
        leaving: {
          id: "left",
          entry: [at("leaving"), "awaitLeft"],
          on: { notified: { actions: "noteNotified" } },
          after: { settle: "stopping" },
          always: { guard: settled(), target: "stopping" },
        },
        stopping: {
          entry: ["awaitRemovedStopped", "stopRemoved"],
          on: { rankStopped: { actions: "noteStopped" }, notified: {} },
          always: { guard: settled(), target: "#completed" },
        },
      },
    },
    completed: {
      id: "completed",
      entry: ["adoptPlan", "adoptStore", "answerCompleted"],
      always: "serving",
    },
    /** New ranks are stopped, paused ones resumed, the store is dropped; size and placement never changed. */
    undoing: {
      id: "undoing",
      entry: ["awaitUndone", "stopNew", "resumePaused", "dropStore"],
      on: {
        rankStopped: { actions: "noteStopped" },
        engineReplied: { actions: "noteReply" },
        engineFailed: { actions: "noteReply" },
      },
      after: { settle: "failed" },
      always: { guard: settled(), target: "failed" },
    },
    failed: {
      entry: "answerFailed",
      always: "serving",
    },
    /** Engines were told to switch and did not all say that they did: nobody knows the topology. */
    broken: {
      id: "broken",
      entry: ["noteBroken", "answerFailed"],
      on: { scale: { actions: "answerBroken" } },
    },
  },
});
