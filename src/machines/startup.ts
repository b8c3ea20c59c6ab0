/**
 * Start-up as a whole: bind every socket, have the engines launched, and wait until each rank is ready
 * (wire spec, section 2.4; policies of failures as in DESIGN).
 *
 * The one owner of what belongs to nobody alone: how many are ready, the sum of blocks, the reference hash, the
 * statistics address that a front-end learns from its engines, and the first cause of a failure.
 */
import { assign, setup } from "xstate";
import { type Chart, effect, hold, type Output, tell } from "../kernel/mod.ts";
import type { Init } from "../protocol/mod.ts";
import type { RunConfiguration, Sockets } from "./configuration.ts";
import type { Announce, BusSocket, DrawPorts, HandshakeSocket } from "./effects.ts";
import type { ServeStore, StoreAddress } from "./effects/scaling.ts";
import type { Phase, RefusalReason } from "./engine.ts";
import type { Relaunch } from "./launcher.ts";

/** Why a start-up, or a formed cluster, is no more: the first cause. Views add when, where and what to do. */
export interface Failure {
  readonly code: FailureCode;
  /** The rank's instance id, where it is about one. */
  readonly of: string | null;
  readonly phase: Phase | null;
  readonly detail: Readonly<Record<string, string | number | boolean | null>>;
}

export type FailureCode =
  | "bind-failed"
  | "spawn-failed"
  | "keeper-lost"
  | "engine-exited"
  | "engine-silent"
  | "engine-late"
  | "engine-unresponsive"
  | "engine-restarted"
  | "engine-refused"
  | "configuration-mismatch"
  | "start-up-late"
  | "stranger";

export interface StartupInput {
  readonly sockets: Sockets;
  readonly parallelConfig: RunConfiguration["parallelConfig"];
  readonly drawsPorts: boolean;
  readonly parallelConfigHash: string | null;
  readonly comparesHashes: boolean;
  readonly size: number;
  /** Awaited here, as ranges with both ends included. */
  readonly ranks: readonly (readonly [number, number])[];
  /** Who may speak on the buses, where these are more: ranks that join later. */
  readonly busRanks?: readonly (readonly [number, number])[];
  readonly expected: number;
  readonly strict: boolean;
  readonly stopOnFailure: boolean;
  readonly totalMs: number;
  /** For each rank, when all of them start anew. */
  readonly rankLimits?: { readonly connectMs: number; readonly readyMs: number };
  /** Opens the store by which the ranks scale, and tells everybody where it is. */
  readonly scales?: boolean;
}

/** Socket name to part to endpoint: `{ bus0: { input: "tcp://...", output: "tcp://..." } }`. */
export type Endpoints = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface StartupContext extends StartupInput {
  /** Real endpoints of the sockets that are bound, by socket and part. */
  readonly bound: Endpoints;
  /** Ports of the ranks' groups; null until they are drawn. */
  readonly ports: readonly number[] | null;
  /** Where the coordination store serves; null until it does, or without one. */
  readonly store: StoreAddress | null;
  /** Somebody who outlives this coordinator can host the store. */
  readonly hosted: boolean;
  readonly connected: number;
  readonly ready: number;
  readonly blocks: { readonly sum: number; readonly min: number; readonly max: number } | null;
  readonly hash: string | null;
  readonly statsAddress: string | null;
  readonly failure: Failure | null;
}

type FromRank<T> = T & { from: string };

export type StartupEvent =
  | { type: "bound"; socket: string; endpoints: Readonly<Record<string, string>> }
  | { type: "portsDrawn"; ports: readonly number[] }
  /** The keeper answers: it hosts stores. */
  | { type: "keeperHired" }
  | { type: "storeServing"; address: StoreAddress }
  | { type: "storeServeFailed"; text: string }
  | { type: "bindFailed"; socket: string; text: string }
  | { type: "strangers"; kind: string; count: number; sample: string }
  | FromRank<{ type: "rankConnected" }>
  | FromRank<{ type: "rankTakenOver" }>
  /** Its process ended before READY, and is started again. */
  | FromRank<{ type: "rankAway" }>
  | FromRank<
    { type: "rankReady"; blocks: number | null; statsAddress: string | null; hash: string | null }
  >
  /** A rank that was ready already has told its blocks. */
  | FromRank<{ type: "rankBlocks"; blocks: number }>
  | FromRank<{ type: "rankRefused"; reason: RefusalReason; phase: Phase; message: string }>
  | FromRank<{ type: "rankLate"; phase: Phase }>
  | FromRank<{ type: "rankLost"; phase: Phase; code: number | null; signal: string | null }>
  | FromRank<{ type: "rankUnresponsive"; phase: Phase; afterMs: number; why: string | null }>
  | FromRank<{ type: "rankRestarted" }>
  | FromRank<{ type: "launchFailed"; text: string }>
  | FromRank<{ type: "launchSilent" }>
  | { type: "keeperLost"; text: string }
  | { type: "processesGone" }
  /** Everything that is to be launched anew has ended. */
  | { type: "launchesGone" }
  /** All engines are to start anew, as a group of this size: ranks 0 to size-1, all of them of this front-end. */
  | { type: "regroup"; size: number; next: Relaunch }
  /** The operator wants everything stopped. */
  | { type: "stop" };

/** The names of the sockets that must be bound before an engine is answered. */
const socketNames = ({ handshake: _, clients, coordinator }: Sockets): string[] => [
  "handshake",
  ...clients.flatMap((c, i) => c.ours ? [`bus${i}`] : []),
  ...(coordinator === null ? [] : ["coordinator"]),
];

/** Everything that INIT tells is known: all sockets but the handshake's own, and the ports. */
const canAnswer = (
  { bound, sockets, drawsPorts, ports, scales, store }: StartupContext,
): boolean =>
  (!drawsPorts || ports !== null) && (scales !== true || store !== null) &&
  socketNames(sockets).every((name) => name === "handshake" || bound[name] !== undefined);

const allBound = (context: StartupContext): boolean =>
  canAnswer(context) && context.bound["handshake"] !== undefined;

const withBlocks = ({ blocks: b }: StartupContext, blocks: number): StartupContext["blocks"] => ({
  sum: (b?.sum ?? 0) + blocks,
  min: Math.min(b?.min ?? blocks, blocks),
  max: Math.max(b?.max ?? blocks, blocks),
});

/** How many ports the ranks' groups are given: the last one is the first group's (wire spec, section 3). */
const GROUP_PORTS = 5;

function parallelConfigOf(
  { parallelConfig, ports, store }: StartupContext,
): Init["parallelConfig"] {
  if (parallelConfig === null) return {};
  return {
    ...parallelConfig,
    ...(ports === null ? {} : {
      data_parallel_master_port: ports.at(-1)!,
      _data_parallel_master_port_list: ports.slice(0, -1),
    }),
    ...(store === null ? {} : { _coord_store_port: store.port }),
  };
}

/** INIT for engines, once every socket has its real endpoint (wire spec, section 2.2). */
export function initOf(context: StartupContext): Init {
  const { bound, sockets } = context;
  const client = (part: "input" | "output") =>
    sockets.clients.map((c, i) => bound[`bus${i}`]?.[part] ?? c[part]);
  const coordinator = bound["coordinator"];
  return {
    addresses: {
      inputs: client("input"),
      outputs: client("output"),
      coordinatorInput: coordinator?.["backPublish"] ?? null,
      coordinatorOutput: coordinator?.["backOutput"] ?? null,
      frontendStatsPublish: coordinator?.["frontPublish"] ?? context.statsAddress,
    },
    parallelConfig: parallelConfigOf(context),
    parallelConfigHash: context.parallelConfigHash,
  };
}

/**
 * Our own sockets, at their real endpoints where these are known: after a restart the same ones are bound again. The handshake's comes
 * last, when there is an INIT to answer with: a HELLO that is heard earlier would have no answer.
 */
function ownSockets(context: StartupContext): Output[] {
  const { bound, sockets } = context;
  const handshake: HandshakeSocket = {
    type: "socket.handshake",
    bind: bound["handshake"]?.["bind"] ?? sockets.handshake,
    ranks: context.ranks,
    init: initOf(context),
  };
  const buses = sockets.clients.flatMap((c, client) => {
    if (!c.ours) return [];
    const at = bound[`bus${client}`];
    const bus: BusSocket = {
      type: "socket.bus",
      client,
      ranks: context.busRanks ?? context.ranks,
      input: at?.["input"] ?? c.input,
      output: at?.["output"] ?? c.output,
    };
    return [hold(`bus${client}`, bus)];
  });
  return canAnswer(context) ? [...buses, hold("handshake", handshake)] : buses;
}

/** `{handshake}`, `{handshake.host}`, `{handshake.port}` and `{bus0.input}`: what placeholders in arguments stand for. */
const flat = (bound: Endpoints): Record<string, string> =>
  Object.fromEntries(
    Object.entries(bound).flatMap(([socket, parts]) =>
      Object.entries(parts).flatMap(([part, endpoint]) => {
        const name = part === "bind" ? socket : `${socket}.${part}`;
        const [, host, port] = /^tcp:\/\/\[?([^\]]+)\]?:(\d+)$/.exec(endpoint) ?? [];
        return host === undefined
          ? [[name, endpoint]]
          : [[name, endpoint], [`${name}.host`, host], [`${name}.port`, port!]];
      })
    ),
  );

const failureOf = (event: StartupEvent, context: StartupContext): Failure => {
  const of = (event as { from?: string }).from ?? null;
  const phase = (event as { phase?: Phase }).phase ?? null;
  const { type: _type, from: _from, phase: _phase, ...detail } = event as unknown as Record<
    string,
    never
  >;
  const codes: Partial<Record<StartupEvent["type"], FailureCode>> = {
    bindFailed: "bind-failed",
    storeServeFailed: "bind-failed",
    launchFailed: "spawn-failed",
    launchSilent: "engine-silent",
    keeperLost: "keeper-lost",
    rankLost: "engine-exited",
    rankLate: "engine-late",
    rankUnresponsive: "engine-unresponsive",
    rankRestarted: "engine-restarted",
    rankRefused: "engine-refused",
    rankReady: "configuration-mismatch",
    strangers: "stranger",
  };
  const code = codes[event.type] ?? "start-up-late";
  if (code !== "configuration-mismatch") return { code, of, phase, detail };
  const expected = context.parallelConfigHash ?? context.hash;
  return { code, of, phase, detail: { ...detail, expected } };
};

/** Every rank of `ranks`, in order. */
const eachRank = ({ ranks }: Pick<StartupContext, "ranks">): number[] =>
  ranks.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i));

const rankIn = (of: string | null): string => of?.split("/")[1] ?? "";

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
      if (context.scales !== true || !context.hosted) return [];
      const host = String(context.parallelConfig?.["data_parallel_master_ip"]);
      return effect<ServeStore>({ type: "store.serve", host, epoch: "" });
    },
    noteHosted: assign({ hosted: true }),
    noteStore: assign({
      store: ({ event }) => (event as StartupEvent & { type: "storeServing" }).address,
    }),
    /** The front-ends of the ranks learn where they will agree, and rank 0's what it tells ranks that join. */
    tellTopologies: ({ context }): Output[] => {
      const { store, size } = context;
      if (store === null) return [];
      const { addresses } = initOf(context);
      return eachRank(context).map((rank) =>
        tell(`rank/${rank}/topology`, { type: "controlServing", address: store, addresses, size })
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
      eachRank(context).map((rank) =>
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
      context.scales === true ? tell("operations", { type: "clusterServing" }) : [],
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
        rankBlocks: {},
        strangers: {},
        keeperLost: {},
      },
    },
  },
});
