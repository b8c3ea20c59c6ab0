/** The original's start-up handshake (wire specification, section 2.4) and three ways in which it ends badly. */
import { assign, setup } from "xstate";
import { type Chart, effect } from "../../src/kernel/mod.ts";
import {
  type Crash,
  defineModel,
  type Model,
  type Process,
  type Properties,
  send,
  type World,
} from "../../src/checker/mod.ts";
import type { UpstreamDefect } from "./defect.ts";

type EngineEvent = { type: "start" | "init" | "loaded" };

const engine: Chart<Record<never, never>, EngineEvent> = setup({
  types: {} as { events: EngineEvent },
  actions: {
    sendHello: () => effect({ type: "engine.say", status: "hello" }),
    sendReady: () => effect({ type: "engine.say", status: "ready" }),
  },
}).createMachine({
  id: "original-engine",
  initial: "starting",
  states: {
    starting: { on: { start: { target: "waiting", actions: "sendHello" } } },
    waiting: { on: { init: "loading" } },
    loading: { on: { loaded: { target: "ready", actions: "sendReady" } } },
    ready: {},
  },
});

type FrontEndContext = { engines: Record<string, "new" | "connected" | "ready"> };
type FrontEndEvent = { type: "hello" | "ready" | "stray"; rank: string };

const frontEnd: Chart<FrontEndContext, FrontEndEvent> = setup({
  types: {} as { context: FrontEndContext; events: FrontEndEvent; input: { ranks: string[] } },
  guards: {
    isNew: ({ context, event }) => context.engines[event.rank] === "new",
    isConnected: ({ context, event }) => context.engines[event.rank] === "connected",
    allReady: ({ context }) => Object.values(context.engines).every((e) => e === "ready"),
  },
  actions: {
    connect: assign(({ context, event }) => ({
      engines: { ...context.engines, [event.rank]: "connected" as const },
    })),
    count: assign(({ context, event }) => ({
      engines: { ...context.engines, [event.rank]: "ready" as const },
    })),
    sendInit: ({ event }) => effect({ type: "front-end.init", rank: event.rank }),
  },
}).createMachine({
  id: "original-front-end",
  context: ({ input }) => ({
    engines: Object.fromEntries(input.ranks.map((r) => [r, "new" as const])),
  }),
  initial: "forming",
  states: {
    forming: {
      on: {
        hello: [
          { guard: "isNew", actions: ["connect", "sendInit"] },
          // "Unexpected HELLO message ... in CoreEngineState.CONNECTED state."
          { target: "failed" },
        ],
        ready: [{ guard: "isConnected", actions: "count" }, { target: "failed" }],
        // An unknown identity, a wrong number of frames, bytes that are no msgpack.
        stray: "failed",
      },
      always: { guard: "allReady", target: "formed" },
    },
    formed: {},
    failed: {},
  },
});

const stranger: Chart<Record<never, never>, { type: "knock" }> = setup({
  types: {} as { events: { type: "knock" } },
  actions: { sendFrame: () => effect({ type: "stranger.frame" }) },
}).createMachine({
  id: "stranger",
  initial: "outside",
  states: { outside: { on: { knock: { target: "gone", actions: "sendFrame" } } }, gone: {} },
});

function originalStartup(
  name: string,
  properties: Properties,
  extra: {
    readonly size?: number;
    readonly crashes?: readonly Crash[];
    readonly processes?: Record<string, Process>;
  } = {},
): Model {
  const ranks = Array.from({ length: extra.size ?? 2 }, (_, rank) => `engine/${rank}`);
  return defineModel({
    name,
    processes: {
      "front-end": { runs: frontEnd, input: { ranks } },
      ...Object.fromEntries(ranks.map((rank) => [rank, {
        runs: engine,
        may: [{ type: "start" }, { type: "loaded" }],
      }])),
      ...extra.processes,
    },
    channels: { handshake: "fifo" },
    effects: {
      "engine.say": ({ status }, _, from) => [
        send("handshake", "front-end", { type: status, rank: from }),
      ],
      "front-end.init": ({ rank }) => [send("handshake", rank, { type: "init" })],
      "stranger.frame": (
        _,
        __,
        from,
      ) => [send("handshake", "front-end", { type: "stray", rank: from })],
    },
    ...(extra.crashes === undefined ? {} : { faults: { crashes: extra.crashes } }),
    properties,
  });
}

/** The handshake of so many engines by the original's rules, in which nothing goes wrong: what recorded frames are held against. */
export const originalHandshake = (size: number): Model =>
  originalStartup(`the original's handshake of ${size} engines`, {}, { size });

const survives = {
  always: { "the start-up does not fail": (w: World) => !w.in("front-end", "failed") },
};

export const strayFrame: UpstreamDefect = {
  name: "stray-frame",
  number: 12,
  what:
    "One frame of anybody who reaches the handshake's port ends the start-up of the whole deployment.",
  ours:
    "A stranger's frame is dropped, counted and shown; only a known rank can make a start-up fail, and the failure names it.",
  model: originalStartup("original: stray frame", survives, {
    processes: { stranger: { runs: stranger, may: [{ type: "knock" }] } },
  }),
  property: "the start-up does not fail",
  steps: 2,
};

export const duplicateHello: UpstreamDefect = {
  name: "duplicate-hello",
  number: 13,
  what: "An engine that is restarted before READY says HELLO again, and that ends the start-up.",
  ours:
    "A rank whose process was seen to exit may say HELLO again; it is answered, and the takeover is counted.",
  model: originalStartup("original: duplicate HELLO", survives, {
    crashes: [{ nodes: ["engine/0"], budget: 1, restart: "fresh", losesEffects: false }],
  }),
  property: "the start-up does not fail",
  steps: 6,
};

export const lostReady: UpstreamDefect = {
  name: "lost-ready",
  number: 15,
  what:
    "A remote engine dies before its READY; there is no deadline, and the front-end waits for ever.",
  ours:
    "Every wait has a deadline (to connect, to be ready, for all); the failure names the rank, its last phase and how long was waited.",
  model: originalStartup("original: lost READY", {
    eventually: {
      "the start-up ends": (w) => w.in("front-end", "formed") || w.in("front-end", "failed"),
    },
  }, { crashes: [{ nodes: ["engine/1"], budget: 1, restart: "never", losesEffects: false }] }),
  property: "the start-up ends",
  steps: 6,
};
