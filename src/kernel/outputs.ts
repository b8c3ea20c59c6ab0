/**
 * Builders for what an action returns.
 *
 * ```ts
 * actions: {
 *   sendInit: ({ context }) => effect({ type: "handshake.init", hash: context.hash }),
 *   sayReady: ({ event }) => [tell("startup", { type: "rankReady", blocks: event.blocks }), release("bus")],
 * }
 * ```
 *
 * Under a plain XState actor the same actions run and what they return is dropped.
 */
import type { Json, KernelEvent, Output, Typed } from "./types.ts";

/**
 * Tells another instance. The receiver finds the sender's id in the event's member `from`.
 *
 * @param to an instance id; `../x/y` is relative to the own id's folder (`rank/3/engine` tells `../waves`: `rank/3/waves`);
 *   `@starter` is whoever started this instance.
 */
export const tell = (to: string, event: KernelEvent): Output<never, never> => ({
  kind: "tell",
  to,
  event,
});

/** Starts an instance of a chart. When it ends, its starter is told `{type: "ended", chart, output}`. The id may be relative. */
export const start = (id: string, chart: string, input: Json = null): Output<never, never> => ({
  kind: "start",
  id,
  chart,
  input,
});

/** Ends an instance: its timers, resources and open calls go with it, and nobody is told. */
export const stop = (id: string): Output<never, never> => ({ kind: "stop", id });

/**
 * Asks the world for a message or a call (which of the two, the effect table says).
 *
 * @param slot for a call: asking again in the same slot abandons the earlier call. The effect's type by default.
 */
export const effect = <E extends Typed>(asked: E, slot?: string): Output<E, never> =>
  slot === undefined ? { kind: "effect", effect: asked } : { kind: "effect", effect: asked, slot };

/** Holds a resource until it is released, replaced under the same key, or the instance ends. */
export const hold = <R extends Typed>(key: string, resource: R): Output<never, R> => ({
  kind: "hold",
  key,
  resource,
});

/** Gives a held resource back. */
export const release = (key: string): Output<never, never> => ({ kind: "release", key });
