/**
 * One engine rank during start-up and while it serves, as the front-end sees it (wire spec, section 2.4).
 *
 * awaited --hello--> connected --ready--> ready. What the original answers with the death of the whole start-up is
 * answered here by its cause: a rank that says something wrong is *refused* with the reason and may still get it
 * right; a rank that restarts before READY may say HELLO again; a repeated READY counts once. With `strict` every refusal
 * ends the start-up, as the original's does.
 *
 * After a restart of the coordinator ready --resumed--> adopting --answer--> ready: an engine is adopted when it has answered one utility.
 */
import { assign, setup } from "xstate";
import { type Chart, effect, hold, release, tell } from "../kernel/mod.ts";
import type { Heartbeat, SendInit } from "./effects.ts";
import type { CallEngine } from "./effects/scaling.ts";
import {
  declaration,
  endOf,
  type EngineContext,
  type EngineEvent,
  type EngineInput,
  type Phase,
  type RefusalReason,
  type Spoken,
} from "./engine/context.ts";

export type {
  EngineContext,
  EngineEvent,
  EngineInput,
  Phase,
  RefusalReason,
} from "./engine/context.ts";

/** Where it goes when all engines start anew: one of ours has to end first, one of others may have ended already. */
const RESTART = [
  { guard: "stillRuns", target: "#engine.restarting", actions: "noteRestart" },
  { target: "#engine.awaited", actions: "noteRestart" },
] as const;

/** Its process ended: as it was told to, or by itself. */
const endsIn = (phase: Phase, actions: readonly "tellTopology"[] = []) => {
  const said = ["noteGone", ...actions, { type: "sayLost", params: { phase } }] as const;
  return [
    { guard: "wasToldToEnd", target: "#engine.stopped", actions: said },
    { target: "#engine.lost", actions: said },
  ] as const;
};

/** The next life of a rank whose launch is restarted. */
const OVER = {
  restart: RESTART,
  hello: {
    guard: "declaresRight",
    target: "#engine.connected",
    actions: ["noteBack", "sendInit", "sayConnected"],
  },
  ready: {},
  malformed: {},
  exited: {},
} as const;

/** Nothing that it says counts any more. */
const FORGOTTEN = {
  hello: {},
  ready: {},
  malformed: {},
  exited: [{ guard: "wasToldToEnd", target: "#engine.stopped" }, { target: "#engine.lost" }],
  restart: RESTART,
} as const;

/** What ends the service of a rank, also while it is asked whether it goes on. */
const SERVING = {
  engineGone: {
    target: "lost",
    actions: ["tellTopology", { type: "sayLost", params: { phase: "serve" } }],
  },
  // Said again: it does not count twice.
  ready: [
    { guard: "isStrict", actions: { type: "refuse", params: { phase: "serve" } } },
    {},
  ],
  // A rank that starts anew has left its group, and the group cannot take it back.
  hello: [
    { guard: "isStrict", actions: { type: "refuse", params: { phase: "serve" } } },
    { target: "restarted", actions: ["tellTopology", "sayBroken"] },
  ],
  malformed: { actions: { type: "refuse", params: { phase: "serve" } } },
  exited: endsIn("serve", ["tellTopology"]),
  // It comes on another socket than READY, and may be the later one.
  firstFrame: [
    { guard: "tellsMore", actions: ["noteBlocks", "sayBlocks", "sayStore"] },
    { actions: "sayStore" },
  ],
  leave: "leaving",
  stay: {},
  // Its front-end is another one, which saw to its leave.
  dismissed: { target: "left", actions: "noteDismissed" },
  restart: RESTART,
} as const;

export const engine: Chart<EngineContext, EngineEvent> = setup({
  types: {} as { context: EngineContext; events: EngineEvent; input: EngineInput },
  delays: {
    connectDeadline: ({ context }) => context.connectMs,
    readyDeadline: ({ context }) => context.readyMs,
  },
  guards: {
    declaresRight: ({ context, event }) => declaration(context, event) === null,
    mayTakeOver: ({ context, event }) =>
      !context.strict && declaration(context, event) === null &&
      (!context.launched || context.gone),
    wasToldToEnd: ({ event }) => (event as EngineEvent & { type: "exited" }).asked === true,
    restarts: ({ event }) => (event as EngineEvent & { type: "exited" }).restarting === true,
    isStrict: ({ context }) => context.strict,
    tellsMore: ({ context, event }) =>
      context.blocks === null && (event as EngineEvent & { type: "firstFrame" }).blocks !== null,
    // Its process of then: one that was started again has to say HELLO like any other.
    hasJoined: ({ context }) => context.joined === true && !context.gone,
    canBeAsked: ({ context }) => context.callable,
    wasNotAsked: ({ event }) => (event as EngineEvent & { type: "utilityFailed" }).unasked === true,
    stillRuns: ({ context }) => context.launched && !context.gone,
  },
  actions: {
    sendInit: () => effect<SendInit>({ type: "handshake.init" }),
    sayConnected: () => tell("startup", { type: "rankConnected" }),
    sayAway: () => tell("startup", { type: "rankAway" }),
    sayTakenOver: () => tell("startup", { type: "rankTakenOver" }),
    sayReady: ({ context, event }) => {
      const { blocks, statsAddress, hash } = event as EngineEvent & { type: "ready" };
      return tell("startup", {
        type: "rankReady",
        blocks: blocks ?? context.blocks,
        statsAddress,
        hash,
      });
    },
    sayStore: ({ context, event }) => {
      const { storePort = 0, redundant } = event as EngineEvent & { type: "ready" };
      if (context.learnsStore !== true || storePort === 0) return [];
      return tell("startup", {
        type: "rankStore",
        port: storePort,
        ...(redundant === undefined ? {} : { redundant }),
      });
    },
    sayBlocks: ({ event }) => {
      const { blocks } = event as EngineEvent & { type: "firstFrame" };
      return tell("startup", { type: "rankBlocks", blocks });
    },
    refuse: ({ context, event }, { phase }: { phase: Phase }) => {
      const spoken = event as Spoken;
      const reason: RefusalReason = spoken.type !== "malformed"
        ? declaration(context, spoken) ?? "unexpected"
        : spoken.status === undefined
        ? "malformed"
        : "unexpected";
      return tell("startup", {
        type: "rankRefused",
        reason,
        phase,
        message: spoken.status ?? spoken.type.toUpperCase(),
        expectedLocal: context.local,
        ...(spoken.reason === undefined ? {} : { text: spoken.reason }),
      });
    },
    sayLate: (_, { phase }: { phase: Phase }) => tell("startup", { type: "rankLate", phase }),
    sayLost: ({ event }, { phase }: { phase: Phase }) => {
      const { code, signal } = event as EngineEvent & { type: "exited" };
      return tell("startup", { type: "rankLost", phase, code, signal });
    },
    watchPulse: ({ context }) => {
      const { heartbeatEveryMs: everyMs, heartbeatWithinMs: withinMs } = context;
      return everyMs > 0
        ? hold<Heartbeat>("heartbeat", { type: "heartbeat", everyMs, withinMs })
        : undefined;
    },
    dropPulse: ({ context }) => context.heartbeatEveryMs > 0 ? release("heartbeat") : undefined,
    sayUnresponsive: ({ event }) => {
      const { afterMs, why } = event as EngineEvent & { type: "unresponsive" };
      return tell("startup", { type: "rankUnresponsive", phase: "serve", afterMs, why });
    },
    askForSign: ({ context }) =>
      effect<CallEngine>({
        type: "engine.call",
        request: { method: "is_scheduler_paused" },
        deadlineMs: context.heartbeatWithinMs,
      }),
    sayNotAdopted: ({ context, event }) => {
      const { why = null, failure = why } = event as { why?: string | null; failure?: string };
      const afterMs = context.heartbeatWithinMs;
      return tell("startup", { type: "rankUnresponsive", phase: "adopt", afterMs, why: failure });
    },
    /** Scaling without this engine fails. */
    tellTopology: ({ context, event }) =>
      context.scales === true
        ? tell("../topology", { type: "engineLost", text: endOf(event) })
        : [],
    /** It is there again. */
    tellTopologyBack: ({ context }) =>
      context.scales === true ? tell("../topology", { type: "engineRestarted" }) : [],
    noteRestart: assign(({ context, event }) => {
      const { connectMs, readyMs } = event as EngineEvent & { type: "restart" };
      const joined = context.joined === undefined ? {} : { joined: false };
      return { connectMs, readyMs, blocks: null, ...joined };
    }),
    sayBroken: () => tell("startup", { type: "rankRestarted" }),
    noteDismissed: assign({ scales: false }),
    noteGone: assign({ gone: true }),
    noteBack: assign({ gone: false, blocks: null }),
    noteBlocks: assign({
      blocks: ({ context, event }) =>
        (event as EngineEvent & { type: "firstFrame" | "ready" }).blocks ?? context.blocks,
    }),
  },
}).createMachine({
  id: "engine",
  context: ({ input }) => ({ ...input, gone: false, blocks: null }),
  initial: "awaited",
  // Signs of death matter while a rank serves; elsewhere its process or a deadline says more.
  on: {
    firstFrame: { actions: ["noteBlocks", "sayStore"] },
    dismissed: { actions: "noteDismissed" },
    engineGone: {},
    unresponsive: {},
    resumed: {},
    // Asked while it served, and something else came first.
    utilityReplied: {},
    utilityFailed: {},
    utilityLate: {},
    utilityUnknown: {},
  },
  states: {
    awaited: {
      always: { guard: "hasJoined", target: "ready" },
      meta: { timers: { connectDeadline: "deadline" } },
      after: {
        connectDeadline: {
          target: "late",
          actions: { type: "sayLate", params: { phase: "connect" } },
        },
      },
      on: {
        hello: [
          {
            guard: "declaresRight",
            target: "connected",
            actions: ["noteBack", "sendInit", "sayConnected"],
          },
          { actions: { type: "refuse", params: { phase: "connect" } } },
        ],
        ready: { actions: { type: "refuse", params: { phase: "connect" } } },
        malformed: { actions: { type: "refuse", params: { phase: "connect" } } },
        exited: [
          { guard: "restarts", actions: "noteGone" },
          ...endsIn("connect"),
        ],
      },
    },
    connected: {
      meta: { timers: { readyDeadline: "deadline" } },
      after: {
        readyDeadline: { target: "late", actions: { type: "sayLate", params: { phase: "load" } } },
      },
      on: {
        // Whether INIT had left is not known. An engine that has it leaves a second one unread.
        resumed: { actions: "sendInit" },
        hello: [
          {
            guard: "mayTakeOver",
            target: "connected",
            reenter: true,
            actions: ["noteBack", "sendInit", "sayTakenOver"],
          },
          { actions: { type: "refuse", params: { phase: "load" } } },
        ],
        ready: [
          {
            guard: "declaresRight",
            target: "ready",
            actions: ["sayStore", "sayReady", "noteBlocks", "tellTopologyBack"],
          },
          { actions: { type: "refuse", params: { phase: "load" } } },
        ],
        malformed: { actions: { type: "refuse", params: { phase: "load" } } },
        exited: [
          { guard: "restarts", target: "awaited", actions: ["noteGone", "sayAway"] },
          ...endsIn("load"),
        ],
      },
    },
    ready: {
      entry: "watchPulse",
      exit: "dropPulse",
      on: {
        unresponsive: { target: "lost", actions: ["tellTopology", "sayUnresponsive"] },
        resumed: [{ guard: "canBeAsked", target: "adopting" }, {}],
        ...SERVING,
      },
    },
    /** Its coordinator has come back, and it has not answered yet. */
    adopting: {
      entry: "askForSign",
      on: {
        utilityReplied: "ready",
        utilityFailed: [
          { guard: "wasNotAsked", target: "lost", actions: ["tellTopology", "sayNotAdopted"] },
          { target: "ready" },
        ],
        utilityLate: { target: "lost", actions: ["tellTopology", "sayNotAdopted"] },
        utilityUnknown: { target: "adopting", reenter: true },
        resumed: { target: "adopting", reenter: true },
        ...SERVING,
      },
    },
    /** It was told to end, and is started again when it has. */
    restarting: {
      on: {
        exited: { target: "awaited", actions: "noteGone" },
        hello: {},
        ready: {},
        malformed: {},
        firstFrame: {},
        stay: {},
        restart: { actions: "noteRestart" },
      },
    },
    /** An operation that scales down is about to commit. */
    leaving: {
      on: {
        exited: { target: "left", actions: ["noteGone", "tellTopology"] },
        restart: RESTART,
        stay: "ready",
        leave: {},
        ready: {},
        hello: {},
        malformed: {},
        firstFrame: {},
        unresponsive: {},
      },
    },
    left: {
      on: {
        // Nobody could say whether the group shrank: it starts anew as it was.
        restart: { target: "awaited", actions: "noteRestart" },
        unresponsive: {},
        exited: {},
        stay: {},
        leave: {},
        ready: {},
        hello: {},
        malformed: {},
      },
    },
    late: { on: FORGOTTEN },
    lost: { on: OVER },
    /** Its process was told to end, and has. */
    stopped: { on: OVER },
    restarted: { on: FORGOTTEN },
  },
});
