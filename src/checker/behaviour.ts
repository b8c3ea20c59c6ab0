/** What a process does, whatever it is written as: an XState chart, run exactly as in production, or a plain reducer. */
import type { AnyStateMachine } from "xstate";
import {
  type Json,
  type KernelEvent,
  Local,
  type LocalOutput,
  NotPortableError,
  type Output,
  portabilityProblems,
} from "../kernel/mod.ts";
import { ModelError } from "./model.ts";

/**
 * A process as a pair of pure functions over JSON. Good for peers that need no chart.
 *
 * `step` returns the next state, with outputs if there are any, or undefined when the event is not taken.
 */
export interface Reducer {
  readonly id: string;
  readonly initial: (input: Json) => Reduced;
  readonly step: (state: Json, event: KernelEvent) => Reduced | undefined;
}

export interface Reduced {
  readonly state: Json;
  readonly outputs?: readonly Output[];
}

export type Program = AnyStateMachine | Reducer;

/** A local state as properties and rules see it. For a reducer, `value` and `context` are both its state. */
export interface LocalView {
  readonly value: unknown;
  // What a chart keeps is its own business; whoever asks knows the chart.
  // deno-lint-ignore no-explicit-any
  readonly context: any;
  readonly done: boolean;
  readonly output: unknown;
  /** Whether the chart is in this state: `"serving"`, or `"serving.paused"` for a nested one. */
  in(state: string): boolean;
}

/** A numbered local state. */
export interface Place {
  readonly index: number;
  readonly view: LocalView;
  readonly key: string;
}

export interface PlaceStep {
  readonly to: Place;
  readonly outputs: readonly LocalOutput[];
  readonly kind: "taken" | "ignored" | "unexpected" | "refused" | "failed";
  readonly error?: string;
}

/** One remembered step, for coverage. */
export interface Taken {
  readonly before: Place;
  readonly event: KernelEvent;
  readonly step: PlaceStep;
}

const keys = new WeakMap<KernelEvent, string>();

/** The JSON text of an event, written once for each event object. Events are never changed. */
function keyOf(event: KernelEvent): string {
  let key = keys.get(event);
  if (key === undefined) keys.set(event, key = JSON.stringify(event));
  return key;
}

const isChart = (program: Program): program is AnyStateMachine => "root" in program;

/** A program with its states numbered and its steps remembered. */
export class Behaviour {
  readonly program: Program;
  readonly places: Place[] = [];
  /** Every step that was ever asked for. */
  readonly log: Taken[] = [];
  /** Every start that was ever asked for. */
  readonly starts: { readonly input: Json; readonly step: PlaceStep }[] = [];
  readonly #local: Local | undefined;
  readonly #byKey = new Map<string, Place>();
  readonly #memo: Map<string, PlaceStep>[] = [];
  readonly #started = new Map<string, PlaceStep>();

  constructor(program: Program) {
    this.program = program;
    if (!isChart(program)) return;
    const fatal = portabilityProblems(program).filter((p) => p.fatal);
    if (fatal.length > 0) throw new NotPortableError(fatal);
    this.#local = new Local(program, { memoLimit: Infinity, foreign: true });
  }

  get id(): string {
    return this.program.id;
  }

  get chart(): AnyStateMachine | undefined {
    return isChart(this.program) ? this.program : undefined;
  }

  /** How often XState itself was asked. */
  get calls(): number {
    return this.#local?.calls ?? this.log.length;
  }

  initial(input: Json): PlaceStep {
    const key = JSON.stringify(input ?? null);
    let step = this.#started.get(key);
    if (step === undefined) {
      if (this.#local !== undefined) {
        const { to, outputs } = this.#local.initial(input);
        step = { to: this.#placeOf(to), outputs, kind: "taken" };
      } else {
        const { state, outputs = [] } = (this.program as Reducer).initial(input);
        step = { to: this.#reduced(state), outputs: outputs as LocalOutput[], kind: "taken" };
      }
      this.#started.set(key, step);
      this.starts.push({ input, step });
    }
    return step;
  }

  step(place: Place, event: KernelEvent): PlaceStep {
    const eventKey = keyOf(event);
    const row = this.#memo[place.index] ??= new Map();
    let step = row.get(eventKey);
    if (step === undefined) {
      step = this.#compute(place, event, eventKey);
      row.set(eventKey, step);
      this.log.push({ before: place, event, step });
    }
    return step;
  }

  knows(type: string): boolean {
    return this.#local?.knows(type) ?? true;
  }

  #compute(place: Place, event: KernelEvent, eventKey: string): PlaceStep {
    if (this.#local !== undefined) {
      const state = this.#local.states[place.index]!;
      const { to, outputs, kind, error } = this.#local.step(state, event, eventKey);
      return error === undefined
        ? { to: this.#placeOf(to), outputs, kind }
        : { to: this.#placeOf(to), outputs, kind, error };
    }
    try {
      const reduced = (this.program as Reducer).step(JSON.parse(place.key) as Json, event);
      if (reduced === undefined) return { to: place, outputs: [], kind: "refused" };
      return {
        to: this.#reduced(reduced.state),
        outputs: (reduced.outputs ?? []) as LocalOutput[],
        kind: "taken",
      };
    } catch (error) {
      return { to: place, outputs: [], kind: "failed", error: String(error) };
    }
  }

  #placeOf(state: Local["states"][number]): Place {
    const known = this.places[state.index];
    if (known !== undefined) return known;
    const { snapshot, index, key } = state;
    const strange = notJson(snapshot.context, "context");
    if (strange !== undefined) {
      throw new ModelError(
        `chart ${this.id}: ${strange}. States are told apart by their JSON, so that contexts have to be JSON`,
      );
    }
    return this.places[index] = { index, key, view: chartView(snapshot) };
  }

  #reduced(state: Json): Place {
    const key = JSON.stringify(state);
    let place = this.#byKey.get(key);
    if (place === undefined) {
      place = { index: this.places.length, key, view: reducerView(state) };
      this.places.push(place);
      this.#byKey.set(key, place);
    }
    return place;
  }
}

/** Where a value is not what its JSON says, and why. */
function notJson(value: unknown, path: string): string | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number") {
    return Number.isFinite(value) ? undefined : `${path} is ${value}, which JSON has not`;
  }
  if (typeof value !== "object") return `${path} is ${typeof value}, which JSON has not`;
  const isList = Array.isArray(value);
  if (!isList && ![Object.prototype, null].includes(Object.getPrototypeOf(value))) {
    return `${path} is a ${value.constructor?.name || "class instance"}, which JSON has not`;
  }
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined && !isList) continue;
    const found = notJson(item, isList ? `${path}[${name}]` : `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function chartView(snapshot: Local["states"][number]["snapshot"]): LocalView {
  const { value, context, status } = snapshot;
  return {
    value,
    context,
    done: status === "done",
    output: (snapshot as { output?: unknown }).output,
    in: (state) => typeof value === "string" ? value === state : within(value, state.split(".")),
  };
}

const reducerView = (state: Json): LocalView => ({
  value: state,
  context: state,
  done: false,
  output: undefined,
  in: (name) =>
    state === name ||
    (typeof state === "object" && state !== null && "state" in state && state.state === name),
});

/** Whether a state value lies in the state that a path names. Parallel regions are looked into by their name. */
function within(value: unknown, path: readonly string[]): boolean {
  const [first, ...rest] = path;
  if (first === undefined) return true;
  if (typeof value === "string") return rest.length === 0 && value === first;
  if (typeof value !== "object" || value === null || !(first in value)) return false;
  return within((value as Record<string, unknown>)[first], rest);
}
