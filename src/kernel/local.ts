/**
 * One chart, run as a pure function: `(state, event) -> (state, outputs)`.
 *
 * The states of a chart are interned and its steps memoised. A machine does not know which instance it is, so equal states of
 * different instances are one state here, and most steps of a run are a look-up. The facts about XState that this
 * file rests on (the reused actor scope, the shape of its action list) are internal to xstate 5.33 and stay in this file.
 */
import { type AnyMachineSnapshot, type AnyStateMachine, createActor, createMachine } from "xstate";
import { fingerprint, hashOf, membersHash, restHash, updatedHash } from "./fingerprint.ts";
import { type Hash, hex, mix } from "./hash.ts";
import { type InPlace, type Moved, takenInPlace } from "./in-place.ts";
import type { Json, KernelEvent, Output, RestartPolicy, TimerOutput } from "./types.ts";

/** A state of a chart: value, context, status and history. Two equal states are one object while both are interned. */
export interface LocalState {
  /** Dense number of the interned state; -1 where the chart's states are not interned. */
  readonly index: number;
  readonly snapshot: AnyMachineSnapshot;
  /** The fingerprint as text: JSON of value, context, status and history. Made when it is asked for. */
  readonly key: string;
  readonly hash: Hash;
}

/** A state that is not interned: nobody may ever ask for its text, so that only its hash is made, from that of the state before it. */
class Passing implements LocalState {
  readonly index = -1;
  readonly snapshot: AnyMachineSnapshot;
  readonly hash: Hash;
  readonly #members: Hash;
  readonly #rest: Hash;

  constructor(
    snapshot: AnyMachineSnapshot,
    members: Hash = membersHash(snapshot.context),
    rest: Hash = restHash(snapshot),
  ) {
    this.snapshot = snapshot;
    this.hash = mix(members, rest);
    this.#members = members;
    this.#rest = rest;
  }

  /** This state with another context, in which only these members differ. */
  moved({ snapshot, update }: Moved): Passing {
    const members = updatedHash(this.#members, this.snapshot.context, update);
    return new Passing(snapshot, members, this.#rest);
  }

  get key(): string {
    return fingerprint(this.snapshot);
  }
}

/** How an event was met. `ignored` is on purpose (`on: { ready: {} }`); `unexpected` and `refused` are not. */
export type StepKind = "taken" | "ignored" | "unexpected" | "refused" | "failed";

export type LocalOutput = Output | TimerOutput;

export interface LocalStep {
  readonly to: LocalState;
  readonly outputs: readonly LocalOutput[];
  readonly kind: StepKind;
  /** Why it failed, for kind `failed`. */
  readonly error?: string;
}

export interface LocalOptions {
  /** False for charts whose every state is new, such as counters (default true). */
  readonly interned?: boolean;
  /** How many steps the memo remembers before it starts afresh (default 50,000; `Infinity` in a checker). */
  readonly memoLimit?: number;
  /** Ask XState again for every n-th step that it was not asked for, and throw if it differs: finds impure guards and actions (default 0: never). */
  readonly verifyEvery?: number;
  /**
   * For charts that were written for XState alone (default false): what they `emit` is an effect, and an actor that they `invoke` is a call of
   * its name, open until the state is left. Nothing of it runs.
   */
  readonly foreign?: boolean;
  /** Told of the transitions that each microstep takes: an event's, those of raised events, and those without an event. */
  readonly onMicrostep?: (transitions: readonly MicroTransition[]) => void;
}

/** A transition as XState has it. */
export interface MicroTransition {
  readonly source: {
    readonly id: string;
    readonly transitions: ReadonlyMap<string, readonly MicroTransition[]>;
    readonly always?: readonly MicroTransition[];
  };
  /** Empty for one that needs no event. */
  readonly eventType: string;
  readonly target?: readonly { readonly id: string }[];
}

/** A guard or an action gave two answers to the same question. */
export class ImpureChartError extends Error {
  readonly code = "impure-chart";
  constructor(chart: string, event: string) {
    super(
      `chart ${chart}: two different results for the same state and event ${event}. Guards and actions must depend on context and event only.`,
    );
    this.name = "ImpureChartError";
  }
}

interface CapturedAction {
  readonly type: string;
  readonly info: unknown;
  readonly params: Record<string, unknown> | undefined;
  readonly exec: ((info: unknown, params: unknown) => unknown) | undefined;
}

const NO_OUTPUTS: readonly LocalOutput[] = [];
const bystander = createActor(createMachine({}));

export class Local {
  readonly machine: AnyStateMachine;
  readonly interned: boolean;
  /** How often XState itself was asked; the rest were look-ups. */
  calls = 0;
  readonly states: LocalState[] = [];

  #byKey = new Map<string, LocalState>();
  #initial = new Map<string, LocalStep>();
  #memo = new Map<LocalState, Map<string, LocalStep>>();
  #remembered = 0;
  #lookups = 0;
  #captured: CapturedAction[] = [];
  readonly #memoLimit: number;
  readonly #verifyEvery: number;
  readonly #foreign: boolean;
  readonly #restarts = new Map<string, RestartPolicy>();
  readonly #events: ReadonlySet<string>;
  // The shape is xstate's own; the cast keeps it in this file.
  // deno-lint-ignore no-explicit-any
  readonly #scope: any;

  constructor(machine: AnyStateMachine, options: LocalOptions = {}) {
    this.machine = machine;
    this.interned = options.interned ?? true;
    this.#memoLimit = options.memoLimit ?? 50_000;
    this.#verifyEvery = options.verifyEvery ?? 0;
    this.#foreign = options.foreign ?? false;
    this.#events = new Set(machine.events);
    this.#scope = {
      self: bystander,
      system: options.onMicrostep === undefined ? bystander.system : listening(options.onMicrostep),
      id: "",
      sessionId: "",
      defer() {},
      logger() {},
      stopChild() {},
      emit() {},
      actionExecutor: (action: CapturedAction) => this.#captured.push(action),
    };
    for (const node of machine.root ? nodesOf(machine.root) : []) {
      const policies = (node.meta as { timers?: Record<string, RestartPolicy> } | undefined)
        ?.timers;
      for (const delayed of node.after) {
        const name = String(delayed.eventType).slice("xstate.after.".length, -node.id.length - 1);
        this.#restarts.set(String(delayed.eventType), policies?.[name] ?? "deadline");
      }
    }
  }

  /** Whether some state of the chart names this event type. */
  knows(eventType: string): boolean {
    return this.#events.has(eventType);
  }

  /** The initial state for an instance's input, with what its entry actions returned. Throws what they throw. */
  initial(input: Json): LocalStep {
    const key = this.interned ? JSON.stringify(input) : "";
    const known = this.interned ? this.#initial.get(key) : undefined;
    if (known !== undefined) return known;
    this.#captured = [];
    const snapshot = this.machine.getInitialSnapshot(this.#scope, input as never);
    const outputs = this.#outputs();
    if (this.interned) this.#makeRoom();
    const step: LocalStep = { to: this.intern(snapshot), outputs, kind: "taken" };
    if (this.interned) {
      this.#initial.set(key, step);
      this.#remembered++;
    }
    return step;
  }

  /** Takes an event. `eventKey` may be given when the event's JSON text is at hand. */
  step(state: LocalState, event: KernelEvent, eventKey?: string): LocalStep {
    if (!this.interned) return this.#inPlace(state, event) ?? this.#compute(state, event);
    const key = eventKey ?? JSON.stringify(event);
    let row = this.#memo.get(state);
    const known = row?.get(key);
    if (known !== undefined) {
      return this.#verified(known, state, event);
    }
    if (this.#makeRoom()) row = undefined;
    const result = this.#compute(state, event);
    if (row === undefined) this.#memo.set(state, row = new Map());
    row.set(key, result);
    this.#remembered++;
    return result;
  }

  /** When enough is remembered, all of it is forgotten. */
  #makeRoom(): boolean {
    if (this.#remembered < this.#memoLimit) return false;
    this.#initial.clear();
    this.#memo.clear();
    this.#byKey.clear();
    this.states.length = 0;
    this.#remembered = 0;
    return true;
  }

  /** The state for a snapshot: the interned one if there is an equal one. */
  intern(snapshot: AnyMachineSnapshot): LocalState {
    if (!this.interned) return new Passing(snapshot);
    const key = fingerprint(snapshot);
    let state = this.#byKey.get(key);
    if (state === undefined) {
      state = { index: this.states.length, snapshot, key, hash: hashOf(snapshot) };
      this.states.push(state);
      this.#byKey.set(key, state);
    }
    return state;
  }

  /** Restores a state from its fingerprint text. */
  restore(key: string): LocalState {
    const [value, context, status, historyValue] = JSON.parse(key);
    const persisted = { value, context, status, historyValue: historyValue ?? {}, children: {} };
    return this.intern(this.machine.restoreSnapshot(persisted as never, this.#scope));
  }

  #compute(state: LocalState, event: KernelEvent): LocalStep {
    this.calls++;
    this.#captured = [];
    const before = state.snapshot;
    try {
      const after = this.machine.transition(before, event as never, this.#scope);
      const moved = after !== before || this.#captured.length > 0;
      const outputs = this.#outputs();
      const to = after === before ? state : this.intern(after as AnyMachineSnapshot);
      if (moved) return { to, outputs, kind: "taken" };
      return { to: state, outputs: NO_OUTPUTS, kind: this.#untaken(before, event) };
    } catch (error) {
      return { to: state, outputs: NO_OUTPUTS, kind: "failed", error: messageOf(error) };
    }
  }

  #untaken(snapshot: AnyMachineSnapshot, event: KernelEvent): StepKind {
    // deno-lint-ignore no-explicit-any
    const nodes = (snapshot as any)._nodes as { transitions: Map<string, unknown> }[];
    if (!nodes.some((n) => n.transitions.has(event.type) || n.transitions.has("*"))) {
      return "unexpected";
    }
    return this.machine.getTransitionData(snapshot as never, event as never).length > 0
      ? "ignored"
      : "refused";
  }

  #outputs(): readonly LocalOutput[] {
    if (this.#captured.length === 0) return NO_OUTPUTS;
    const outputs: LocalOutput[] = [];
    for (const { type, info, params, exec } of this.#captured) {
      if (type === "xstate.raise") {
        if (params?.["delay"] === undefined) continue; // an immediate raise was taken already
        const timer = (params["event"] as KernelEvent).type;
        const restart = this.#restarts.get(timer) ?? "deadline";
        outputs.push({ kind: "arm", timer, delayMs: Number(params["delay"]), restart });
      } else if (type === "xstate.cancel") {
        outputs.push({ kind: "disarm", timer: String(params?.["sendId"]) });
      } else if (type === "xstate.log") {
        continue; // for people only
      } else if (type.startsWith("xstate.")) {
        const output = this.#foreign ? foreignOutput(type, params) : undefined;
        if (output === undefined) throw new Error(`${type} is outside the portable subset`);
        outputs.push(output);
      } else if (exec === undefined) {
        throw new Error(`there is no action ${type}`);
      } else {
        const returned = exec(info, params) as LocalOutput | LocalOutput[] | undefined;
        if (Array.isArray(returned)) outputs.push(...returned);
        else if (returned !== undefined) outputs.push(returned);
      }
    }
    return outputs;
  }

  #inPlace(state: LocalState, event: KernelEvent): LocalStep | undefined {
    let found: InPlace<LocalOutput> | undefined;
    try {
      found = takenInPlace(this.machine, state.snapshot, event);
    } catch {
      return undefined; // what threw will throw again
    }
    if (found === undefined) return undefined;
    const { moved, outputs } = found;
    const to = moved === undefined ? state : (state as Passing).moved(moved);
    return this.#verified({ to, outputs, kind: "taken" }, state, event);
  }

  #verified(known: LocalStep, state: LocalState, event: KernelEvent): LocalStep {
    if (this.#verifyEvery === 0 || ++this.#lookups % this.#verifyEvery !== 0) return known;
    const again = this.#compute(state, event);
    const { hash, key, snapshot } = known.to;
    const same = key === again.to.key && hex(hash) === hex(hashOf(snapshot)) &&
      known.kind === again.kind &&
      JSON.stringify(known.outputs) === JSON.stringify(again.outputs);
    if (!same) throw new ImpureChartError(this.machine.id, event.type);
    return known;
  }
}

/** The system as XState sees it, with somebody who hears of every microstep. */
const listening = (heard: NonNullable<LocalOptions["onMicrostep"]>): unknown =>
  Object.create(bystander.system, {
    _sendInspectionEvent: {
      value: (event: { type: string; _transitions?: readonly MicroTransition[] }) => {
        if (event.type === "@xstate.microstep") heard(event._transitions ?? []);
      },
    },
  });

/** What XState would do by itself, as data. */
function foreignOutput(
  type: string,
  params: Readonly<Record<string, unknown>> | undefined,
): LocalOutput | undefined {
  switch (type) {
    case "xstate.emit":
      return { kind: "effect", effect: params!["event"] as KernelEvent };
    case "xstate.spawnChild": {
      const { id, src, input } = params as { id: string; src: string; input?: Json };
      const effect = { type: src, id, ...(input === undefined ? {} : { input }) };
      return { kind: "effect", effect, slot: `invoked ${id}` };
    }
    case "xstate.stopChild":
      return { kind: "release", key: `invoked ${params?.["id"]}` };
  }
  return undefined;
}

interface Node {
  readonly id: string;
  readonly meta?: unknown;
  readonly after: readonly { eventType: string }[];
  readonly states: Record<string, Node>;
}

function* nodesOf(node: unknown): Generator<Node> {
  yield node as Node;
  for (const child of Object.values((node as Node).states)) yield* nodesOf(child);
}

const messageOf = (error: unknown): string => {
  const cause = error instanceof Error ? error : new Error(String(error));
  return cause.message;
};
