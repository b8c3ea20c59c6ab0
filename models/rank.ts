/**
 * One engine rank alone, from its first HELLO to its end: whatever can be said in its name, and whatever can happen to its process, at
 * any moment and in any order.
 *
 * What must hold is told by its history: where a rank is, what the start-up hears of it, and when it is answered with INIT.
 */
import { defineModel, type Happening, type Model, type World } from "../src/checker/mod.ts";
import type { Json, KernelEvent } from "../src/kernel/mod.ts";
import { engine } from "../src/machines/mod.ts";
import type { EngineInput } from "../src/machines/engine.ts";
import { bystander, heard, listener } from "./bystander.ts";

export interface RankOptions {
  /** Its process is ours. Default false. */
  readonly launched?: boolean;
  /** Every refusal ends the start-up, as the original's does. Default false. */
  readonly strict?: boolean;
  /** It has formed up already, in a scale-up. Default false. */
  readonly joined?: boolean;
  /** Its front-end scales. Default false. */
  readonly scales?: boolean;
  /** It can be asked whether it goes on. Default true. */
  readonly callable?: boolean;
  /** Its front-end learns from it where the coordination store is. Default false. */
  readonly learnsStore?: boolean;
}

const STORE_PORT = 5;
const RANK = "rank/0/engine";
const BLOCKS = 7;

/** What has happened in a rank's present life, as far as it matters. */
interface History {
  readonly hello: boolean;
  readonly ready: boolean;
  readonly leaving: boolean;
  /** Its coordinator came back, and it has not answered yet. */
  readonly asked: boolean;
  /** How it ended, or empty. */
  readonly end: "" | "late" | "lost" | "stopped" | "left" | "restarted" | "restarting";
  readonly gone: boolean;
  readonly blocks: number | null;
  /** Its group went on without it, and nobody has to hear of its end. */
  readonly dismissed: boolean;
}

/** What an event means to a rank with this history. */
interface Meaning {
  readonly history: History;
  /** What others are told: who, and what. */
  readonly told?: readonly (readonly [to: string, event: Record<string, Json>])[];
  /** It is answered with INIT. */
  readonly init?: boolean;
  /** It is asked whether it goes on. */
  readonly asks?: boolean;
}

/** A new rank that joined was greeted elsewhere. */
const begin = (joined: boolean, dismissed = false): History => ({
  dismissed,
  hello: joined,
  ready: joined,
  leaving: false,
  asked: false,
  end: "",
  gone: false,
  blocks: null,
});

/** The state that a history leads to. */
const stateOf = ({ hello, ready, leaving, asked, end }: History): string => {
  if (end !== "") return end;
  if (leaving) return "leaving";
  if (ready) return asked ? "adopting" : "ready";
  return hello ? "connected" : "awaited";
};

function meaningOf(history: History, event: KernelEvent, input: EngineInput): Meaning {
  const { strict, launched, learnsStore = false } = input;
  const scales = input.scales === true && !history.dismissed;
  const { type } = event;
  const precisely = stateOf(history);
  // While it is asked whether it goes on, it serves like before.
  const state = precisely === "adopting" ? "ready" : precisely;
  const phase = state === "awaited" ? "connect" : state === "connected" ? "load" : "serve";
  const to = (report: Record<string, Json>): NonNullable<Meaning["told"]> => [["startup", report]];
  const toFrontEnd = (type: string): NonNullable<Meaning["told"]> =>
    scales ? [["rank/0/topology", { type }]] : [];
  const toldStore = learnsStore && event["storePort"] === STORE_PORT
    ? to({ type: "rankStore", port: STORE_PORT })
    : [];
  const starting = state === "awaited" || state === "connected";
  const declares = event["local"] !== input.local
    ? "wrong-locality"
    : !input.local && event["headless"] !== input.headless
    ? `must${input.headless ? "" : "-not"}-be-headless`
    : "";
  const refused = (reason: string): Meaning => ({
    history,
    told: to({ type: "rankRefused", reason, phase }),
  });
  const ending = type === "exited" && event["asked"] === true ? "stopped" : "lost";
  const lost = (): Meaning => ({
    history: { ...history, end: ending, gone: history.gone || type === "exited" },
    told: [
      ...(state === "ready" ? toFrontEnd("engineLost") : []),
      ["startup", { type: "rankLost", phase, code: event["code"] as Json }],
    ],
  });
  const notAdopted = (why: Json): Meaning => ({
    history: { ...history, end: "lost" },
    told: [...toFrontEnd("engineLost"), ...to({ type: "rankUnresponsive", phase: "adopt", why })],
  });
  if (type.startsWith("xstate.after.")) {
    return { history: { ...history, end: "late" }, told: to({ type: "rankLate", phase }) };
  }
  switch (type) {
    case "hello":
      if (starting || state === "lost" || state === "stopped") {
        const again = state === "connected";
        const takesOver = !again || (!strict && (!launched || history.gone));
        if (declares !== "" || !takesOver) {
          return starting ? refused(declares || "unexpected") : { history };
        }
        return {
          history: { ...begin(false, history.dismissed), hello: true },
          told: to({ type: again ? "rankTakenOver" : "rankConnected" }),
          init: true,
        };
      }
      if (state !== "ready") return { history };
      return strict ? refused(declares || "unexpected") : {
        history: { ...history, end: "restarted" },
        told: [...toFrontEnd("engineLost"), ...to({ type: "rankRestarted" })],
      };
    case "ready":
      if (state === "awaited") return refused(declares || "unexpected");
      if (state === "ready" && strict) return refused(declares || "unexpected");
      if (state !== "connected") return { history };
      if (declares !== "") return refused(declares);
      return {
        history: { ...history, ready: true, blocks: event["blocks"] as null ?? history.blocks },
        told: [
          ...toldStore,
          ...to({ type: "rankReady", blocks: event["blocks"] as Json ?? history.blocks }),
          ...toFrontEnd("engineRestarted"),
        ],
      };
    case "malformed":
      return starting || state === "ready"
        ? refused(event["status"] === undefined ? "malformed" : "unexpected")
        : { history };
    case "firstFrame": {
      const blocks = event["blocks"] as number | null ?? history.blocks;
      if (state === "ready") {
        return history.blocks !== null || blocks === null ? { history, told: toldStore } : {
          history: { ...history, blocks },
          told: [...to({ type: "rankBlocks", blocks }), ...toldStore],
        };
      }
      return state === "leaving" || state === "restarting"
        ? { history }
        : { history: { ...history, blocks }, told: toldStore };
    }
    case "exited":
      if (state === "late" || state === "restarted") {
        return { history: { ...history, end: ending } };
      }
      if (state === "restarting") {
        return { history: { ...begin(false, history.dismissed), gone: true } };
      }
      if (starting && event["restarting"] === true) {
        return {
          history: { ...history, hello: false, gone: true },
          ...(state === "connected" ? { told: to({ type: "rankAway" }) } : {}),
        };
      }
      if (state === "leaving") {
        return {
          history: { ...history, end: "left", gone: true },
          told: toFrontEnd("engineLost"),
        };
      }
      return starting || state === "ready" ? lost() : { history };
    case "engineGone":
      return state === "ready" ? lost() : { history };
    case "unresponsive":
      return precisely !== "ready" ? { history } : {
        history: { ...history, end: "lost" },
        told: [...toFrontEnd("engineLost"), ...to({ type: "rankUnresponsive", phase })],
      };
    case "leave":
      return state === "ready"
        ? { history: { ...history, leaving: true, asked: false } }
        : { history };
    case "dismissed":
      return {
        history: {
          ...history,
          dismissed: true,
          ...(state === "ready" ? { end: "left", asked: false } : {}),
        },
      };
    case "stay":
      return { history: { ...history, leaving: false } };
    // All engines start anew: one of ours that still runs has to end first.
    case "restart":
      return launched && !history.gone
        ? { history: { ...history, end: "restarting", blocks: null } }
        : { history: { ...begin(false, history.dismissed), gone: history.gone } };
    case "resumed":
      return state === "ready" && input.callable
        ? { history: { ...history, asked: true }, asks: true }
        : { history, init: state === "connected" };
    case "utilityReplied":
    case "utilityFailed":
    case "utilityLate":
    case "utilityUnknown":
      if (precisely !== "adopting") return { history };
      if (type === "utilityUnknown") return { history, asks: true };
      if (type === "utilityLate") return notAdopted(event["why"] as Json);
      if (event["unasked"] === true) return notAdopted(event["failure"] as Json);
      return { history: { ...history, asked: false } };
    default:
      return { history };
  }
}

/** What is remembered: the history, what is owed to others in this step, and what went wrong. */
interface Memory {
  readonly history: History;
  readonly owed: NonNullable<Meaning["told"]>;
  readonly inits: number;
  readonly asks: number;
  readonly wrong: string | null;
}

function remember(memory: Memory, happening: Happening, input: EngineInput): Memory {
  if (happening.kind === "effect") {
    const { type } = happening.effect;
    if (type === "handshake.init") return { ...memory, inits: memory.inits - 1 };
    return type === "engine.call" ? { ...memory, asks: memory.asks - 1 } : memory;
  }
  if (happening.kind !== "took") return memory;
  const { instance, event, how } = happening;
  if (how === "failed" || how === "unexpected") {
    return { ...memory, wrong: `${instance}: ${event.type} ${how}` };
  }
  if (instance === RANK) {
    const { history, told = [], init = false, asks = false } = meaningOf(
      memory.history,
      event,
      input,
    );
    return { ...memory, history, owed: told, inits: init ? 1 : 0, asks: asks ? 1 : 0 };
  }
  if (instance !== "startup" && !instance.endsWith("/topology")) return memory;
  const [first, ...rest] = memory.owed;
  const expected = first !== undefined && first[0] === instance &&
    Object.entries(first[1]).every(([name, value]) => event[name] === value);
  return expected
    ? { ...memory, owed: rest }
    : { ...memory, wrong: `${instance} is told ${event.type}` };
}

/** A rank and whoever may speak for it. */
export function rank(options: RankOptions = {}): Model {
  const { launched = false, strict = false, joined = false, scales = false, callable = true } =
    options;
  const { learnsStore = false } = options;
  const input: EngineInput = {
    local: launched,
    headless: !launched,
    mode: "internal",
    launched,
    strict,
    connectMs: 1,
    readyMs: 1,
    heartbeatEveryMs: launched ? 0 : 1,
    heartbeatWithinMs: 1,
    callable,
    ...(joined ? { joined } : {}),
    ...(scales ? { scales } : {}),
    ...(learnsStore ? { learnsStore } : {}),
  };
  const { local, headless } = input;
  const ready = (blocks: number | null) => ({ blocks, statsAddress: null, hash: null });
  const declarations = [
    { local, headless },
    { local: !local, headless },
    { local, headless: !headless },
  ];
  const events: KernelEvent[] = [
    ...declarations.map((d) => ({ type: "hello", ...d })),
    ...declarations.map((d) => ({ type: "ready", ...d, ...ready(BLOCKS) })),
    { type: "ready", local, headless, ...ready(null) },
    { type: "malformed", reason: "no msgpack" },
    { type: "malformed", reason: "no such status", status: "DONE" },
    { type: "firstFrame", blocks: null },
    { type: "firstFrame", blocks: BLOCKS },
    { type: "engineGone", code: null, signal: null },
    { type: "unresponsive", afterMs: 1, why: null },
    { type: "exited", code: 1, signal: null },
    { type: "exited", code: 1, signal: null, restarting: true },
    { type: "exited", code: 0, signal: null, asked: true },
    ...(learnsStore
      ? [
        { type: "ready", local, headless, ...ready(BLOCKS), storePort: STORE_PORT },
        { type: "ready", local, headless, ...ready(BLOCKS), storePort: 0 },
        { type: "firstFrame", blocks: BLOCKS, storePort: STORE_PORT },
        { type: "firstFrame", blocks: null, storePort: STORE_PORT },
      ]
      : []),
  ];
  const membership = [
    { type: "leave" },
    { type: "stay" },
    ...(scales ? [{ type: "dismissed" }] : []),
  ];
  const restart = { type: "restart", connectMs: 1, readyMs: 1 };
  const memory = (w: World): Memory => w.memory("history");
  const context = (w: World) => w.at(RANK)!.context;
  return defineModel({
    name: `one ${joined ? "joined" : launched ? "launched" : "remote"} rank${
      strict ? ", strict" : ""
    }${scales ? ", scaling" : ""}${learnsStore ? ", that knows the store" : ""}${
      callable ? "" : ", on another's bus"
    }`,
    processes: {
      [RANK]: { runs: engine, input: input as unknown as Json },
      "startup": { runs: listener },
      "rank/0/topology": { runs: listener },
      "peer": bystander((w) =>
        [
          ...events,
          // Who leaves is asked for in an operation, of ranks that serve.
          ...(["ready", "adopting", "leaving", "left"].some((s) => w.in(RANK, s))
            ? membership
            : []),
          { type: "resumed" },
          // The group has formed up, so nobody is awaited.
          ...(w.in(RANK, "awaited") || w.in(RANK, "connected") ? [] : [restart]),
        ].map((event) => [RANK, event])
      ),
    },
    effects: { ...heard, "handshake.init": () => [] },
    calls: {
      "engine.call": () =>
        [
          { type: "utilityReplied", value: false },
          { type: "utilityFailed", failure: "no such method" },
          { type: "utilityFailed", failure: "there is no bus", unasked: true },
          { type: "utilityLate", why: null },
          { type: "utilityUnknown" },
        ].map((event) => ({ event })),
    },
    monitors: {
      history: {
        initial: {
          history: begin(joined),
          owed: [],
          inits: 0,
          asks: 0,
          wrong: null,
        } as unknown as Json,
        step: (memory, h) => remember(memory as unknown as Memory, h, input) as unknown as Json,
      },
    },
    properties: {
      always: {
        "a rank is where its history leads": (w) => w.in(RANK, stateOf(memory(w).history)),
        "whoever it concerns is told what happened, once and in the words that fit": (w) =>
          memory(w).owed.length === 0 && memory(w).wrong === null,
        "INIT answers a HELLO that is right, also one from before a restart, and nothing else": (
          w,
        ) => memory(w).inits === 0,
        "it is asked whether it goes on when its coordinator came back, and when nobody knows whether it was":
          (w) => memory(w).asks === 0,
        "a rank knows the blocks that its present life told": (w) =>
          !w.in(RANK, "ready") || context(w).blocks === memory(w).history.blocks,
        "only a rank that is awaited or loads can be late": (w) => {
          const [timer, ...others] = w.timers(RANK);
          const due = { awaited: "connectDeadline", connected: "readyDeadline" };
          return others.length === 0 &&
            timer === due[stateOf(memory(w).history) as keyof typeof due];
        },
      },
      sometimes: { "it serves": (w) => w.in(RANK, "ready") },
    },
  });
}
