/**
 * The other side of start-up: an engine without a GPU, as a pure machine (wire spec, sections 2.3 and 4.2).
 *
 * It says HELLO, copies what INIT tells it, shakes hands a second time with its own front-end where there is one, loads for
 * as long as it is told, and says READY: to the front-end beside it first, then to the head. The reference engine runs it over real
 * sockets, and the checker explores it. Faults are on demand.
 */
import { assign, setup } from "xstate";
import { type Chart, effect, type Output } from "../kernel/mod.ts";
import type { Init } from "../protocol/mod.ts";

/** What can go wrong on purpose. */
export type EngineFault =
  /** The process ends with `exitCode` at that moment. */
  | "crash-before-hello"
  | "crash-after-hello"
  | "crash-after-init"
  | "crash-before-ready"
  | "crash-after-ready"
  /** It lives and says nothing from there on. */
  | "silent"
  | "silent-after-hello"
  | "silent-after-init"
  /** What it says is wrong. */
  | "duplicate-hello"
  | "duplicate-ready"
  | "ready-first"
  | "wrong-local"
  | "wrong-headless"
  | "wrong-hash"
  | "unknown-status"
  | "garbage";

export const ENGINE_FAULTS: readonly EngineFault[] = [
  "crash-before-hello",
  "crash-after-hello",
  "crash-after-init",
  "crash-before-ready",
  "crash-after-ready",
  "silent",
  "silent-after-hello",
  "silent-after-init",
  "duplicate-hello",
  "duplicate-ready",
  "ready-first",
  "wrong-local",
  "wrong-headless",
  "wrong-hash",
  "unknown-status",
  "garbage",
];

/** One handshake that the engine goes through: with the head, and with its own front-end where that is another. */
export interface EngineContact {
  readonly local: boolean;
  readonly headless: boolean;
}

export interface SimulatedEngineInput {
  /** In the order of the HELLOs. */
  readonly contacts: readonly EngineContact[];
  /** Blocks of its KV cache; null when it has none; undefined when its release does not say (newest). */
  readonly blocks?: number | null;
  /** Opaque; undefined when its READY has no such member. */
  readonly hash?: string;
  readonly bootMs: number;
  readonly loadMs: number;
  /** How long it waits for INIT (the original: five minutes). */
  readonly initMs: number;
  readonly exitCode: number;
  readonly faults: readonly EngineFault[];
}

export interface SimulatedEngineContext extends SimulatedEngineInput {
  /** Which handshake it is at. */
  readonly contact: number;
  readonly addresses: Init["addresses"] | null;
  /** As the head told it; the own front-end's is not copied. */
  readonly parallelConfig: Init["parallelConfig"];
  /** Redundant experts, as a rank that joins is told. */
  readonly redundant?: number;
}

export type SimulatedEngineEvent =
  | { type: "init"; contact: number; init: Init }
  /** Its sockets to the front-end are connected, and the coordinator, if there is one, has said READY. */
  | { type: "joined" };

/** What the engine asks of the world. */
export type EngineEffect =
  | {
    readonly type: "engine.hello";
    readonly contact: number;
    readonly local: boolean;
    readonly headless: boolean;
  }
  | {
    readonly type: "engine.ready";
    readonly contact: number;
    readonly local: boolean;
    readonly headless: boolean;
    readonly blocks?: number | null;
    readonly hash?: string;
    /** Elastic engines: where the coordination store is, and the experts that a joiner was told. */
    readonly storePort?: number;
    readonly redundant?: number;
  }
  /** A message that breaks the protocol. */
  | {
    readonly type: "engine.nonsense";
    readonly contact: number;
    readonly what: "unknown-status" | "garbage";
  }
  /** Connect to the front-end's sockets and subscribe at the coordinator. Answered by `joined`. */
  | {
    readonly type: "engine.join";
    readonly addresses: Init["addresses"];
    readonly parallelConfig: Init["parallelConfig"];
  }
  | { readonly type: "engine.exit"; readonly code: number; readonly text: string };

const has = (context: SimulatedEngineContext, fault: EngineFault): boolean =>
  context.faults.includes(fault);

const flags = (context: SimulatedEngineContext, contact: number): EngineContact => {
  const { local, headless } = context.contacts[contact]!;
  return {
    local: has(context, "wrong-local") ? !local : local,
    headless: has(context, "wrong-headless") ? !headless : headless,
  };
};

const ready = (context: SimulatedEngineContext, contact: number): Output<EngineEffect> => {
  const storePort = context.parallelConfig["_coord_store_port"];
  return effect<EngineEffect>({
    type: "engine.ready",
    contact,
    ...flags(context, contact),
    ...(context.blocks === undefined ? {} : { blocks: context.blocks }),
    ...(typeof storePort === "number" ? { storePort } : {}),
    ...(context.redundant === undefined ? {} : { redundant: context.redundant }),
    ...(context.hash === undefined
      ? {}
      : { hash: has(context, "wrong-hash") ? "0".repeat(64) : context.hash }),
  });
};

export const simulatedEngine: Chart<SimulatedEngineContext, SimulatedEngineEvent> = setup({
  types: {} as {
    context: SimulatedEngineContext;
    events: SimulatedEngineEvent;
    input: SimulatedEngineInput;
  },
  delays: {
    booting: ({ context }) => context.bootMs,
    loading: ({ context }) => context.loadMs,
    initDeadline: ({ context }) => context.initMs,
  },
  guards: {
    crashes: ({ context }, { fault }: { fault: EngineFault }) => has(context, fault),
    fromThisContact: ({ context, event }) =>
      (event as SimulatedEngineEvent & { type: "init" }).contact === context.contact,
    anotherContact: ({ context }) => context.contact + 1 < context.contacts.length,
  },
  actions: {
    sayHello: ({ context }): Output[] => {
      const { contact } = context;
      const hello = effect<EngineEffect>({
        type: "engine.hello",
        contact,
        ...flags(context, contact),
      });
      return [
        ...(has(context, "ready-first") ? [ready(context, contact)] : []),
        ...(has(context, "unknown-status")
          ? [effect<EngineEffect>({ type: "engine.nonsense", contact, what: "unknown-status" })]
          : []),
        ...(has(context, "garbage")
          ? [effect<EngineEffect>({ type: "engine.nonsense", contact, what: "garbage" })]
          : []),
        hello,
        ...(has(context, "duplicate-hello") ? [hello] : []),
      ];
    },
    /** Addresses of the coordinator stay those of the head; inputs and outputs are those of the last contact. */
    copyInit: assign(({ context, event }) => {
      const { addresses, parallelConfig, numRedundantExperts: redundant } =
        (event as SimulatedEngineEvent & { type: "init" }).init;
      if (context.addresses === null) {
        return { addresses, parallelConfig, ...(redundant == null ? {} : { redundant }) };
      }
      const { inputs, outputs } = addresses;
      return { addresses: { ...context.addresses, inputs, outputs } };
    }),
    nextContact: assign({ contact: ({ context }) => context.contact + 1 }),
    join: ({ context }) =>
      effect<EngineEffect>({
        type: "engine.join",
        addresses: context.addresses!,
        parallelConfig: context.parallelConfig,
      }),
    sayReady: ({ context }): Output[] => {
      // The contexts of the handshakes unwind in reverse: the last contact hears it first.
      const order = context.contacts.map((_, i) => context.contacts.length - 1 - i);
      const said = order.map((contact) => ready(context, contact));
      return has(context, "duplicate-ready") ? [...said, ...said] : said;
    },
    exit: ({ context }, { text }: { text: string }) =>
      effect<EngineEffect>({ type: "engine.exit", code: context.exitCode, text }),
  },
}).createMachine({
  id: "simulatedEngine",
  context: ({ input }) => ({ ...input, contact: 0, addresses: null, parallelConfig: {} }),
  initial: "booting",
  states: {
    booting: { after: { booting: "beginning" } },
    beginning: {
      always: [
        { guard: { type: "crashes", params: { fault: "crash-before-hello" } }, target: "crashed" },
        { guard: { type: "crashes", params: { fault: "silent" } }, target: "mute" },
        { target: "greeting" },
      ],
    },
    greeting: {
      entry: "sayHello",
      always: [
        { guard: { type: "crashes", params: { fault: "crash-after-hello" } }, target: "crashed" },
        { guard: { type: "crashes", params: { fault: "silent-after-hello" } }, target: "mute" },
        { target: "waiting" },
      ],
    },
    waiting: {
      after: { initDeadline: "forgotten" },
      on: { init: { guard: "fromThisContact", target: "told", actions: "copyInit" } },
    },
    told: {
      always: [
        { guard: { type: "crashes", params: { fault: "crash-after-init" } }, target: "crashed" },
        { guard: { type: "crashes", params: { fault: "silent-after-init" } }, target: "mute" },
        { guard: "anotherContact", target: "greeting", actions: "nextContact" },
        { target: "loading" },
      ],
    },
    loading: { after: { loading: "loaded" }, on: { init: {} } },
    loaded: {
      always: [
        { guard: { type: "crashes", params: { fault: "crash-before-ready" } }, target: "crashed" },
        { target: "joining" },
      ],
    },
    joining: { entry: "join", on: { joined: "announcing", init: {} } },
    announcing: {
      entry: "sayReady",
      always: [
        { guard: { type: "crashes", params: { fault: "crash-after-ready" } }, target: "crashed" },
        { target: "serving" },
      ],
    },
    serving: { on: { init: {}, joined: {} } },
    mute: { on: { init: {}, joined: {} } },
    crashed: { entry: { type: "exit", params: { text: "crashed on demand" } } },
    forgotten: {
      entry: {
        type: "exit",
        params: { text: "Did not receive response from front-end process within 5 minutes" },
      },
    },
  },
});
