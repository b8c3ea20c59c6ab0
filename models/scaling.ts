/**
 * Scaling while serving: the machines of every rank as they run in production, each rank's coordinator a node of its own that may crash,
 * two stores that outlive them, engines that do together what engines do together, ranks that join, an operator.
 *
 * Every rank is asked separately, as `muster serve --rank r` is, so no object sees the whole; the ranks' own rules must do.
 */
import {
  type Crash,
  defineModel,
  input,
  type Model,
  ModelError,
  type Operation,
  type Outcome,
  put,
  type Reducer,
  send,
  type World,
} from "../src/checker/mod.ts";
import { counted } from "../src/checker/words.ts";
import { effect, type Json, type KernelEvent, type Output } from "../src/kernel/mod.ts";
import {
  bootScaling,
  DEFAULT_SCALING_LIMITS,
  scalingCharts,
  type ScalingConfiguration,
} from "../src/machines/mod.ts";
import type { Bootstrap, StoreAddress } from "../src/machines/effects/scaling.ts";
import {
  CURRENT_EPOCH,
  decisionKey,
  entryOf,
  epochViewOf,
  errorKey,
  factIn,
  keyOf,
  phaseKey,
} from "../src/machines/scaling/store-view.ts";
import { textOf, utf8 } from "../src/protocol/tcpstore/mod.ts";
import {
  CONTROL,
  draws,
  EARLIER,
  endOf,
  EPOCH,
  objections,
  OPERATION,
  outcomes,
  partOf,
  placeOf,
  RECONFIG,
  scalingProperties,
} from "./scaling-properties.ts";
import {
  joiningEngine,
  type Meeting,
  type ScalingEngine,
  servingEngine,
  stepEngine,
} from "../src/peers/engine-scaling.ts";

export interface ScalingOptions {
  /** Ranks before. Default 2. */
  readonly ranks?: number;
  /** Ranks after. Default 3. */
  readonly target?: number;
  /** Crashes of a rank's coordinator, at any moment, with any part of a step's effects lost. Default 1. */
  readonly crashes?: number;
  /** Deadlines that pass: of the operation, or of one call to an engine. Default 1. */
  readonly timeouts?: number;
  /** Whether the operator may abort, at any moment. Default false. */
  readonly abort?: boolean;
  /**
   * Faults of the stores: a read that sees what was there before, a write whose acknowledgement is lost, a request that fails before the
   * store has it. Default 0.
   */
  readonly storeFaults?: number;
  /** Things that are lost for good: a connection to a store, an engine, an address that is taken. Default 0. */
  readonly losses?: number;
  /**
   * Whether the ranks are asked by an operation that they all know by its name, and that says commit when all are prepared. Otherwise each
   * is asked separately, as the original's are, and goes on by itself. Default false.
   */
  readonly shared?: boolean;
  /** Whether it is remembered what each rank was told, for properties that ask. More states. Default false. */
  readonly closely?: boolean;
  /** What rank 0 finds in its store: an epoch of before that has no end, or one that others may be committing. Default nothing. */
  readonly earlier?: "unfinished" | "committing";
}

const HOST = "h";

// ---- engines ----------------------------------------------------------------------------------------------------

type Engines = Readonly<Record<number, ScalingEngine>>;
type EnginesEvent =
  | { type: "utility"; rank: number; method: string; args: Json }
  | { type: "met"; what: Meeting["what"]; size: number }
  | { type: "joins"; rank: number; bootstrap: Bootstrap }
  | { type: "dies"; rank: number };

/** All engines as one process: what they do together happens to all of them at once. */
const engines: Reducer = {
  id: "engines",
  initial: (size) => ({
    state: Object.fromEntries(
      Array.from({ length: size as number }, (_, r) => [r, servingEngine(r, size as number)]),
    ) as unknown as Json,
  }),
  step: (state, given) => {
    const all = { ...state as unknown as Record<number, ScalingEngine> };
    const event = given as unknown as EnginesEvent;
    const outputs: Output[] = [];
    const take = (rank: number, what: Parameters<typeof stepEngine>[1]): void => {
      const [next, said] = stepEngine(all[rank]!, what);
      all[rank] = next;
      for (const output of said) {
        if (output.type !== "reply" && output.type !== "failure") {
          outputs.push(effect({ ...output, type: `engine.${output.type}`, rank }));
        }
      }
    };
    switch (event.type) {
      case "joins":
        all[event.rank] = joiningEngine(event.rank, event.bootstrap);
        break;
      case "dies":
        all[event.rank] = { ...all[event.rank]!, gone: true, meetings: [] };
        break;
      case "utility":
        take(event.rank, {
          type: "utility",
          call: "call",
          method: event.method,
          args: [event.args],
        });
        break;
      case "met":
        for (let rank = 0; rank < event.size; rank++) take(rank, { type: "met", what: event.what });
    }
    return { state: all as unknown as Json, outputs };
  },
};

const engineOf = (w: World, rank: number): ScalingEngine =>
  (w.at("engines")!.value as Engines)[rank]!;

/** Meetings to which everybody has come. */
function meetings(w: World): EnginesEvent[] {
  const all = w.at("engines")!.value as Engines;
  const complete = new Map<string, EnginesEvent>();
  for (const { meetings } of Object.values(all)) {
    for (const { what, size } of meetings) {
      const there = Array.from({ length: size }, (_, r) => r).every((r) =>
        all[r]?.meetings.some((m) => m.what === what && m.size === size) ?? false
      );
      if (there) complete.set(`${what} ${size}`, { type: "met", what, size });
    }
  }
  return [...complete.values()];
}

/** How a utility call to an engine may end now. */
function utility(
  w: World,
  rank: number,
  request: { method: string },
  owed: boolean,
  losses: number,
): Outcome[] {
  const { method, ...args } = request;
  if (owed) return [{ event: { type: "utilityUnknown", method } }];
  const engine = engineOf(w, rank);
  const refused: Outcome = {
    event: { type: "utilityFailed", method, failure: "it refuses" },
    fault: "losses",
  };
  const late: Outcome = { event: { type: "utilityLate", method }, fault: "deadlines" };
  const asked = input("engines", { type: "utility", rank, method, args });
  // The pause and the resume are answered when everybody has come; the engine keeps the call until then.
  const waits = method === "pause_scheduler"
    ? engine.pausing !== null
    : method === "resume_scheduler" && engine.resuming !== null;
  if (waits) return [late];
  const [, said] = stepEngine(engine, { type: "utility", call: "call", method, args: [args] });
  const answer = said.find((o) => o.type === "reply" || o.type === "failure");
  if (answer === undefined) return engine.gone ? [late] : [{ does: [asked] }, late];
  const event = answer.type === "reply"
    ? { type: "utilityReplied", method, value: answer.value }
    : { type: "utilityFailed", method, failure: answer.text };
  return [
    { event, does: [asked] },
    { ...late, does: [asked] },
    ...(losses > 0 ? [refused] : []),
  ];
}

// ---- stores -----------------------------------------------------------------------------------------------------

const place = ({ port }: Pick<StoreAddress, "port">, key: string): string => placeOf(port, key);
const lookAt = (w: World, at: Pick<StoreAddress, "port">) => (key: string): string | undefined =>
  w.get(place(at, key));

const rankOf = (instance: string): number => Number(instance.split("/")[1]);
const nodeOf = (rank: number): string => `coordinator/${rank}`;

// ---- the model --------------------------------------------------------------------------------------------------

/** One operation, asked of every old rank. */
export function scaling(options: ScalingOptions = {}): Model {
  const { ranks = 2, target = 3, crashes = 1, timeouts = 1, abort = false } = options;
  const { storeFaults = 0, losses = 0, closely = false, shared = false, earlier } = options;
  if (target === ranks) {
    throw new ModelError(
      `from ${ranks} to ${target} ranks: nothing is scaled; give another target`,
    );
  }
  const old = Array.from({ length: ranks }, (_, r) => r);
  const configuration = (rank: number): Pick<ScalingConfiguration, "ranks" | "operations"> => ({
    ranks: [{
      rank,
      topology: {
        experts: 8,
        redundant: 100,
        maxSize: 8,
        size: ranks,
        leader: rank === 0,
        masterIp: HOST,
        control: { host: HOST, port: CONTROL },
        limits: DEFAULT_SCALING_LIMITS,
        handshake: rank === 0
          ? {
            bind: "b",
            form: "wrapped",
            inputs: ["i"],
            outputs: ["o"],
            coordinatorInput: "ci",
            coordinatorOutput: "co",
            frontendStatsPublish: null,
          }
          : null,
        hostsControl: rank === 0,
      },
    }],
    operations: null,
  });
  const faults: Crash[] = [{ nodes: old.map(nodeOf), budget: crashes, restart: "journal" }];
  const prepare = (rank: number) => ({
    type: "prepare",
    operation: OPERATION,
    target,
    remains: rank < target,
    report: "",
    shared,
  });
  /** Commit is said when every old rank is prepared; some may have gone on already. */
  const allPrepared = (w: World): boolean =>
    old.every((r) =>
      ["preparing.prepared", "voted", "committed"].some((s) => w.in(partOf(r), s)) ||
      endOf(w, r)?.outcome === "completed"
    ) && old.some((r) => w.in(partOf(r), "preparing.prepared"));
  const faulty = (event: KernelEvent, does: readonly Operation[] = []): Outcome[] =>
    storeFaults > 0 ? [{ event, does, fault: "store faults" }] : [];
  const lost = (event: KernelEvent): Outcome[] => losses > 0 ? [{ event, fault: "losses" }] : [];
  /** A request that changes a store: it is answered; or its answer is lost; or the store never has it. */
  const answered = (store: string, event: KernelEvent, does: readonly Operation[]): Outcome[] => {
    const failed = { type: "storeFailed", store, text: "timed out" };
    return [{ event, does }, ...faulty(failed, does), ...(does.length > 0 ? faulty(failed) : [])];
  };
  return defineModel({
    name: `scaling from ${ranks} to ${counted(target, "rank")}, ${
      counted(crashes, "crash", "crashes")
    }, ${counted(timeouts, "timeout")}${abort ? ", an abort" : ""}${
      storeFaults > 0 ? `, ${counted(storeFaults, "store fault")}` : ""
    }${losses > 0 ? `, ${counted(losses, "loss", "losses")}` : ""}${
      shared ? ", told to commit" : ""
    }${earlier === undefined ? "" : `, after an ${earlier} one`}`,
    charts: Object.fromEntries(Object.entries(scalingCharts).map(([name, c]) => [name, c.machine])),
    boots: Object.fromEntries(old.map((r) => [nodeOf(r), bootScaling(configuration(r))])),
    processes: { engines: { runs: engines, input: ranks, may: (w) => meetings(w) } },
    may: Object.fromEntries(old.map((r) => [`rank/${r}/topology`, (w: World) => [
      ...(w.memory("outcomes")[r] === undefined ? [prepare(r)] : []),
      ...(shared && allPrepared(w) ? [{ type: "commit", operation: OPERATION }] : []),
      ...(abort ? [{ type: "abort", operation: OPERATION, text: "operator" }] : []),
    ]])),
    store: earlier === undefined ? {} : {
      [place({ port: CONTROL }, CURRENT_EPOCH)]: utf8(EARLIER),
      ...(earlier === "committing"
        ? { [place({ port: CONTROL }, decisionKey(EARLIER))]: utf8("commit") }
        : {}),
    },
    channels: { bus: "bag" },
    effects: {
      "operation.answer": () => [],
      "scaleUp.init": ({ rank }, w) => {
        const bootstrap = w.at(partOf(0))?.context.bootstrap;
        return bootstrap == null ? [] : [input("engines", { type: "joins", rank, bootstrap })];
      },
      "engine.notify": ({ rank, notification }) => [
        send("bus", `rank/${rank}/topology`, {
          type: "notified",
          notification: notification === "RECONFIGURE_FINISHED"
            ? "reconfigureFinished"
            : "shutdownComplete",
        }),
      ],
      "engine.ready": ({ rank, bootstrap }) => [
        put(place({ port: bootstrap.storePort }, `eep_ready/${rank}`), "1"),
      ],
      "engine.handshakeReady": ({ rank }) => [
        send("bus", "rank/0/greeting", {
          type: "ready",
          rank,
          local: true,
          headless: false,
          hash: null,
        }),
      ],
      "engine.exit": ({ rank }) => [
        send("bus", `rank/${rank}/topology`, { type: "engineLost", text: "exited" }),
      ],
    },
    calls: {
      "scaling.draw": () => [{
        event: { type: "drawn", epoch: EPOCH, masterPort: 7000, masterPorts: [7001] },
      }],
      "store.serve": () => [{
        event: { type: "storeServing", address: { host: HOST, port: RECONFIG } },
      }, ...lost({ type: "storeServeFailed", text: "in use" })],
      "store.lookUp": ({ at }, w) => [
        { event: { type: "epochRead", view: epochViewOf(lookAt(w, at)) } },
        ...faulty({ type: "epochRead", view: null }),
        ...faulty({ type: "storeFailed", store: "control", text: "timed out" }),
      ],
      "store.check": ({ at, epoch, key }, w, from) => {
        const rank = rankOf(from);
        const keys = key === "eep_ready" ? [`eep_ready/${rank}`] : [
          keyOf("old_rank_finished", epoch, rank),
          keyOf("shutdown_complete", epoch, rank),
        ];
        const found = keys.some((k) => lookAt(w, at)(k) !== undefined);
        return [
          { event: { type: found ? "keyFound" : "keyAbsent" } },
          ...(found ? faulty({ type: "keyAbsent" }) : []),
          ...faulty({ type: "storeFailed", store: "reconfig", text: "timed out" }),
        ];
      },
      "store.write": ({ at, store, epoch, sets }, _, from) =>
        answered(
          store,
          { type: "written", store },
          sets.map((set: Parameters<typeof entryOf>[0]) => {
            const [key, value] = entryOf(set, epoch, rankOf(from));
            return put(place(at, key), value);
          }),
        ),
      "store.decide": ({ at, epoch, propose }, w) => {
        const key = decisionKey(epoch);
        const held = lookAt(w, at)(key);
        return answered(
          "control",
          { type: "decided", epoch, outcome: held === undefined ? propose : textOf(held) },
          held === undefined ? [put(place(at, key), utf8(propose))] : [],
        );
      },
      "store.fail": ({ at, store, epoch, text }, w) =>
        answered(store, { type: "failureWritten", store }, [
          ...(lookAt(w, at)(errorKey(epoch)) === undefined
            ? [put(place(at, errorKey(epoch)), utf8(text))]
            : []),
          put(place(at, phaseKey(epoch)), "failed"),
        ]),
      "engine.call": ({ request }, w, from, owed) =>
        utility(w, rankOf(from), request, owed, losses),
    },
    resources: {
      "store.server": () => [],
      "store.facts": (resource, w, from) => {
        const look = lookAt(w, resource.at);
        // A connection that is gone is reported by each watch that it carried.
        const gone = lost({
          type: "storeLost",
          store: resource["store"],
          text: "connection closed",
        });
        const rank = rankOf(from);
        const death: Outcome[] = engineOf(w, rank).gone || losses === 0 ? [] : [{
          event: { type: "engineLost", text: "exited" },
          does: [input("engines", { type: "dies", rank })],
          fault: "losses",
        }];
        return gone.concat(
          death,
          resource.facts.flatMap((fact: Parameters<typeof factIn>[1]) => {
            const event = factIn(look, fact, resource as never);
            // Completion is reported before an error that is there too.
            const hidden = fact === "error" && resource.facts.includes("completed") &&
              factIn(look, "completed", resource as never) !== undefined;
            return event === undefined || hidden ? [] : [{ event }];
          }),
        );
      },
      "store.epoch": ({ at }, w) => {
        const view = epochViewOf(lookAt(w, at));
        return view === null ? [] : [{ event: { type: "epochSeen", view } }];
      },
      "socket.scaleUp": (_, w, from) => [
        ...(w.in(from, "opening")
          ? [
            { event: { type: "listening", endpoint: "b" } },
            ...lost({ type: "bindFailed", text: "in use" }),
          ]
          : []),
        ...Array.from({ length: Math.max(0, target - ranks) }, (_, i) => ranks + i)
          .filter((r) => !w.in(from, "opening") && engineOf(w, r) === undefined)
          .map((rank) => ({ event: { type: "hello", rank, local: true, headless: false } })),
      ],
    },
    timers: { deadline: (_, timer) => timer !== "retry", budget: timeouts },
    faults: {
      crashes: faults,
      budgets: { deadlines: timeouts, "store faults": storeFaults, losses },
    },
    monitors: {
      outcomes,
      draws,
      ...(closely ? { objections } : {}),
      surprises: {
        initial: [],
        heeds: (h) => h.kind === "took" && (h.how === "failed" || h.how === "unexpected"),
        step: (surprises, h) =>
          h.kind === "took" ? [`${h.instance}: ${h.event.type} ${h.how}`] : surprises,
      },
    },
    properties: scalingProperties({ ranks, target, abort, closely, earlier }),
  });
}
