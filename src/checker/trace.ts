/** A run of a model as a list of steps: what happened, which choice it was, and what it changed. */
import type { Place } from "./behaviour.ts";
import type { Composition, Recorder } from "./composition.ts";
import type { Happening } from "./model.ts";
import { type Action, Cursor } from "./space.ts";

/** One component's change. A value that is absent means: not there, empty. */
export interface Change {
  readonly component: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

export interface TraceStep {
  /** Counts from 1; step n leads to state n. */
  readonly index: number;
  /** Which of the state's successors this is, in the model's order: what replay goes by. */
  readonly choice: number;
  readonly action: Action;
  readonly changes: readonly Change[];
  /** Everything that was taken, asked and sent in this step, in order. */
  readonly happened: readonly Happening[];
}

export interface Trace {
  readonly model: string;
  /** The initial state's components that are not empty. */
  readonly initial: Readonly<Record<string, unknown>>;
  readonly steps: readonly TraceStep[];
  /** For a lasso: the state (0 is the initial one) to which the last step leads back. */
  readonly loop?: number;
}

/** Something that happened in a step, and where the instance was that took it. */
export interface Told {
  readonly happening: Happening;
  readonly place: Place | undefined;
}

/** A run that can be stepped: the plain code behind the search, without its memory. */
export class Walk {
  readonly space: Composition;
  readonly #cursor = new Cursor();
  #values: Int32Array;

  constructor(space: Composition, values?: Int32Array) {
    this.space = space;
    if (values === undefined) {
      this.#cursor.place(() => {}, space.columns.count);
      space.start(this.#cursor);
      this.#values = this.#cursor.values.slice();
      this.#cursor.reset();
    } else this.#values = values;
  }

  /** The components as they are now. */
  get values(): Int32Array {
    return this.#values;
  }

  /** Asks something about the present state. */
  ask(holds: (cursor: Cursor) => boolean): boolean {
    this.#place();
    return holds(this.#cursor);
  }

  /** What can happen now, in the model's order. */
  choices(): { action: Action; values: Int32Array }[] {
    const found: { action: Action; values: Int32Array }[] = [];
    const named = this.#naming();
    this.#expand((action, values) => found.push({ action: named(action), values }));
    return found;
  }

  /** Goes to a state that {@link choices} gave. */
  move(values: Int32Array): void {
    this.#values = values;
  }

  /** Takes a choice, and tells what happened. Undefined when there is no such choice. */
  take(choice: number): Omit<TraceStep, "index"> | undefined {
    let taken: Omit<TraceStep, "index"> | undefined;
    let next = this.#values;
    this.each((action, values, happened, nth) => {
      if (nth !== choice) return;
      next = values;
      const changes = changesBetween(this.space, this.#values, values);
      taken = { choice, action, changes, happened: happened.map((h) => h.happening) };
    });
    this.#values = next;
    return taken;
  }

  /**
   * Looks at each choice, with everything that would happen in it.
   *
   * @param stutters hears of steps that change nothing, which are no choices.
   */
  each(
    visit: (action: Action, values: Int32Array, happened: readonly Told[], choice: number) => void,
    stutters?: (happened: readonly Told[]) => void,
  ): void {
    let happened: Told[] = [];
    let choice = 0;
    const outer = this.space.recorder;
    const recorder: Recorder = {
      happened: (happening, place) => happened.push({ happening, place }),
      forget: () => happened = [],
    };
    this.space.recorder = recorder;
    const named = this.#naming();
    try {
      this.#expand((action, values) => {
        visit(named(action), values, happened, choice++);
        happened = [];
      }, () => {
        stutters?.(happened);
        happened = [];
      });
    } finally {
      this.space.recorder = outer;
    }
  }

  /** Where one action has several outcomes in a state, the second and later ones say so: a run is told by its words. */
  #naming(): (action: number) => Action {
    const before = new Map<number, number>();
    return (id) => {
      const action = this.space.actions[id]!;
      const nth = (before.get(id) ?? 0) + 1;
      before.set(id, nth);
      return nth === 1 ? action : { ...action, label: `${action.label} #${nth}` };
    };
  }

  #place(): void {
    const columns = Math.max(this.space.columns.count, this.#values.length);
    this.#cursor.place((into) => into.set(this.#values), columns);
  }

  #expand(found: (action: number, values: Int32Array) => void, stutters?: () => void): void {
    const groups = this.space.groups;
    for (let g = 0; g < groups.length; g++) {
      const { parts } = groups[g]!;
      for (let p = 0; p < parts.length; p++) {
        this.#place();
        this.#cursor.collect(() => parts[p]!.expand(this.#cursor), (action, cursor) => {
          const moved = cursor.changed.some((c) => cursor.values[c] !== cursor.before(c));
          if (moved) found(action, cursor.values.slice());
          // A step that changed nothing is no step.
          else stutters?.();
        });
      }
    }
  }
}

/** Replays choices from the initial state. Throws when one of them is not there. */
export function traceOf(space: Composition, choices: readonly number[], loop?: number): Trace {
  const walk = new Walk(space);
  const initial = shown(space, walk.values);
  const steps = choices.map((choice, i): TraceStep => {
    const step = walk.take(choice);
    if (step === undefined) {
      throw new ReplayError(
        `model ${space.name}: step ${
          i + 1
        } is choice ${choice}, but there are only ${walk.choices().length}`,
      );
    }
    return { index: i + 1, ...step };
  });
  const trace = { model: space.name, initial, steps };
  return loop === undefined ? trace : { ...trace, loop };
}

/** A trace does not fit the model any more. */
export class ReplayError extends Error {
  readonly code = "replay";
}

/** The components of a state that are not empty, by name. */
export function shown(space: Composition, values: Int32Array): Record<string, unknown> {
  const state: Record<string, unknown> = {};
  for (const { column, kind, name, show } of space.components.all) {
    const value = show(values[column] ?? 0);
    if (value !== undefined) state[kind === "instance" ? name : `${kind} ${name}`] = value;
  }
  return state;
}

function changesBetween(space: Composition, before: Int32Array, after: Int32Array): Change[] {
  const changes: Change[] = [];
  for (const { column, kind, name, show } of space.components.all) {
    const [was, is] = [before[column] ?? 0, after[column] ?? 0];
    if (was === is) continue;
    const component = kind === "instance" ? name : `${kind} ${name}`;
    const change: { component: string; before?: unknown; after?: unknown } = { component };
    if (show(was) !== undefined) change.before = show(was);
    if (show(is) !== undefined) change.after = show(is);
    changes.push(change);
  }
  return changes;
}
