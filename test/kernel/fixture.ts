/** Two small charts that form up: engines that say hello and ready, and a start-up that counts them. */
import { assign, setup } from "xstate";
import {
  type Chart,
  effect,
  hold,
  Kernel,
  type KernelEvent,
  type KernelOptions,
  type Output,
  release,
  start,
  type SystemDefinition,
  tell,
} from "../../src/kernel/mod.ts";

export type EngineEvent =
  | { type: "hello" }
  | { type: "ready"; blocks: number }
  | { type: "ping" }
  | { type: "paused" }
  | { type: "exited"; code: number };

export const engine: Chart<{ helloMs: number; readyMs: number }, EngineEvent> = setup({
  types: {} as {
    context: { helloMs: number; readyMs: number };
    events: EngineEvent;
    input: { helloMs: number; readyMs: number };
  },
  delays: {
    helloDeadline: ({ context }) => context.helloMs,
    readyDeadline: ({ context }) => context.readyMs,
  },
  guards: { plausible: ({ event }) => event.type === "ready" && event.blocks >= 0 },
  actions: {
    sendInit: () => effect({ type: "init" }),
    askPause: () => effect({ type: "pause" }),
    sayConnected: () => tell("startup", { type: "connected" }),
    sayReady: ({ event }) =>
      tell("startup", {
        type: "rankReady",
        blocks: (event as EngineEvent & { type: "ready" }).blocks,
      }),
    sayLost: (_, params: { phase: string }) => tell("startup", { type: "rankLost", ...params }),
    openBus: () => hold("bus", { type: "bus" }),
    closeBus: () => release("bus"),
  },
}).createMachine({
  id: "engine",
  context: ({ input }) => ({ ...input }),
  initial: "awaited",
  states: {
    awaited: {
      meta: { timers: { helloDeadline: "remaining" } },
      after: { helloDeadline: "late" },
      on: { hello: { target: "connected", actions: ["sendInit", "sayConnected"] }, exited: "lost" },
    },
    connected: {
      entry: "openBus",
      exit: "closeBus",
      meta: { timers: { readyDeadline: "restart" } },
      after: { readyDeadline: "late" },
      on: {
        hello: { target: "connected", reenter: true, actions: "sendInit" },
        ready: { guard: "plausible", target: "ready", actions: "sayReady" },
        exited: "lost",
      },
    },
    ready: {
      on: { ready: {}, ping: { actions: "askPause" }, paused: "paused", exited: "lost" },
    },
    paused: { on: { exited: "lost" } },
    late: { entry: { type: "sayLost", params: { phase: "late" } } },
    lost: { entry: { type: "sayLost", params: { phase: "exited" } }, type: "final" },
  },
});

export const startup: Chart<
  { left: number; blocks: number; engines: number },
  { type: "connected" } | { type: "rankReady"; blocks: number } | { type: "rankLost" }
> = setup({
  types: {} as {
    context: { left: number; blocks: number; engines: number };
    input: { engines: number };
    events: { type: "connected" } | { type: "rankReady"; blocks: number } | { type: "rankLost" };
  },
  guards: { noneLeft: ({ context }) => context.left === 0 },
  actions: {
    startEngines: ({ context }) =>
      Array.from(
        { length: context.engines },
        (_, r) => start(`rank/${r}/engine`, "engine", { helloMs: 1000, readyMs: 5000 }),
      ),
    count: assign(({ context, event }) => ({
      left: context.left - 1,
      blocks: context.blocks + (event as { blocks: number }).blocks,
    })),
    announce: ({ context }) => effect({ type: "announce", blocks: context.blocks }),
  },
}).createMachine({
  id: "startup",
  context: ({ input }) => ({ left: input.engines, blocks: 0, engines: input.engines }),
  initial: "forming",
  entry: "startEngines",
  states: {
    forming: {
      on: { connected: {}, rankReady: { actions: "count" }, rankLost: "failed" },
      always: { guard: "noneLeft", target: "formed" },
    },
    formed: { entry: "announce", on: { "rankLost": "failed", "ended": {} } as object },
    failed: { on: { "ended": {} } as object },
  },
});

export type Effects =
  | { type: "init" }
  | { type: "pause" }
  | { type: "announce"; blocks: number };

export const definition: SystemDefinition<Effects> = {
  charts: { startup: { machine: startup, interned: false }, engine: { machine: engine } },
  effects: {
    init: { kind: "message", leaves: "appended" },
    pause: { kind: "call", leaves: "durable" },
    announce: { kind: "message", leaves: "durable" },
  },
  boot: (configuration: KernelEvent): Output[] => [
    start("startup", "startup", { engines: Number(configuration["engines"]) }),
  ],
};

export const kernel = (options: KernelOptions = {}): Kernel<Effects> =>
  new Kernel(definition, options);
