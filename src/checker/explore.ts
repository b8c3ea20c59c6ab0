/**
 * A model on demand: one state at a time, for people and for the console.
 *
 * A state is named by the choices that lead to it. The protocol is JSON: `{"path": [0, 3]}` in, an {@link ExploredState} out.
 */
import { Composition } from "./composition.ts";
import type { Model } from "./model.ts";
import type { Action, Predicate } from "./space.ts";
import { type Change, ReplayError, shown, type Trace, traceOf, Walk } from "./trace.ts";

export interface ExploreRequest {
  /** The choices from the initial state; empty for the initial state itself. */
  readonly path: readonly number[];
}

export interface ExploredState {
  readonly model: string;
  readonly path: readonly number[];
  /** The components that are not empty. */
  readonly state: Readonly<Record<string, unknown>>;
  /** Whether each property's condition holds here. */
  readonly conditions: Readonly<Record<string, boolean>>;
  /** What can happen now; the number is the next element of a path. */
  readonly choices: readonly ExploredChoice[];
  /** What led here, last step last. */
  readonly trail: readonly { readonly label: string; readonly changes: readonly Change[] }[];
}

export interface ExploredChoice {
  readonly index: number;
  readonly label: string;
  readonly kind: Action["kind"];
  readonly fault: boolean;
}

export class Exploration {
  readonly model: Model;
  readonly #space: Composition;
  readonly #conditions: Predicate[];

  constructor(model: Model) {
    this.model = model;
    this.#space = new Composition(model);
    const { always = {}, sometimes = {}, eventually = {} } = model.properties;
    this.#conditions = Object.entries({ ...always, ...sometimes, ...eventually }).map(
      ([name, holds]) => this.#space.predicate(name, holds),
    );
  }

  /** The state at the end of a path. Throws {@link ReplayError} when the path leads nowhere. */
  at(path: readonly number[]): ExploredState {
    const walk = new Walk(this.#space);
    const trail = path.map((choice, i) => {
      const step = walk.take(choice);
      if (step === undefined) {
        throw new ReplayError(
          `model ${this.model.name}: step ${i + 1} of the path has no choice ${choice}`,
        );
      }
      return { label: step.action.label, changes: step.changes };
    });
    return {
      model: this.model.name,
      path,
      state: shown(this.#space, walk.values),
      conditions: Object.fromEntries(
        this.#conditions.map((c) => [c.name, walk.ask(c.holds)]),
      ),
      choices: walk.choices().map(({ action }, index) => ({
        index,
        label: action.label,
        kind: action.kind,
        fault: action.fault,
      })),
      trail,
    };
  }

  /** The run along a path, for diagrams and files. */
  trace(path: readonly number[]): Trace {
    return traceOf(this.#space, path);
  }

  /** Answers a request of the JSON protocol. Errors are answers too. */
  handle(request: ExploreRequest): ExploredState | { readonly error: string } {
    try {
      const { path } = request;
      if (!Array.isArray(path) || !path.every((n) => Number.isInteger(n) && n >= 0)) {
        return { error: "path must be a list of choices (numbers from 0)" };
      }
      return this.at(path);
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    }
  }
}
