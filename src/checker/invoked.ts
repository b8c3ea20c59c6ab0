/** What an actor that a chart invokes may come to: events as XState would raise them. For the rules of a model's `calls`. */
import type { KernelEvent } from "../kernel/mod.ts";
import type { AnyEffect } from "./model.ts";

/**
 * The actor is done: `onDone` is taken.
 *
 * ```ts
 * calls: { load: (call) => [{ event: doneOf(call, { rows: 3 }) }, { event: errorOf(call, "timeout") }] }
 * ```
 */
export const doneOf = (call: AnyEffect, output?: unknown): KernelEvent => ({
  type: `xstate.done.actor.${call["id"]}`,
  actorId: call["id"],
  output,
});

/** The actor failed: `onError` is taken. */
export const errorOf = (call: AnyEffect, error: unknown): KernelEvent => ({
  type: `xstate.error.actor.${call["id"]}`,
  actorId: call["id"],
  error,
});
