/**
 * Start-up as a whole: bind every socket, have the engines launched, and wait until each rank is ready
 * (wire spec, section 2.4; policies of failures as in DESIGN).
 *
 * The one owner of what belongs to nobody alone: how many are ready, the sum of blocks, the reference hash, the
 * statistics address that a front-end learns from its engines, and the first cause of a failure.
 */
import { assign, setup } from "xstate";
import { type Chart, effect, type Output, tell } from "../kernel/mod.ts";
import type { Announce, DrawPorts } from "./effects.ts";
import type { ServeStore } from "./effects/scaling.ts";
import {
  allBound,
  eachRank,
  failureOf,
  flat,
  GROUP_PORTS,
  initOf,
  masterOf,
  ownSockets,
  rankIn,
  type StartupContext,
  type StartupEvent,
  type StartupInput,
  withBlocks,
} from "./startup/context.ts";

/** Said in READY and in the first frame: once is enough. */
const LEARNS_STORE = [
  { guard: "isNews", actions: ["noteLearntStore", "tellTopologies"] },
  {},
] as const;

export const startup: Chart<StartupContext, StartupEvent> = setup({
  types: {} as { context: StartupContext; events: StartupEvent; input: StartupInput },
  delays: { startupDeadline: ({ context }) => context.totalMs },
  guards: {
    everySocketBound: ({ context }) => allBound(context),
    everyRankReady: ({ context }) => context.ready === context.expected,
    isStrict: ({ context }) => context.strict,
    hashDiffers: ({ context, event }) => {
      if (!context.comparesHashes) return false;
      const { hash } = event as StartupEvent & { type: "rankReady" };
      // A release without hashes cannot be compared; the original counts an absent one as different.
      if (hash === null) {
        return context.strict && (context.hash ?? context.parallelConfigHash) !== null;
      }
      const reference = context.parallelConfigHash ?? context.hash;
      return reference !== null && hash !== reference;
    },
    learnsStatistics: ({ context, event }) =>
      context.statsAddress === null &&
      (event as StartupEvent & { type: "rankReady" }).statsAddress !== null,
    blocksMissing: ({ context, event }) =>
      context.strict && (event as StartupEvent & { type: "rankReady" }).blocks === null,
    holds: ({ context }) => !context.stopOnFailure,
    isNews: ({ context }) => context.learnsStore === true && context.store === null,
  },
  actions: {
    bindSockets: ({ context }) => ownSockets(context),
    noteBound: assign(({ context, event }) => {
      const { socket, endpoints } = event as StartupEvent & { type: "bound" };
      return { bound: { ...context.bound, [socket]: endpoints } };
    }),
    drawPorts: ({ context }) => {
      if (!context.drawsPorts) return [];
      const host = context.parallelConfig?.["data_parallel_master_ip"];
      return effect<DrawPorts>({ type: "ports.draw", host: String(host), count: GROUP_PORTS });
    },
    openStore: ({ context }) => {
      if (context.scales !== true || context.learnsStore === true || !context.hosted) return [];
      return effect<ServeStore>({ type: "store.serve", host: masterOf(context), epoch: "" });
    },
    noteLearntStore: assign(({ context, event }) => {
      const { port, redundant } = event as StartupEvent & { type: "rankStore" };
      return {
        store: { host: masterOf(context), port },
        ...(redundant === undefined ? {} : { redundant }),
      };
    }),
    noteHosted: assign({ hosted: true }),
    noteStore: assign({
      store: ({ event }) => (event as StartupEvent & { type: "storeServing" }).address,
    }),
    /** The front-ends of the ranks learn where they will agree, and rank 0's what it tells ranks that join. */
    tellTopologies: ({ context }): Output[] => {
      const { store, size, redundant } = context;
      if (store === null) return [];
      const { addresses } = initOf(context);
      return eachRank(context.fronts ?? context.ranks).map((rank) =>
        tell(`rank/${rank}/topology`, {
          type: "controlServing",
          address: store,
          addresses,
          size,
          ...(redundant === undefined ? {} : { redundant }),
        })
      );
    },
    /** What the group of before agreed on is over: ports and store are drawn afresh, and everybody is counted again. */
    noteRegroup: assign(({ context, event }) => {
      const { size } = event as StartupEvent & { type: "regroup" };
      return {
        size,
        expected: size,
        ranks: [[0, size - 1] as const],
        parallelConfig: context.parallelConfig === null
          ? null
          : { ...context.parallelConfig, data_parallel_size: size },
        ports: null,
        store: null,
        connected: 0,
        ready: 0,
        blocks: null,
        hash: null,
      };
    }),
    recycleLaunches: ({ event }) =>
      tell("launcher", {
        type: "recycle",
        next: (event as StartupEvent & { type: "regroup" }).next as never,
      }),
    restartEngines: ({ context }): Output[] =>
      eachRank(context.ranks).map((rank) =>
        tell(`rank/${rank}/engine`, {
          type: "restart",
          ...(context.rankLimits ?? { connectMs: context.totalMs, readyMs: context.totalMs }),
        })
      ),
    regatherWaves: ({ context }) =>
      context.sockets.coordinator === null
        ? []
        : tell("waves", { type: "regrouped", size: context.size }),
    /** Operations are taken while the cluster serves. */
    tellServing: ({ context }) =>
      context.scales === true
        ? tell("operations", {
          type: "clusterServing",
          ...(context.redundant === undefined ? {} : { redundant: context.redundant }),
        })
        : [],
    tellBroken: ({ context, event }) => {
      if (context.scales !== true) return [];
      const { failure } = context;
      const rank = rankIn(failure?.of ?? null);
      const text = event.type === "regroup"
        ? "its engines are started anew"
        : failure === null
        ? "it is being stopped"
        : `${rank === "" ? "" : `rank ${rank}: `}${failure.code}`;
      return tell("operations", { type: "clusterBroken", text });
    },
    notePorts: assign({
      ports: ({ event }) => (event as StartupEvent & { type: "portsDrawn" }).ports,
    }),
    answerEngines: ({ context }) => ownSockets(context),
    launch: ({ context }) => tell("launcher", { type: "open", endpoints: flat(context.bound) }),
    countConnected: assign({ connected: ({ context }) => context.connected + 1 }),
    uncountConnected: assign({ connected: ({ context }) => context.connected - 1 }),
    countReady: assign(({ context, event }) => {
      const { blocks, statsAddress, hash } = event as StartupEvent & { type: "rankReady" };
      return {
        ready: context.ready + 1,
        blocks: blocks === null ? context.blocks : withBlocks(context, blocks),
        hash: context.hash ?? hash,
        statsAddress: context.statsAddress ?? statsAddress,
      };
    }),
    countBlocks: assign({
      blocks: ({ context, event }) =>
        withBlocks(context, (event as StartupEvent & { type: "rankBlocks" }).blocks),
    }),
    fail: assign({ failure: ({ context, event }) => context.failure ?? failureOf(event, context) }),
    stopProcesses: () => tell("launcher", { type: "stop" }),
    announceFormed: () => effect<Announce>({ type: "announce", what: "formed" }),
    announceFailed: () => effect<Announce>({ type: "announce", what: "failed" }),
    announceStopped: () => effect<Announce>({ type: "announce", what: "stopped" }),
  },
}).createMachine({
  id: "startup",
  context: ({ input }) => ({
    ...input,
    bound: {},
    ports: null,
    store: null,
    hosted: false,
    connected: 0,
    ready: 0,
    blocks: null,
    hash: null,
    statsAddress: null,
    failure: null,
  }),
  initial: "starting",
  states: {
    starting: {
      initial: "binding",
      meta: { timers: { startupDeadline: "deadline" } },
      after: { startupDeadline: { target: "failed", actions: "fail" } },
      on: {
        bindFailed: { target: "failed", actions: "fail" },
        launchFailed: { target: "failed", actions: "fail" },
        launchSilent: { target: "failed", actions: "fail" },
        keeperLost: { target: "failed", actions: "fail" },
        rankLost: { target: "failed", actions: "fail" },
        rankLate: { target: "failed", actions: "fail" },
        rankUnresponsive: { target: "failed", actions: "fail" },
        rankRestarted: { target: "failed", actions: "fail" },
        rankRefused: [{ guard: "isStrict", target: "failed", actions: "fail" }, {}],
        strangers: [{ guard: "isStrict", target: "failed", actions: "fail" }, {}],
        rankTakenOver: {},
        rankStore: {},
        stop: "stopping",
      },
      states: {
        /** All engines start anew: those that run have to end first. */
        regrouping: { on: { launchesGone: "binding", bound: {}, rankBlocks: {} } },
        binding: {
          entry: ["bindSockets", "drawPorts", "openStore"],
          on: {
            bound: { actions: ["noteBound", "bindSockets"] },
            portsDrawn: { actions: ["notePorts", "bindSockets"] },
            // A store in this process would end with it, and its clients never connect again.
            keeperHired: { actions: ["noteHosted", "openStore"] },
            storeServing: { actions: ["noteStore", "bindSockets"] },
            storeServeFailed: { target: "#startup.failed", actions: "fail" },
          },
          always: { guard: "everySocketBound", target: "forming" },
        },
        forming: {
          entry: ["tellTopologies", "answerEngines", "launch"],
          on: {
            bound: {},
            rankConnected: { actions: "countConnected" },
            rankAway: { actions: "uncountConnected" },
            rankStore: LEARNS_STORE,
            rankBlocks: { actions: "countBlocks" },
            rankReady: [
              {
                guard: "blocksMissing",
                target: "#startup.failed",
                actions: ["countReady", "fail"],
              },
              { guard: "hashDiffers", target: "#startup.failed", actions: ["countReady", "fail"] },
              // A front-end that learns the statistics address from a READY hands it on in later INITs.
              { guard: "learnsStatistics", actions: ["countReady", "answerEngines"] },
              { actions: "countReady" },
            ],
          },
          always: { guard: "everyRankReady", target: "#startup.formed" },
        },
      },
    },
    formed: {
      entry: ["announceFormed", "tellServing"],
      on: {
        regroup: {
          target: "starting.regrouping",
          actions: [
            "noteRegroup",
            "tellBroken",
            "recycleLaunches",
            "restartEngines",
            "regatherWaves",
          ],
        },
        launchesGone: {},
        rankStore: LEARNS_STORE,
        bound: {},
        // After a restart somebody else may have the address.
        bindFailed: { target: "failed", actions: "fail" },
        strangers: {},
        // The launch of a rank that joins; its operation hears of it.
        launchFailed: {},
        rankBlocks: { actions: "countBlocks" },
        rankRefused: {},
        // An engine that serves has nothing to say.
        launchSilent: {},
        rankLost: { target: "failed", actions: "fail" },
        rankUnresponsive: { target: "failed", actions: "fail" },
        rankRestarted: { target: "failed", actions: "fail" },
        keeperLost: { target: "failed", actions: "fail" },
        stop: "stopping",
      },
    },
    failed: {
      entry: ["announceFailed", "tellBroken"],
      initial: "deciding",
      on: {
        regroup: {},
        launchesGone: {},
        keeperHired: {},
        bound: {},
        portsDrawn: {},
        storeServing: {},
        storeServeFailed: {},
        bindFailed: {},
        strangers: {},
        launchFailed: {},
        launchSilent: {},
        keeperLost: {},
        rankConnected: {},
        rankAway: {},
        rankTakenOver: {},
        rankReady: {},
        rankRefused: {},
        rankLate: {},
        rankLost: {},
        rankStore: {},
        rankBlocks: {},
        rankUnresponsive: {},
        rankRestarted: {},
      },
      states: {
        deciding: {
          always: [{ guard: "holds", target: "held" }, { target: "clearing" }],
        },
        held: { on: { stop: "clearing" } },
        clearing: {
          entry: "stopProcesses",
          on: { processesGone: "cleared", stop: {} },
        },
        // Asked again, it says so again: whoever heard it first may be gone.
        cleared: { entry: "announceStopped", on: { stop: { actions: "announceStopped" } } },
      },
    },
    stopping: {
      entry: ["stopProcesses", "tellBroken"],
      on: {
        regroup: {},
        launchesGone: {},
        keeperHired: {},
        processesGone: "stopped",
        bound: {},
        bindFailed: {},
        portsDrawn: {},
        storeServing: {},
        storeServeFailed: {},
        strangers: {},
        stop: {},
        rankConnected: {},
        rankAway: {},
        rankReady: {},
        rankStore: {},
        rankBlocks: {},
        rankLost: {},
        rankLate: {},
        rankRefused: {},
        rankTakenOver: {},
        rankUnresponsive: {},
        rankRestarted: {},
        launchFailed: {},
        launchSilent: {},
        keeperLost: {},
      },
    },
    stopped: {
      entry: "announceStopped",
      on: {
        regroup: {},
        launchesGone: {},
        keeperHired: {},
        stop: { actions: "announceStopped" },
        rankUnresponsive: {},
        bound: {},
        bindFailed: {},
        portsDrawn: {},
        storeServing: {},
        storeServeFailed: {},
        // Engines of others go on, and so do their deadlines.
        rankConnected: {},
        rankTakenOver: {},
        rankReady: {},
        rankRefused: {},
        rankLate: {},
        rankAway: {},
        rankRestarted: {},
        rankLost: {},
        rankStore: {},
        rankBlocks: {},
        strangers: {},
        keeperLost: {},
      },
    },
  },
});
