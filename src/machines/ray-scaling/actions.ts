import { effect, hold, type Output, release, tell } from "../../kernel/mod.ts";
import type { CallRank, RaySnapshot, RayStart, RayStop } from "../effects/ray.ts";
import type {
  AnswerOperation,
  DrawEpoch,
  KeepStore,
  ServeStore,
  WatchFacts,
} from "../effects/scaling.ts";
import {
  launchOf,
  newRanks,
  oldRanks,
  type RayScalingContext,
  type RayScalingEvent,
  refusalOf,
  remaining,
  removed,
  sizeOf,
  started,
} from "./context.ts";

type Args = { context: RayScalingContext; event: RayScalingEvent };
type Ask = (args: Args) => Output | Output[];
type Asked = RayScalingEvent & { type: "scale" };

const call = (c: RayScalingContext, rank: number, request: CallRank["request"], slot: string) =>
  effect<CallRank>(
    { type: "rank.call", rank, request, deadlineMs: c.deadlineMs },
    `${slot}/${rank}`,
  );

const answer = (
  operation: string,
  outcome: AnswerOperation["outcome"],
  text: string | null = null,
) => effect<AnswerOperation>({ type: "operation.answer", operation, outcome, text });

const stopRank = (c: RayScalingContext, rank: number) =>
  effect<RayStop>({ type: "ray.stop", launch: launchOf(c, rank), rank }, `stop/${rank}`);

const relay =
  (notification: "NEW_CORE_ENGINES_INIT_READY" | "NEW_CORE_ENGINES_WEIGHTS_INIT_READY") =>
  ({ context }: Args): Output[] =>
    oldRanks(context).map((rank) =>
      call(context, rank, { method: "eep_handle_engine_core_notification", notification }, "relay")
    );

/** What internal scaling says to the world; each returns its outputs as data. */
export const asks: Readonly<Record<string, Ask>> = {
  askSnapshot: () => effect<RaySnapshot>({ type: "ray.snapshot" }),
  askDraw: ({ context }: Args) =>
    effect<DrawEpoch>({ type: "scaling.draw", host: context.masterIp }),
  askStore: ({ context }: Args) =>
    effect<ServeStore>({ type: "store.serve", host: context.masterIp, epoch: context.epoch }),
  keepStore: ({ context }: Args) =>
    hold<KeepStore>("store/next", {
      type: "store.server",
      at: context.store!,
      epoch: context.epoch,
    }),
  watchReady: ({ context }: Args) =>
    hold<WatchFacts>("ready", {
      type: "store.facts",
      store: "reconfig",
      at: context.store!,
      epoch: context.epoch,
      facts: ["enginesReady"],
      oldSize: sizeOf(context),
      target: context.target,
    }),
  stopWatching: () => release("ready"),
  /** Each rank that stays keeps its rank; in the relay flow those that go are told at once. */
  askReinitialize: ({ context }: Args): Output[] => {
    const leavers = context.flow === "relay" ? removed(context) : [];
    return [...remaining(context), ...leavers].map((rank) =>
      call(context, rank, {
        method: "reinitialize_distributed",
        bootstrap: context.bootstrap!,
        leave: rank >= context.target,
      }, "reinitialize")
    );
  },
  /** Only ranks that are new are started (the original's slice of the last 0 runs every remote one again). */
  askLaunches: ({ context }: Args): Output[] =>
    newRanks(context).map((rank) =>
      effect<RayStart>({
        type: "ray.start",
        launch: launchOf(context, rank),
        rank: context.planned!.ranks[rank]!,
        deviceKey: context.planned!.deviceKey,
        bootstrap: context.bootstrap!,
      }, `launch/${rank}`)
    ),
  askPause: ({ context }: Args): Output[] =>
    oldRanks(context).map((rank) =>
      call(context, rank, {
        method: "pause_scheduler",
        mode: rank < context.target ? "keep" : "abort",
      }, "pause")
    ),
  askCommit: ({ context }: Args): Output[] => [
    ...remaining(context).map((rank) =>
      call(context, rank, { method: "commit_prepared_elastic_ep" }, "commit")
    ),
    ...removed(context).map((rank) =>
      call(context, rank, {
        method: "reinitialize_distributed",
        bootstrap: context.bootstrap!,
        leave: true,
      }, "commit")
    ),
  ],
  relayInit: relay("NEW_CORE_ENGINES_INIT_READY"),
  relayWeights: relay("NEW_CORE_ENGINES_WEIGHTS_INIT_READY"),
  tellCoordinator: ({ context }: Args) => tell("waves", { type: "scaled", size: context.target }),
  askResume: ({ context }: Args): Output[] =>
    Array.from(
      { length: context.target },
      (_, rank) => call(context, rank, { method: "resume_scheduler" }, "resume"),
    ),
  /** By rank: not the last ones of a list (the original pops whatever was created last). */
  stopRemoved: ({ context }: Args): Output[] =>
    removed(context).map((rank) => stopRank(context, rank)),
  stopNew: ({ context }: Args): Output[] => started(context).map((rank) => stopRank(context, rank)),
  resumePaused: ({ context }: Args): Output[] =>
    context.paused.map((rank) => call(context, rank, { method: "resume_scheduler" }, "resume")),
  /** The store of the operation serves from now on; the one before it goes. */
  adoptStore: ({ context }: Args): Output[] => [
    hold<KeepStore>("store", { type: "store.server", at: context.store!, epoch: context.epoch }),
    release("store/next"),
  ],
  dropStore: (): Output[] => [release("ready"), release("store/next")],
  answerSame: ({ event }: Args) => answer((event as Asked).operation, "completed"),
  answerJoined: ({ event }: Args) => answer((event as Asked).operation, "joined"),
  answerRefused: ({ context, event }: Args) => {
    const { operation, target } = event as Asked;
    return answer(operation, "refused", refusalOf(context, target));
  },
  answerBusy: ({ context, event }: Args) =>
    answer(
      (event as Asked).operation,
      "refused",
      `operation ${context.operation} to ${context.target} ranks is running`,
    ),
  answerBroken: ({ event }: Args) =>
    answer(
      (event as Asked).operation,
      "refused",
      "the topology is not known: start the ranks anew",
    ),
  answerAccepted: ({ context }: Args) => answer(context.operation, "accepted"),
  answerCompleted: ({ context }: Args) => answer(context.operation, "completed"),
  answerFailed: ({ context }: Args) =>
    answer(context.operation, "failed", context.failure?.text ?? "it failed"),
};
