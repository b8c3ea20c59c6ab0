/**
 * What a model says: processes, what lies between them, what may go wrong, and what must hold.
 *
 * A model is data and pure functions. The processes are the charts of production; the rest says what the world may do to them.
 */
import type { Json, KernelEvent, Output } from "../kernel/mod.ts";
import type { Program } from "./behaviour.ts";
import type { World } from "./world.ts";

/** A process that is there from the start. */
export interface Process {
  readonly runs: Program;
  readonly input?: Json;
  /** Processes of one node crash and restart together. By default each process is its own node. */
  readonly node?: string;
  /** What may happen to it of its own accord, at any time: an operator's command, a program's decision. */
  readonly may?: May;
}

/**
 * How messages of a channel travel.
 * - `fifo`: in order between each pair; what is on its way is lost when an end crashes (a ZeroMQ connection).
 * - `bag`: in any order, each once.
 * - `set`: in any order, each any number of times: a message that was sent once can always arrive (again).
 */
export type ChannelKind = "fifo" | "bag" | "set";

/** A channel, where more is to be said than its kind. */
export interface Channel {
  readonly kind: ChannelKind;
  /** Whether a process can be reached now. While it cannot, its messages wait: a socket that is not bound yet. */
  readonly open?: (world: World, to: string) => boolean;
  /** Of `fifo`: the sender keeps what the other end has not taken, also while that end is down: a socket's own queue. Default false. */
  readonly kept?: boolean;
}

/** Something that the world does because of an effect or an outcome. Build them with {@link send}, {@link put} and so on. */
export type Operation =
  | {
    readonly do: "send";
    readonly channel: string;
    readonly to: string | readonly string[];
    readonly event: KernelEvent;
  }
  | { readonly do: "put"; readonly key: string; readonly value: Json | undefined }
  | { readonly do: "input"; readonly to: string; readonly event: KernelEvent }
  | { readonly do: "start"; readonly node: string; readonly outputs: readonly Output[] }
  | { readonly do: "crash"; readonly node: string };

/** Sends a message over a channel, to one process or to several (then each gets its own copy; in a `set` channel they share it). */
export const send = (
  channel: string,
  to: string | readonly string[],
  event: KernelEvent,
): Operation => ({ do: "send", channel, to, event });

/** Sets a key of the store (or, with undefined, removes it). Conditions are for the rule to check: it may read the store. */
export const put = (key: string, value: Json | undefined): Operation => ({ do: "put", key, value });

/** Gives an event to a process in the same atomic step. */
export const input = (to: string, event: KernelEvent): Operation => ({ do: "input", to, event });

/** Starts instances on a node in the same atomic step, as the boot of a program does. An instance that is there already stays. */
export const boot = (node: string, outputs: readonly Output[]): Operation => ({
  do: "start",
  node,
  outputs,
});

/** Crashes a node for good in the same atomic step, as when an engine kills itself. */
export const crash = (node: string): Operation => ({ do: "crash", node });

/** An effect as a chart returned it. */
// What an effect carries is its chart's business; the rule for its type knows.
// deno-lint-ignore no-explicit-any
export type AnyEffect = { readonly type: string; readonly [member: string]: any };

/** What the world does about a message effect. */
export type EffectRule = (effect: AnyEffect, world: World, from: string) => readonly Operation[];

/** One way in which a call may end. */
export interface Outcome {
  /** The outcome as the instance gets it. Without one the call stays open: the world has begun with it. */
  readonly event?: KernelEvent;
  /** What the call did to the world. */
  readonly does?: readonly Operation[];
  /** The name of a fault budget that this outcome uses up. */
  readonly fault?: string;
}

/**
 * How a call may end now. An empty list means: not yet.
 *
 * @param owed whether the instance's node crashed and came back since it asked: then the host follows the call's recovery rule.
 */
export type CallRule = (
  effect: AnyEffect,
  world: World,
  from: string,
  owed: boolean,
) => readonly Outcome[];

/**
 * What a held resource may report now: a socket that is bound, a key that is there. Asked as long as the resource is held, also after a
 * restart, so a rule that has nothing new to say says nothing.
 */
export type ResourceRule = (
  // What a resource is, is its chart's business.
  // deno-lint-ignore no-explicit-any
  resource: { readonly type: string; readonly [member: string]: any },
  world: World,
  from: string,
) => readonly Outcome[];

/** What may happen to a process of its own accord. */
export type May = readonly KernelEvent[] | ((world: World) => readonly KernelEvent[]);

/** A kind of crash: at any moment, and in the middle of any step with any part of its effects lost. */
export interface Crash {
  readonly nodes: readonly string[];
  /** How many such crashes in a run. */
  readonly budget: number;
  /** `journal`: comes back with the state it had (and is told `resumed`); `fresh`: starts anew; `never`. */
  readonly restart: "journal" | "fresh" | "never";
  /** Whether a step may lose a part of its effects (default true). */
  readonly losesEffects?: boolean;
  /** When a node can crash at all (default: whenever it is up), such as only once it was started. */
  readonly when?: (node: string, world: World) => boolean;
  /** What the rest of the world notices at once. */
  readonly notices?: (node: string, world: World) => readonly Operation[];
}

export interface Faults {
  readonly crashes?: readonly Crash[];
  /** Loses messages of these channels. */
  readonly drops?: { readonly channels: readonly string[]; readonly budget: number };
  /** Delivers messages of these channels without taking them away. */
  readonly duplicates?: { readonly channels: readonly string[]; readonly budget: number };
  /** Budgets that outcomes refer to: stale reads, lost acknowledgements, failing polls. */
  readonly budgets?: Readonly<Record<string, number>>;
}

export interface Timers {
  /** Which timers are deadlines. They fire only within the budget; all others (polls, back-offs) fire freely. */
  readonly deadline?: (instance: string, timer: string) => boolean;
  readonly budget?: number;
  /** When a timer may fire at all (default: always while it is armed), such as only when no message is on its way. */
  readonly when?: (instance: string, timer: string, world: World) => boolean;
}

/** A pure reducer over everything that happens: what a property must remember about the past. */
export interface Monitor {
  readonly initial: Json;
  readonly step: (memory: Json, happening: Happening) => Json;
  /**
   * Which happenings matter to it (default: all). It is not told of others; then what can happen in a state depends less on its memory,
   * and the search need not ask as often.
   */
  readonly heeds?: (happening: Happening) => boolean;
}

export type Happening =
  | {
    readonly kind: "took";
    readonly instance: string;
    readonly event: KernelEvent;
    readonly how: "taken" | "ignored" | "unexpected" | "refused" | "failed";
  }
  | { readonly kind: "effect"; readonly instance: string; readonly effect: AnyEffect }
  | {
    readonly kind: "sent";
    readonly channel: string;
    readonly to: string;
    readonly event: KernelEvent;
  }
  | { readonly kind: "crashed" | "restarted"; readonly node: string };

export interface Properties {
  /** Must hold in every state. */
  readonly always?: Readonly<Record<string, (world: World) => boolean>>;
  /** Must hold in some state: a witness that the model can do what it is about. */
  readonly sometimes?: Readonly<Record<string, (world: World) => boolean>>;
  /** Must hold at some time in every run, provided that what stays possible happens some day (weak fairness; faults need not happen). */
  readonly eventually?: Readonly<Record<string, (world: World) => boolean>>;
  /** Whenever the first holds, the second holds then or later, under the same fairness. */
  readonly leadsTo?: Readonly<
    Record<string, readonly [(world: World) => boolean, (world: World) => boolean]>
  >;
  /** Where a run may come to rest. Elsewhere a state in which nothing but faults can happen is a violation. */
  readonly rest?: (world: World) => boolean;
}

export interface Bounds {
  readonly states?: number;
  readonly depth?: number;
  /** States outside are counted, but not left. */
  readonly within?: (world: World) => boolean;
}

/** Which processes are interchangeable, and what of each component belongs to which of them. See `symmetry.ts`. */
export interface Symmetry {
  /** How many there are. */
  readonly size: number;
  /** Takes a component's value apart: what is nobody's, and what belongs to each. Must lose nothing. */
  readonly split: (component: ComponentValue) => Split;
}

export interface ComponentValue {
  readonly name: string;
  readonly kind: ComponentKind;
  /** For an instance its {@link InstanceValue}; for a channel the message(s); for a store key, a budget and so on the value. */
  // deno-lint-ignore no-explicit-any
  readonly value: any;
}

export type ComponentKind = "instance" | "channel" | "store" | "budget" | "node" | "monitor";

export interface Split {
  readonly shared?: unknown;
  /** What belongs to each, by number. */
  readonly each?: Readonly<Record<number, unknown>>;
}

export interface ModelDefinition {
  readonly name: string;
  readonly processes?: Readonly<Record<string, Process>>;
  /** Nodes that boot as programs do: what their boot function returns. Their charts are in {@link charts}. */
  readonly boots?: Readonly<Record<string, readonly Output[]>>;
  /** What may happen of its own accord to instances that are no processes. */
  readonly may?: Readonly<Record<string, May>>;
  /** What instances may be started from while the model runs, by the name that charts use. */
  readonly charts?: Readonly<Record<string, Program>>;
  readonly channels?: Readonly<Record<string, ChannelKind | Channel>>;
  /** Message effects by type. */
  readonly effects?: Readonly<Record<string, EffectRule>>;
  /** Calls by effect type. */
  readonly calls?: Readonly<Record<string, CallRule>>;
  /** Held resources by type. A type that is not named here reports nothing. */
  readonly resources?: Readonly<Record<string, ResourceRule>>;
  /** The store's keys at the start. */
  readonly store?: Readonly<Record<string, Json>>;
  readonly timers?: Timers;
  readonly faults?: Faults;
  readonly monitors?: Readonly<Record<string, Monitor>>;
  readonly symmetric?: Symmetry;
  readonly bounds?: Bounds;
  readonly properties?: Properties;
}

export interface Model extends ModelDefinition {
  readonly processes: Readonly<Record<string, Process>>;
  readonly properties: Properties;
}

/** A model contradicts itself. */
export class ModelError extends Error {
  readonly code = "bad-model";
}

/**
 * Checks a model's definition and completes it.
 *
 * @throws ModelError when it names a node, a channel or a budget that is not there.
 */
export function defineModel(definition: ModelDefinition): Model {
  const { name, processes = {}, channels = {}, effects = {}, calls = {}, faults = {} } = definition;
  const fail = (text: string): never => {
    throw new ModelError(`model ${name}: ${text}`);
  };
  const boots = Object.keys(definition.boots ?? {});
  if (Object.keys(processes).length + boots.length === 0) fail("has no processes");
  const nodes = new Set([...Object.entries(processes).map(([id, p]) => p.node ?? id), ...boots]);
  for (const { nodes: named, budget } of faults.crashes ?? []) {
    for (const node of named) {
      if (!nodes.has(node)) {
        fail(`faults.crashes names the node ${node}; there are ${[...nodes].join(", ")}`);
      }
    }
    natural(budget, "faults.crashes.budget");
  }
  for (const kind of ["drops", "duplicates"] as const) {
    const spec = faults[kind];
    for (const channel of spec?.channels ?? []) {
      if (!(channel in channels)) {
        fail(`faults.${kind} names the channel ${channel}, which is not there`);
      }
    }
    if (spec !== undefined) natural(spec.budget, `faults.${kind}.budget`);
  }
  for (const type of Object.keys(effects)) {
    if (type in calls) fail(`${type} is both a message effect and a call`);
  }
  if (definition.timers?.deadline !== undefined && definition.timers.budget === undefined) {
    fail("timers.deadline needs timers.budget: how many deadlines may pass in a run");
  }
  function natural(value: number, what: string): void {
    if (!Number.isInteger(value) || value < 0) fail(`${what} is ${value}; a count is expected`);
  }
  return { ...definition, processes, properties: definition.properties ?? {} };
}
