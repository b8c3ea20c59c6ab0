/** A system of instances at one moment, and the definition of what it is made of. */
import type { AnyStateMachine } from "xstate";
import { type Hash, hex, ZERO } from "./hash.ts";
import { Instances } from "./instances.ts";
import type {
  EffectTraits,
  Input,
  InstanceId,
  KernelEvent,
  Note,
  Output,
  Stamped,
  Transition,
  Typed,
} from "./types.ts";

/** A chart that instances can be started from. */
export interface ChartKind {
  readonly machine: AnyStateMachine;
  /** False for charts whose every state is new, such as counters: their states are neither interned nor memoised. */
  readonly interned?: boolean;
}

/** What a system is made of. */
export interface SystemDefinition<E extends Typed = Typed> {
  readonly charts: Readonly<Record<string, ChartKind>>;
  /** How each type of effect behaves. An effect that is not listed is refused when an action returns it. */
  readonly effects: Readonly<Record<E["type"], EffectTraits>>;
  /** The root instances for a configuration: what input 1 of every run starts. Pure. */
  boot(configuration: KernelEvent): readonly Output[];
}

/** An immutable system. Same system and input, same next system, byte for byte. */
export interface System {
  readonly instances: Instances;
  /** Counts armed timers, so that a firing that was on its way is told from one that is meant now. */
  readonly generation: number;
  /** Sequence number of the last input. */
  readonly seq: number;
  /** Wall-clock milliseconds of the last input. */
  readonly at: number;
  /** Hash of everything above but `seq` and `at`, as a set: kept up to date change by change. */
  readonly hash: Hash;
}

export const EMPTY: System = {
  instances: Instances.none,
  generation: 0,
  seq: 0,
  at: 0,
  hash: ZERO,
};

/** What one input led to. */
export interface Applied<E extends Typed = Typed, R extends Typed = Typed> {
  readonly input: Input;
  /** What the world is asked for, in order. */
  readonly effects: readonly Stamped<E, R>[];
  /** What a person should know. */
  readonly notes: readonly Note[];
  /** Every delivery, in order. */
  readonly transitions: readonly Transition[];
}

/** What one step came to: that, and the system after it. */
export interface StepResult<E extends Typed = Typed, R extends Typed = Typed>
  extends Applied<E, R> {
  readonly system: System;
}

/** 16 hex digits for the state of a system: equal digits, equal state (up to one chance in 2^64). */
export const stateDigest = (system: Pick<System, "hash">): string => hex(system.hash);

/** The rank in an instance id such as `rank/3/engine`, or undefined. */
export function rankOf(id: InstanceId): number | undefined {
  if (!id.startsWith("rank/")) return undefined;
  let rank = 0;
  for (let i = 5; i < id.length; i++) {
    const digit = id.charCodeAt(i) - 48;
    if (digit === -1) return i === 5 ? undefined : rank; // the slash
    if (digit < 0 || digit > 9) return undefined;
    rank = 10 * rank + digit;
  }
  return undefined;
}
