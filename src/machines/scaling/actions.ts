/** What a rank's scaling machine asks of the world and tells others, as data. */
import {
  effect,
  hold,
  type Output,
  release,
  start,
  STARTER,
  stop,
  tell,
} from "../../kernel/mod.ts";
import type {
  Bootstrap,
  EngineRequest,
  KeyValue,
  ScalingEffect,
  StoreAddress,
  StoreFact,
  StoreRole,
} from "../effects/scaling.ts";
import type { ScalingCause, ScalingContext, ScalingEvent } from "./context.ts";
import type { ScaleUpHandshakeInput } from "../scale-up-handshake.ts";

type Args = { context: ScalingContext; event: ScalingEvent };

/** One store call at a time: the next one in this slot supersedes the earlier. */
const STORE = "store";
const ENGINE = "engine";

const storeCall = (asked: ScalingEffect): Output => effect(asked, STORE);

const reconfigAt = (bootstrap: Bootstrap | null): StoreAddress => ({
  host: bootstrap?.masterIp ?? "",
  port: bootstrap?.storePort ?? 0,
});

const addressOf = (context: ScalingContext, store: StoreRole): StoreAddress =>
  store === "control" ? context.control : reconfigAt(context.bootstrap);

const write = (context: ScalingContext, store: StoreRole, sets: readonly KeyValue[]): Output =>
  storeCall({
    type: "store.write",
    store,
    at: addressOf(context, store),
    epoch: context.epoch,
    sets,
  });

const propose = (context: ScalingContext, propose: "commit" | "abort"): Output =>
  storeCall({ type: "store.decide", at: context.control, epoch: context.epoch, propose });

const call = (context: ScalingContext, request: EngineRequest): Output =>
  effect({ type: "engine.call", request, deadlineMs: context.limits.utilityMs }, ENGINE);

const watch = (
  context: ScalingContext,
  key: string,
  store: StoreRole,
  facts: readonly StoreFact[],
): Output =>
  hold(key, {
    type: "store.facts",
    store,
    at: addressOf(context, store),
    epoch: context.epoch,
    facts,
    oldSize: context.oldSize,
    target: context.target,
  });

const report = (context: ScalingContext, event: { type: string; [key: string]: unknown }) =>
  context.report === "" ? [] : [tell(context.report, event)];

/** The record under `<epoch>/bootstrap`, then what makes the epoch visible: the order is the contract. */
const publication = (context: ScalingContext): KeyValue[] => [
  { key: "bootstrap", value: context.bootstrap! },
  { key: "phase", value: "preparing" },
  ...(context.operation === "" ? [] : [{ key: "operation_id", value: context.operation } as const]),
  { key: "current_epoch", value: context.epoch },
];

export const storeActions: {
  readonly [name: string]: (args: Args) => Output | Output[];
} = {
  lookUpEpoch: ({ context }) => storeCall({ type: "store.lookUp", at: context.control }),
  abortEarlier: ({ context }) =>
    storeCall({
      type: "store.decide",
      at: context.control,
      epoch: context.earlier,
      propose: "abort",
    }),
  failEarlier: ({ context }) =>
    storeCall({
      type: "store.fail",
      store: "control",
      at: context.control,
      epoch: context.earlier,
      text: "External Elastic EP scaling was abandoned by rank 0.",
    }),
  watchEpoch: ({ context }) =>
    hold("epoch", {
      type: "store.epoch",
      at: context.control,
      operation: context.shared ? context.operation : null,
    }),
  stopWatchingEpoch: () => release("epoch"),
  openStore: ({ context }) =>
    storeCall({ type: "store.serve", host: context.masterIp, epoch: context.epoch }),
  drawEpoch: ({ context }) => effect({ type: "scaling.draw", host: context.masterIp }),
  publishOnControl: ({ context }) => write(context, "control", publication(context)),
  publishOnReconfig: ({ context }) => write(context, "reconfig", publication(context)),
  publishRedundancy: ({ context }) =>
    write(context, "control", [
      { key: "num_redundant_experts", value: String(context.redundancy) },
    ]),
  publishPrepared: ({ context }) =>
    write(context, "control", [
      { key: "prepared", value: "1" },
      ...(context.shared ? [{ key: "operation_epoch", value: context.operation } as const] : []),
    ]),
  join: ({ context }) =>
    write(context, "reconfig", [
      { key: "current_epoch", value: context.epoch },
      { key: "phase", value: "preparing" },
      { key: "decides", value: "1" },
    ]),
  castVote: ({ context }) => write(context, "reconfig", [{ key: "commit_ready", value: "1" }]),
  proposeCommit: ({ context }) => propose(context, "commit"),
  proposeAbort: ({ context }) => propose(context, "abort"),
  announceOnControl: ({ context }) =>
    write(context, "control", [{ key: "phase", value: "committing" }]),
  announceOnReconfig: ({ context }) =>
    write(context, "reconfig", [{ key: "phase", value: "committing" }]),
  recordFinish: ({ context }) =>
    write(context, "reconfig", [
      { key: context.remains ? "old_rank_finished" : "shutdown_complete", value: "1" },
    ]),
  completeOnControl: ({ context }) => write(context, "control", [{ key: "completed", value: "1" }]),
  completeOnReconfig: ({ context }) =>
    write(context, "reconfig", [
      { key: "completed", value: "1" },
      { key: "phase", value: "completed" },
    ]),
  completePhase: ({ context }) => write(context, "control", [{ key: "phase", value: "completed" }]),
  failOnControl: ({ context }) => fail(context, "control"),
  failOnReconfig: ({ context }) => fail(context, "reconfig"),
  checkEngineReady: ({ context }) => check(context, "eep_ready"),
  checkFinish: ({ context }) => check(context, "finished"),
  // Watches. Each wait holds the facts that it waits for, so a fact found earlier is found again.
  watchOutcome: ({ context }) =>
    watch(context, "outcome", "control", ["completed", "decision", "error"]),
  watchDecides: ({ context }) => watch(context, "decides", "reconfig", ["everyoneDecides"]),
  stopWatchingDecides: () => release("decides"),
  watchEngines: ({ context }) => watch(context, "wait", "reconfig", ["enginesReady"]),
  watchVotes: ({ context }) => watch(context, "wait", "reconfig", ["everyoneVoted"]),
  watchFinishes: ({ context }) =>
    context.leader ? watch(context, "wait", "reconfig", ["everyoneFinished"]) : [],
  stopWaiting: () => release("wait"),
};

const fail = (context: ScalingContext, store: StoreRole): Output =>
  storeCall({
    type: "store.fail",
    store,
    at: addressOf(context, store),
    epoch: context.epoch,
    text: textOf(context.cause),
  });

const check = (context: ScalingContext, key: "eep_ready" | "finished"): Output =>
  storeCall({ type: "store.check", at: reconfigAt(context.bootstrap), epoch: context.epoch, key });

/** What others read under `error`. */
export const textOf = (cause: ScalingCause | null): string =>
  cause === null ? "External Elastic EP scaling failed." : cause.text;

export const engineActions: {
  readonly [name: string]: (args: Args) => Output | Output[];
} = {
  reinitialize: ({ context }) =>
    call(context, {
      method: "reinitialize_distributed",
      bootstrap: context.bootstrap!,
      leave: false,
    }),
  // A rank that leaves drops what it runs; the others keep it.
  pause: ({ context }) =>
    call(context, { method: "pause_scheduler", mode: context.remains ? "keep" : "abort" }),
  askPaused: ({ context }) => call(context, { method: "is_scheduler_paused" }),
  requestCommit: ({ context }) =>
    call(
      context,
      context.remains ? { method: "commit_prepared_elastic_ep" } : {
        method: "reinitialize_distributed",
        bootstrap: context.bootstrap!,
        leave: true,
      },
    ),
  resume: ({ context }) => call(context, { method: "resume_scheduler" }),
};

/** Whether the engine cannot go on as it is: it cannot abandon a prepared reconfiguration, and one that did not resume stands still. */
export const restarts = (context: ScalingContext): boolean =>
  context.outcome === "completed" ? context.engineToRestart : context.engineTouched;

export const tellActions: {
  readonly [name: string]: (args: Args) => Output | Output[];
} = {
  sayPrepared: ({ context }) => report(context, { type: "rankPrepared" }),
  /** New ranks can be started now. */
  sayGreeting: ({ context, event }) =>
    report(context, {
      type: "rankGreeting",
      endpoint: (event as ScalingEvent & { type: "handshakeListening" }).endpoint,
    }),
  sayDecided: ({ context }) => report(context, { type: "rankCommitting" }),
  sayTooLate: ({ context }) =>
    report(context, { type: "rankTooLate", text: "the commit is decided" }),
  sayInDoubt: ({ context }) =>
    report(context, {
      type: "rankInDoubt",
      settledBy: context.leader
        ? "the finish keys of every old rank"
        : "rank 0's record in the control store",
    }),
  sayEnded: ({ context }) =>
    report(context, {
      type: "rankEnded",
      outcome: context.outcome,
      cause: context.cause,
      engineToRestart: restarts(context),
      topology: context.outcome === "completed"
        ? { epoch: context.epoch, bootstrap: context.bootstrap, redundancy: context.redundancy }
        : null,
    }),
  /** The next notification of this engine is about this operation. */
  claimNotification: ({ context }) =>
    tell(STARTER, { type: "engineSwitching", operation: context.operation }),
  keepStore: ({ context }) =>
    tell(STARTER, {
      type: "storeOpened",
      epoch: context.epoch,
      address: reconfigAt(context.bootstrap),
    }),
  takeOver: ({ context }) =>
    tell(STARTER, {
      type: "topologyDecided",
      size: context.target,
      epoch: context.epoch,
      bootstrap: context.bootstrap,
      redundancy: context.redundancy,
      remains: context.remains,
    }),
  greetNewRanks: ({ context }) => {
    const { bind, form, maxSize, ...addresses } = context.handshake!;
    const bootstrap = context.bootstrap!;
    const input: ScaleUpHandshakeInput = {
      first: context.oldSize,
      last: context.target - 1,
      bind,
      reply: {
        form,
        addresses,
        parallelConfig: {
          data_parallel_master_ip: bootstrap.masterIp,
          data_parallel_master_port: bootstrap.masterPort,
          _data_parallel_master_port_list: bootstrap.masterPorts,
          data_parallel_size: bootstrap.size,
          elastic_ep_max_dp_size: maxSize,
          _coord_store_port: bootstrap.storePort,
        },
        redundantExperts: context.redundancy,
      },
    };
    return start("../../greeting", "scale-up-handshake", input as never);
  },
  stopGreeting: ({ context }) => context.leader ? stop("../../greeting") : [],
};
