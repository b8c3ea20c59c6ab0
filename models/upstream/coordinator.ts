/** The original's DP coordinator (wire specification, section 5): a latch, a starvation, a death. */
import { assign, setup } from "xstate";
import { type Chart, effect } from "../../src/kernel/mod.ts";
import { defineModel, send, type World } from "../../src/checker/mod.ts";
import type { UpstreamDefect } from "./defect.ts";

type CoordinatorEvent = { type: "request" | "waveComplete" | "startWave" };

const coordinator: Chart<Record<never, never>, CoordinatorEvent> = setup({
  types: {} as { events: CoordinatorEvent },
  actions: {
    wake: () => effect({ type: "coordinator.wake" }),
    publishRunning: () => effect({ type: "coordinator.publish", running: true }),
    publishPaused: () => effect({ type: "coordinator.publish", running: false }),
  },
}).createMachine({
  id: "original-coordinator-0.12",
  initial: "paused",
  states: {
    // F7 of 0.12: running is set before any engine has reacted.
    paused: { on: { request: { target: "running", actions: ["wake", "publishRunning"] } } },
    running: {
      on: { request: {}, waveComplete: { target: "paused", actions: "publishPaused" } },
    },
  },
});

type EngineEvent = { type: "pause" | "resume" | "wake" };

const engine: Chart<Record<never, never>, EngineEvent> = setup({
  types: {} as { events: EngineEvent },
}).createMachine({
  id: "engine",
  initial: "paused",
  states: {
    paused: { on: { resume: "idle", wake: {} } },
    idle: { on: { wake: "running" } },
    running: {},
  },
});

type FrontEndEvent = { type: "arrival" } | { type: "published"; running: boolean };

const frontEnd: Chart<{ running: boolean }, FrontEndEvent> = setup({
  types: {} as { context: { running: boolean }; events: FrontEndEvent },
  guards: { believesRunning: ({ context }) => context.running },
  actions: {
    note: assign({ running: ({ event }) => (event as { running: boolean }).running }),
    assume: assign({ running: true }),
    askForWake: () => effect({ type: "front-end.request" }),
  },
}).createMachine({
  id: "front-end",
  context: { running: false },
  initial: "open",
  states: {
    open: {
      on: {
        // A request is sent to its engine; the others are woken through the coordinator unless they are believed to run.
        arrival: [
          { guard: "believesRunning", target: "waiting" },
          { target: "waiting", actions: ["assume", "askForWake"] },
        ],
        published: { actions: "note" },
      },
    },
    waiting: { on: { published: { actions: "note" }, arrival: "waiting" } },
  },
});

export const waveLatch: UpstreamDefect = {
  name: "wave-latch",
  number: 25,
  what:
    "A wake-up that arrives while the engines are paused is discarded, but the coordinator believes that they run: no later request wakes them.",
  ours:
    "The state follows what engines report: a wake-up does not set running, so the next request wakes them again.",
  model: defineModel({
    name: "original: wave latch",
    processes: {
      coordinator: { runs: coordinator },
      engine: { runs: engine, may: [{ type: "resume" }] },
      "front-end": { runs: frontEnd, may: [{ type: "arrival" }] },
    },
    channels: { bus: "fifo" },
    effects: {
      "coordinator.wake": () => [send("bus", "engine", { type: "wake" })],
      "coordinator.publish": ({ running }) => [
        send("bus", "front-end", { type: "published", running }),
      ],
      "front-end.request": () => [send("bus", "coordinator", { type: "request" })],
    },
    properties: {
      sometimes: { "the engine runs": (w) => w.in("engine", "running") },
      leadsTo: {
        "a request gets the engine to run": [
          (w) => w.in("front-end", "waiting"),
          (w) => w.in("engine", "running"),
        ],
      },
    },
  }),
  property: "a request gets the engine to run",
  steps: 5,
};

type PollingEvent = { type: "stats" | "timedOut" };

const polling: Chart<Record<never, never>, PollingEvent> = setup({
  types: {} as { events: PollingEvent },
}).createMachine({
  id: "original-publisher",
  initial: "changed",
  states: {
    // Statistics have changed. They are published when a poll times out, and a poll returns events first.
    changed: { on: { stats: { actions: [] }, timedOut: "published" } },
    published: {},
  },
});

const chatter: Chart<Record<never, never>, { type: "step" }> = setup({
  types: {} as { events: { type: "step" } },
  actions: { sendStats: () => effect({ type: "stats" }) },
}).createMachine({ id: "engine", on: { step: { actions: "sendStats" } } });

export const publishStarvation: UpstreamDefect = {
  name: "publish-starvation",
  number: 22,
  what:
    "Statistics are published only when a poll times out; engines that keep sending keep them from ever being published.",
  ours: "Publishing has a clock of its own: the interval passes whatever arrives.",
  model: defineModel({
    name: "original: publish starvation",
    processes: {
      coordinator: {
        runs: polling,
        may: (w: World): PollingEvent[] =>
          w.messages("back", "coordinator").length === 0 ? [{ type: "timedOut" }] : [],
      },
      engine: {
        runs: chatter,
        may: (w: World) => w.messages("back", "coordinator").length === 0 ? [{ type: "step" }] : [],
      },
    },
    channels: { back: "fifo" },
    effects: { stats: () => [send("back", "coordinator", { type: "stats" })] },
    properties: {
      eventually: { "the statistics are published": (w) => w.in("coordinator", "published") },
    },
  }),
  property: "the statistics are published",
  steps: 2,
};

type RowsEvent = { type: "scale"; size: number } | { type: "stats"; rank: number };

const rows: Chart<{ rows: number }, RowsEvent> = setup({
  types: {} as { context: { rows: number }; events: RowsEvent },
  guards: {
    hasRow: ({ context, event }) => event.type === "stats" && event.rank < context.rows,
  },
  actions: { resize: assign({ rows: ({ event }) => (event as { size: number }).size }) },
}).createMachine({
  id: "original-rows",
  context: { rows: 3 },
  initial: "alive",
  states: {
    alive: {
      on: {
        scale: { actions: "resize" },
        stats: [{ guard: "hasRow" }, { target: "dead" }], // IndexError
      },
    },
    dead: {},
  },
});

const operator: Chart<Record<never, never>, { type: "scaleDown" }> = setup({
  types: {} as { events: { type: "scaleDown" } },
  actions: { send: () => effect({ type: "scale" }) },
}).createMachine({
  id: "operator",
  initial: "three",
  states: { three: { on: { scaleDown: { target: "two", actions: "send" } } }, two: {} },
});

export const lateStatistics: UpstreamDefect = {
  name: "late-statistics",
  number: 23,
  what:
    "Statistics of a removed engine that arrive after the scale-down end the coordinator's process (0.12).",
  ours: "Statistics of a rank that has no row are dropped and counted.",
  model: defineModel({
    name: "original: late statistics",
    processes: {
      coordinator: { runs: rows },
      "engine/2": {
        runs: chatter,
        may: (w: World) => w.messages("back", "coordinator").length < 2 ? [{ type: "step" }] : [],
      },
      operator: { runs: operator, may: [{ type: "scaleDown" }] },
    },
    channels: { back: "fifo", front: "fifo" },
    effects: {
      stats: () => [send("back", "coordinator", { type: "stats", rank: 2 })],
      scale: () => [send("front", "coordinator", { type: "scale", size: 2 })],
    },
    properties: {
      always: { "the coordinator lives": (w) => !w.in("coordinator", "dead") },
    },
  }),
  property: "the coordinator lives",
  steps: 4,
};
