/**
 * The scale-up handshake server of rank 0 (wire spec, 7.6): greets the ranks first..last while an operation runs.
 *
 * The original's server ends at the first stranger, at the last READY, and believes a READY without HELLO. This one drops strangers,
 * answers every HELLO (a new rank may crash and come again), takes READY only of a rank that it greeted, and lives as long as
 * the operation.
 */
import { assign, setup } from "xstate";
import { type Chart, effect, hold, STARTER, tell } from "../kernel/mod.ts";
import type { ScaleUpReply, ScaleUpSocket, SendScaleUpInit } from "./effects/scaling.ts";

export interface ScaleUpHandshakeInput {
  readonly first: number;
  readonly last: number;
  readonly bind: string;
  readonly reply: ScaleUpReply;
}

export interface ScaleUpHandshakeContext extends ScaleUpHandshakeInput {
  /** Ranks that were answered. */
  readonly greeted: readonly number[];
  /** Ranks that said READY since they were last answered. */
  readonly ready: readonly number[];
  /** The hash of the first READY that had one: all must agree. */
  readonly hash: string | null;
}

export type ScaleUpHandshakeEvent =
  | { type: "listening"; endpoint: string }
  | { type: "bindFailed"; text: string }
  | { type: "hello"; rank: number; local: boolean; headless: boolean }
  | {
    type: "ready";
    rank: number;
    local: boolean;
    headless: boolean;
    hash: string | null;
    /** Of its KV cache, where its release tells them here. */
    blocks?: number;
  }
  | { type: "malformed"; rank: number; reason: string }
  | { type: "strangers"; kind: string; count: number; sample: string };

type Args = { context: ScaleUpHandshakeContext; event: ScaleUpHandshakeEvent };
type Ready = ScaleUpHandshakeEvent & { type: "ready" };

const rankOf = (event: ScaleUpHandshakeEvent): number => (event as { rank: number }).rank;
const added = (ranks: readonly number[], rank: number): readonly number[] =>
  ranks.includes(rank) ? ranks : [...ranks, rank].sort((a, b) => a - b);

const greeting = {
  hello: { guard: "isExpected", actions: ["noteGreeted", "sendInit"] },
  malformed: {},
  strangers: {},
} as const;

export const scaleUpHandshake: Chart<ScaleUpHandshakeContext, ScaleUpHandshakeEvent> = setup({
  types: {} as {
    context: ScaleUpHandshakeContext;
    events: ScaleUpHandshakeEvent;
    input: ScaleUpHandshakeInput;
  },
  guards: {
    isExpected: ({ context, event }: Args) =>
      rankOf(event) >= context.first && rankOf(event) <= context.last,
    isGreeted: ({ context, event }: Args) => context.greeted.includes(rankOf(event)),
    hashDiffers: ({ context, event }: Args) => {
      const { hash } = event as Ready;
      return hash !== null && context.hash !== null && hash !== context.hash;
    },
    everyoneReady: ({ context }: Args) => context.ready.length === context.last - context.first + 1,
  },
  actions: {
    openSocket: ({ context }: Args) =>
      hold<ScaleUpSocket>("socket", {
        type: "socket.scaleUp",
        bind: context.bind,
        ranks: [context.first, context.last],
        reply: context.reply,
      }),
    /** New ranks are given this address when they are launched: a coordinator that comes back binds it again, not a fresh one. */
    keepEndpoint: ({ context, event }: Args) =>
      hold<ScaleUpSocket>("socket", {
        type: "socket.scaleUp",
        bind: (event as ScaleUpHandshakeEvent & { type: "listening" }).endpoint,
        ranks: [context.first, context.last],
        reply: context.reply,
      }),
    sendInit: ({ event }: Args) =>
      effect<SendScaleUpInit>({ type: "scaleUp.init", rank: rankOf(event) }),
    sayListening: ({ event }: Args) => {
      const { endpoint } = event as ScaleUpHandshakeEvent & { type: "listening" };
      return tell(STARTER, { type: "handshakeListening", endpoint });
    },
    sayEveryoneReady: () => tell(STARTER, { type: "everyoneGreeted" }),
    sayBindFailed: ({ event }: Args) =>
      tell(STARTER, {
        type: "handshakeFailed",
        text: (event as ScaleUpHandshakeEvent & { type: "bindFailed" }).text,
      }),
    sayMismatch: ({ event }: Args) =>
      tell(STARTER, {
        type: "handshakeFailed",
        text: `the configuration of new rank ${rankOf(event)} differs from that of the others`,
      }),
    noteGreeted: assign(({ context, event }: Args) => ({
      greeted: added(context.greeted, rankOf(event)),
      // It starts anew: what it said before does not count.
      ready: context.ready.filter((rank) => rank !== rankOf(event)),
    })),
    noteReady: assign(({ context, event }: Args) => ({
      ready: added(context.ready, rankOf(event)),
      hash: context.hash ?? (event as Ready).hash,
    })),
  },
}).createMachine({
  id: "scale-up-handshake",
  context: ({ input }: { input: ScaleUpHandshakeInput }) => ({
    ...input,
    greeted: [],
    ready: [],
    hash: null,
  }),
  entry: "openSocket",
  initial: "opening",
  states: {
    opening: {
      on: {
        listening: { target: "greeting", actions: ["keepEndpoint", "sayListening"] },
        bindFailed: { target: "failed", actions: "sayBindFailed" },
        strangers: {},
      },
    },
    greeting: {
      on: {
        ...greeting,
        listening: {},
        bindFailed: { target: "failed", actions: "sayBindFailed" },
        ready: [
          { guard: "hashDiffers", target: "failed", actions: "sayMismatch" },
          { guard: "isGreeted", actions: "noteReady" },
        ],
      },
      always: { guard: "everyoneReady", target: "complete" },
    },
    /** Every new rank is ready; one that crashes and comes again is answered again. */
    complete: {
      entry: "sayEveryoneReady",
      on: {
        ...greeting,
        listening: {},
        bindFailed: {},
        ready: {},
        hello: { guard: "isExpected", target: "greeting", actions: ["noteGreeted", "sendInit"] },
      },
    },
    failed: {
      on: { hello: {}, ready: {}, malformed: {}, strangers: {}, listening: {}, bindFailed: {} },
    },
  },
});
