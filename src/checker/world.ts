/** The state of a model as properties and rules read it. Everything read is noted, which is what makes remembering sound. */
import type { Json, KernelEvent } from "../kernel/mod.ts";
import type { AnyEffect } from "./model.ts";
import type { LocalView } from "./behaviour.ts";

export interface World {
  /** The local state of an instance; undefined while there is none of that id. */
  at(instance: string): LocalView | undefined;
  /** Whether an instance is there and in this state. */
  in(instance: string, state: string): boolean;
  /** The value of a store key. */
  // What a key holds is the model's business.
  // deno-lint-ignore no-explicit-any
  get(key: string): any;
  /** The messages on their way to a process over a channel, in order for `fifo`. */
  messages(channel: string, to: string): readonly KernelEvent[];
  /** The calls of an instance that have no outcome yet. */
  calls(instance: string): readonly AnyEffect[];
  /** The armed timers of an instance. */
  timers(instance: string): readonly string[];
  /** The resources that an instance holds. */
  // What a resource is, is its chart's business.
  // deno-lint-ignore no-explicit-any
  holds(instance: string): readonly { readonly type: string; readonly [member: string]: any }[];
  /** Whether a node is down. */
  down(node: string): boolean;
  /** How much of a fault budget is used: `crashes`, `drops`, `duplicates`, `deadlines`, or a name of the model's. */
  spent(budget: string): number;
  /** What a monitor remembers. */
  // deno-lint-ignore no-explicit-any
  memory(monitor: string): any;
}

export type { Json };
