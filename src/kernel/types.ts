/**
 * What every room sees of the kernel: inputs go in, effects come out, both are plain JSON data.
 *
 * The kernel knows nothing of engines or clusters. It is generic in the events that instances take, in the
 * effects that they ask for (`E`) and in the resources that they hold (`R`).
 */
import type { LocalState, StepKind } from "./local.ts";

/** A JSON value: the only kind of data in events, contexts and effects. Ids of 64 bits are decimal strings, bytes are hex. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [key: string]: Json | undefined };

/** Names an instance of a machine in a system, for example `startup` or `rank/3/engine`. */
export type InstanceId = string;

/** Anything that carries a type: events, effects and resources. */
export interface Typed {
  readonly type: string;
}

/** An event as it is delivered; its other members are JSON values. */
export interface KernelEvent extends Typed {
  readonly [member: string]: unknown;
}

/** The address of the kernel itself: it takes `configured` (starts the root instances) and `resumed` (after a restart). */
export const SYSTEM = "@system";
/** In an output's address: the instance that started this one. */
export const STARTER = "@starter";

/**
 * One thing that happened: a message that arrived, a timer that fired, an operator's command, the outcome of a call.
 * A run is a list of these, and everything else is computed from it.
 */
export interface Input {
  /** Counts from 1 without gaps. */
  readonly seq: number;
  /** Wall-clock milliseconds; never runs back. Seen by the kernel's timers and by views, not by machines. */
  readonly at: number;
  readonly to: InstanceId;
  readonly event: KernelEvent;
}

/** What an action may return. Plain data: see the builders in `outputs.ts`. */
export type Output<E extends Typed = Typed, R extends Typed = Typed> =
  | { readonly kind: "tell"; readonly to: string; readonly event: KernelEvent }
  | { readonly kind: "start"; readonly id: string; readonly chart: string; readonly input: Json }
  | { readonly kind: "stop"; readonly id: string }
  | { readonly kind: "effect"; readonly effect: E; readonly slot?: string }
  | { readonly kind: "hold"; readonly key: string; readonly resource: R }
  | { readonly kind: "release"; readonly key: string };

/** What becomes of an armed timer when the process that ran it was gone for a while. */
export type RestartPolicy =
  /** The moment stays: what is overdue fires at once. The default. */
  | "deadline"
  /** The time away does not count. */
  | "remaining"
  /** The whole delay starts anew. */
  | "restart";

/** A timer as a chart arms it: `after` in the chart, nothing but data here. */
export type TimerOutput =
  | {
    readonly kind: "arm";
    /** The event that XState takes when it fires, which is also the timer's name within its instance. */
    readonly timer: string;
    readonly delayMs: number;
    readonly restart: RestartPolicy;
  }
  | { readonly kind: "disarm"; readonly timer: string };

/** How an effect type behaves. */
export interface EffectTraits {
  /** A `message` has no outcome; a `call` has exactly one, which arrives as an input that names the effect's id. */
  readonly kind: "message" | "call";
  /** `durable`: leaves only after the input that caused it is safely on disk. `appended`: once it is in the journal's buffer. */
  readonly leaves: "durable" | "appended";
  /**
   * For a call that was owed when the process that carried it out went away: `repeat` it (the default), or `ask` the driver what became of
   * it.
   */
  readonly recovery?: "repeat" | "ask";
}

/** `<seq>.<index>`: the same for the same run, and therefore good for ids on the wire. */
export type EffectId = `${number}.${number}`;

interface Stamp {
  readonly id: EffectId;
  /** The instance that asked. */
  readonly from: InstanceId;
}

/** What a step asks of the world, in order. */
export type Stamped<E extends Typed = Typed, R extends Typed = Typed> =
  & Stamp
  & (
    | { readonly kind: "message"; readonly effect: E }
    | { readonly kind: "call"; readonly effect: E; readonly slot: string }
    /** Nobody waits any more for the outcome of the call with this id. */
    | { readonly kind: "abandon"; readonly call: EffectId }
    | { readonly kind: "hold"; readonly key: string; readonly resource: R }
    | { readonly kind: "release"; readonly key: string }
    | {
      readonly kind: "arm";
      readonly timer: string;
      readonly generation: number;
      readonly dueAt: number;
    }
    | { readonly kind: "disarm"; readonly timer: string; readonly generation: number }
  );

/** Something that a person should know about a step although no machine acted on it. */
export interface Note {
  readonly kind:
    /** No active state knows the event's type. */
    | "unexpected"
    /** The type is known, but every guard said no. */
    | "refused"
    /** A guard or an action threw; the instance's state is unchanged. */
    | "failed"
    /** A timer fired that was disarmed or armed anew meanwhile. */
    | "stale-timer"
    /** The outcome of a call that nobody waits for. */
    | "late-outcome"
    /** There is no instance of that id. */
    | "nobody"
    /** An instance of that id runs already. */
    | "duplicate-start";
  readonly instance: InstanceId;
  /** The event's type, or what was to be started. */
  readonly what: string;
  /** In words, where there is more to say. */
  readonly text?: string;
}

/**
 * One delivery: an instance took (or did not take) an event. `before` is absent for a start, whose event is
 * `started {input}`, `after` for an end.
 */
export interface Transition {
  readonly instance: InstanceId;
  readonly chart: string;
  readonly event: KernelEvent;
  readonly before: LocalState | undefined;
  readonly after: LocalState | undefined;
  readonly kind: StepKind | "started" | "stopped";
}

/** An armed timer. `generation` tells a firing that was already on its way from one that is meant now. */
export interface Timer {
  readonly timer: string;
  readonly generation: number;
  readonly dueAt: number;
  readonly delayMs: number;
  readonly restart: RestartPolicy;
}

/** A call whose outcome has not arrived. At most one is open per instance and slot. */
export interface OpenCall<E extends Typed = Typed> {
  readonly id: EffectId;
  readonly slot: string;
  readonly effect: E;
}

/** A resource that an instance holds, by a key of its own. */
export interface Held<R extends Typed = Typed> {
  readonly key: string;
  readonly resource: R;
}

/** An instance as the system holds it. */
export interface Instance<E extends Typed = Typed, R extends Typed = Typed> {
  readonly id: InstanceId;
  readonly chart: string;
  /** Who started it; empty for root instances. */
  readonly starter: InstanceId;
  readonly state: LocalState;
  readonly timers: readonly Timer[];
  readonly calls: readonly OpenCall<E>[];
  readonly held: readonly Held<R>[];
}
