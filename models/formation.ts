/**
 * The start-up as a whole, without the engines' own machines: sockets that are bound in any order, ranks that come, go, get ready and are
 * lost, processes that fail, an operator who stops everything, at any moment. How a rank gets ready is in `startup.ts` and `rank.ts`.
 */
import { defineModel, type Model, type Reducer, type World } from "../src/checker/mod.ts";
import { type Json, type KernelEvent, type Output, tell } from "../src/kernel/mod.ts";
import { startup } from "../src/machines/mod.ts";
import type { StartupInput } from "../src/machines/startup/context.ts";
import { bystander, heard, listener } from "./bystander.ts";
import {
  begin,
  type FormationHistory,
  type FormationSetting,
  needed,
  remember,
} from "./formation-history.ts";

export interface FormationOptions extends Partial<FormationSetting> {
  /** Whether all engines may be started anew once it has formed. Default true. */
  readonly regroups?: boolean;
}

const ID = "startup";
const BLOCKS = 7;

// ---- ranks ------------------------------------------------------------------------------------------------------

interface Rank {
  readonly stage: "away" | "connected" | "ready" | "over";
  /** It told its blocks. */
  readonly blocks: boolean;
}

/** What a rank may do, by its stage: what it tells, and where that leads. */
function deedsOf(
  { stage, blocks }: Rank,
  { comparesHashes }: FormationSetting,
): readonly (readonly [KernelEvent, Rank])[] {
  const rank = (stage: Rank["stage"], told = false): Rank => ({ stage, blocks: told });
  const ready = (more: { blocks?: number | null; hash?: string; statsAddress?: string }) => {
    const event = { type: "rankReady", blocks: BLOCKS, hash: null, statsAddress: null, ...more };
    return [event, rank("ready", event.blocks !== null)] as const;
  };
  const refused = [{ type: "rankRefused", reason: "unexpected", phase: "load", message: "READY" }, {
    stage,
    blocks,
  }] as const;
  const lost = [{ type: "rankLost", phase: "load", code: 1, signal: null }, rank("over")] as const;
  const late = [{ type: "rankLate", phase: "load" }, rank("over")] as const;
  switch (stage) {
    case "away":
      return [[{ type: "rankConnected" }, rank("connected")], refused, lost, late];
    case "connected":
      return [
        ready({}),
        ready({ blocks: null }),
        ready({ statsAddress: "s" }),
        ...(comparesHashes ? [ready({ hash: "a" }), ready({ hash: "b" })] : []),
        [{ type: "rankAway" }, rank("away")],
        [{ type: "rankTakenOver" }, rank("connected")],
        refused,
        lost,
        late,
      ];
    case "ready":
      return [
        ...(blocks ? [] : [[{ type: "rankBlocks", blocks: BLOCKS }, rank("ready", true)] as const]),
        [{ type: "rankRestarted" }, rank("over")],
        [{ type: "rankUnresponsive", phase: "serve", afterMs: 1, why: null }, rank("over")],
        refused,
        lost,
      ];
    case "over":
      return [];
  }
}

const rankProcess = (setting: FormationSetting): Reducer => ({
  id: "rank",
  initial: () => ({ state: { stage: "away", blocks: false } }),
  step: (state, { type, deed }) => {
    if (type === "restart") return { state: { stage: "away", blocks: false } };
    const [event, next] = deedsOf(state as unknown as Rank, setting)[deed as number]!;
    return { state: next as unknown as Json, outputs: [tell(ID, event as never)] };
  },
});

/** Processes: told to stop, or to be launched anew, they are gone some time later. */
const launcher: Reducer = {
  id: "launcher",
  initial: () => ({ state: "idle" }),
  step: (state, event): { state: Json; outputs?: Output[] } => {
    if (event.type === "stop") return { state: "stopping" };
    if (event.type === "recycle") return { state: "recycling" };
    const gone = state === "stopping" ? "processesGone" : "launchesGone";
    return event.type === "does"
      ? { state: "idle", outputs: [tell(ID, { type: gone })] }
      : { state };
  },
};

// ---- the model --------------------------------------------------------------------------------------------------

/** A start-up of `ranks` ranks. */
export function formation(options: FormationOptions = {}): Model {
  const { regroups = true, ...more } = options;
  const setting: FormationSetting = {
    ranks: 2,
    strict: false,
    stopOnFailure: false,
    comparesHashes: false,
    scales: false,
    ...more,
  };
  const { ranks: size, strict, stopOnFailure, comparesHashes, scales } = setting;
  const ranks = Array.from({ length: size }, (_, r) => r);
  const input: StartupInput = {
    sockets: {
      handshake: "h",
      clients: [{ input: "i", output: "o", ours: true }],
      coordinator: { frontPublish: "f", backPublish: "b", backOutput: "o" },
    },
    parallelConfig: { data_parallel_master_ip: "h" },
    drawsPorts: scales,
    parallelConfigHash: null,
    comparesHashes,
    size,
    ranks: [[0, size - 1]],
    expected: size,
    strict,
    stopOnFailure,
    totalMs: 1,
    scales,
  };
  const history = (w: World): FormationHistory => w.memory("history");
  const context = (w: World) => w.at(ID)!.context;
  const bound = (socket: string) => ({ type: "bound", socket, endpoints: { bind: socket } });
  const isBound = (w: World, socket: string): boolean => history(w).known.includes(socket);
  /** What befalls a start-up from outside, by how far it has come. */
  const events = (w: World): KernelEvent[] => [
    { type: "stop" },
    { type: "strangers", kind: "frames", count: 1, sample: "" },
    // Hired once; by then it may have failed, or be stopping.
    ...(scales && !history(w).hosted ? [{ type: "keeperHired" }] : []),
    ...(w.in(ID, "formed")
      ? [
        ...(regroups ? [{ type: "regroup", size, next: {} }] : []),
        { type: "bindFailed", socket: "handshake", text: "in use" },
      ]
      : []),
    ...(w.in(ID, "starting.binding") || w.in(ID, "starting.regrouping")
      ? [
        ...(isBound(w, "coordinator") ? [] : [bound("coordinator")]),
        { type: "bindFailed", socket: "handshake", text: "in use" },
      ]
      : w.in(ID, "stopped") || w.in(ID, "failed.cleared")
      ? []
      : [
        { type: "launchSilent", from: "process/0" },
        { type: "launchFailed", from: "process/0", text: "no such file" },
        { type: "keeperLost", text: "gone" },
      ]),
  ];
  return defineModel({
    name: `a start-up of ${size} ranks${strict ? ", strict" : ""}${
      comparesHashes ? ", hashes compared" : ""
    }${scales ? ", with a store" : ""}${stopOnFailure ? ", that stops when it fails" : ""}`,
    processes: {
      [ID]: { runs: startup, input: input as unknown as Json },
      launcher: {
        runs: launcher,
        may: (w) => w.at("launcher")!.value === "idle" ? [] : [{ type: "does" }],
      },
      waves: { runs: listener },
      operations: { runs: listener },
      ...Object.fromEntries(ranks.flatMap((r) => [
        [`rank/${r}/engine`, {
          runs: rankProcess(setting),
          may: (w: World) =>
            w.in(ID, "starting.binding") || w.in(ID, "starting.regrouping")
              ? []
              : deedsOf(w.at(`rank/${r}/engine`)!.value as Rank, setting)
                .map((_, deed) => ({ type: "does", deed })),
        }],
        [`rank/${r}/topology`, { runs: listener }],
      ])),
      world: bystander((w) => events(w).map((event) => [ID, event])),
    },
    effects: { ...heard, "announce": () => [] },
    calls: {
      "ports.draw": () => [{ event: { type: "portsDrawn", ports: [1, 2, 3, 4, 5] } }],
      "store.serve": () => [
        { event: { type: "storeServing", address: { host: "h", port: 9 } } },
        { event: { type: "storeServeFailed", text: "in use" } },
      ],
    },
    resources: {
      "socket.handshake": (_, w) => isBound(w, "handshake") ? [] : [{ event: bound("handshake") }],
      "socket.bus": (_, w) => isBound(w, "bus0") ? [] : [{ event: bound("bus0") }],
    },
    monitors: {
      history: {
        initial: begin(setting) as unknown as Json,
        step: (h, happening) =>
          remember(h as unknown as FormationHistory, happening, setting) as unknown as Json,
      },
    },
    properties: {
      always: {
        "a start-up is in the phase that its history leads to": (w) => w.in(ID, history(w).phase),
        "whoever it concerns is told, once, and nobody else": (w) =>
          history(w).owed.length === 0 && history(w).wrong === null,
        "the first cause of a failure is kept, with its rank": (w) => {
          const { failure } = history(w);
          return failure === null
            ? context(w).failure === null
            : context(w).failure.code === failure.code && context(w).failure.of === failure.of;
        },
        "ranks that connected, and those that are ready, are counted, each once": (w) => {
          const { connected, ready } = history(w);
          return context(w).connected === connected &&
            context(w).ready === Object.keys(ready).length;
        },
        "the blocks are those that ranks told": (w) => {
          const told = Object.values(history(w).ready).filter((b) => b !== null);
          return (context(w).blocks?.sum ?? 0) === BLOCKS * told.length;
        },
        "engines are answered when everything is known, and with everything that is known": (w) => {
          const { known, statsAddress } = history(w);
          const socket = w.holds(ID).find((r) => r.type === "socket.handshake");
          const all = needed(setting).every((n) => n === "handshake" || known.includes(n));
          if (!all) return history(w).regrouped || socket === undefined;
          if (!w.in(ID, "starting.forming")) return true;
          const { addresses, parallelConfig } = socket!["init"];
          return addresses.inputs[0] === "i" && addresses.frontendStatsPublish === statsAddress &&
            (!scales || parallelConfig._coord_store_port === 9);
        },
        "the deadline runs while it starts, and only then": (w) =>
          w.timers(ID).includes("startupDeadline") === history(w).phase.startsWith("starting"),
      },
      sometimes: {
        "it forms": (w) => w.in(ID, "formed"),
        "it is stopped": (w) => w.in(ID, "stopped"),
        "it fails": (w) => w.in(ID, "failed"),
      },
    },
  });
}
