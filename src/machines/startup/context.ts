/** What the start-up knows and hears, and what follows from it without any state: endpoints, INIT, sockets, the first cause. */
import { hold, type Output } from "../../kernel/mod.ts";
import type { Init } from "../../protocol/mod.ts";
import type { RunConfiguration, Sockets } from "../configuration.ts";
import type { BusSocket, HandshakeSocket } from "../effects.ts";
import type { StoreAddress } from "../effects/scaling.ts";
import type { Phase, RefusalReason } from "../engine.ts";
import type { Relaunch } from "../launcher.ts";

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
  /** The ranks scale by a store: it is opened here, and everybody is told where it is. */
  readonly scales?: boolean;
  /** Another front-end opens that store; an engine that shook hands there tells where it is. */
  readonly learnsStore?: boolean;
  /** Ranks whose front-ends are here, where these are not all that are awaited. */
  readonly fronts?: readonly (readonly [number, number])[];
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
  /** Redundant experts, as an engine that joined was told; the configuration says it otherwise. */
  readonly redundant?: number;
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
  /** Where the store is that another front-end opened. */
  | FromRank<{ type: "rankStore"; port: number; redundant?: number }>
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
  { bound, sockets, drawsPorts, ports, scales, learnsStore, store }: StartupContext,
): boolean =>
  (!drawsPorts || ports !== null) &&
  (scales !== true || learnsStore === true || store !== null) &&
  socketNames(sockets).every((name) => name === "handshake" || bound[name] !== undefined);

export const allBound = (context: StartupContext): boolean =>
  canAnswer(context) && context.bound["handshake"] !== undefined;

export const withBlocks = (
  { blocks: b }: StartupContext,
  blocks: number,
): StartupContext["blocks"] => ({
  sum: (b?.sum ?? 0) + blocks,
  min: Math.min(b?.min ?? blocks, blocks),
  max: Math.max(b?.max ?? blocks, blocks),
});

/** How many ports the ranks' groups are given: the last one is the first group's (wire spec, section 3). */
export const GROUP_PORTS = 5;

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
export function ownSockets(context: StartupContext): Output[] {
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
export const flat = (bound: Endpoints): Record<string, string> =>
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

export const failureOf = (event: StartupEvent, context: StartupContext): Failure => {
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
export const eachRank = (ranks: StartupContext["ranks"]): number[] =>
  ranks.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i));

/** Where the ranks meet. */
export const masterOf = ({ parallelConfig }: StartupInput): string =>
  String(parallelConfig?.["data_parallel_master_ip"]);

export const rankIn = (of: string | null): string => of?.split("/")[1] ?? "";
