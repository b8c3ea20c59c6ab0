/**
 * What the plain code of a model answered, remembered whatever the layout: the successors by one part, and whether a predicate holds.
 */
import type { Columns } from "./columns.ts";
import { Decisions, UnsteadyReadError } from "./decisions.ts";
import { ModelError } from "./model.ts";
import type { Cursor, Part, Predicate, Space } from "./space.ts";

/** Where things are in an answer; successors follow. */
export const ANSWER = { count: 0, stutters: 1, steady: 2, successors: 3 } as const;

/** A model's part with its answers. */
export class KnownPart {
  readonly part: Part;
  /** Parts that are told apart when the search asks what depends on what. */
  readonly unit: number;
  readonly decisions: Decisions;
  /** Every column that a successor was ever seen to change. */
  readonly changes: Set<number> = new Set();
  /**
   * How many successors, how many steps that changed nothing, how many that are no faults; then for each successor its action, the number
   * of changes, and column, value before and value after of each.
   */
  answers: Int32Array = new Int32Array(256);
  #end = 1;
  /** It looks at components that may appear later: its answers hold until one does. */
  open = false;
  #structure = 0;

  constructor(part: Part, unit: number, columns: Columns) {
    this.decisions = new Decisions(columns);
    this.part = part;
    this.unit = unit;
  }

  get bytes(): number {
    return this.answers.byteLength + this.decisions.bytes;
  }

  /** Where the answer for this state begins in {@link answers}; 0 when it is not known. See {@link Decisions.find}. */
  find(space: Space, values: Int32Array, trail: Set<number>): number {
    if (this.open && this.#structure !== space.structure) this.#forget(space.structure);
    return this.decisions.find(values, trail);
  }

  /** Asks the plain code about the state that the cursor is on. Notes new values of columns. */
  ask(space: Space, cursor: Cursor): number {
    const successors: number[] = [];
    let count = 0;
    let stutters = 0;
    let steady = 0;
    const { structure } = space;
    cursor.begin();
    cursor.collect(() => this.part.expand(cursor), (action) => {
      const at = successors.push(action, 0) - 1;
      for (const column of new Set(cursor.changed)) {
        const value = cursor.values[column]!;
        if (value === cursor.before(column)) continue;
        space.columns.admit(column, value);
        successors.push(column, cursor.before(column), value);
        successors[at]!++;
        this.changes.add(column);
      }
      if (successors[at] === 0) {
        successors.length -= 2;
        stutters++;
        return;
      }
      if (!space.actions[action]!.fault) steady++;
      count++;
    });
    // Components that came up while it was asked could not be looked at from the beginning.
    this.open ||= cursor.open;
    if (this.open && this.#structure !== structure) this.#forget(structure);
    const start = this.#end;
    const length = ANSWER.successors + successors.length;
    while (start + length > this.answers.length) this.answers = doubled(this.answers);
    this.answers[start + ANSWER.count] = count;
    this.answers[start + ANSWER.stutters] = stutters;
    this.answers[start + ANSWER.steady] = steady;
    this.answers.set(successors, start + ANSWER.successors);
    learn(this.decisions, space, cursor, start);
    this.#end = start + length;
    return start;
  }

  /** Lists that were made of old answers may still be looked at: answers are only ever added. */
  #forget(structure: number): void {
    this.decisions.clear();
    this.#structure = structure;
  }
}

const FALSE = 1;
const TRUE = 2;

/** A predicate with its answers. */
export class KnownPredicate {
  readonly predicate: Predicate;
  readonly decisions: Decisions;
  /** It looks at components that may appear later: then it is asked anew when one does. */
  open = false;
  #structure = 0;

  constructor(predicate: Predicate, columns: Columns) {
    this.decisions = new Decisions(columns);
    this.predicate = predicate;
  }

  /** Whether the state that the cursor is on satisfies it. */
  holds(space: Space, cursor: Cursor, trail: Set<number>): boolean {
    const { structure } = space;
    if (this.open && this.#structure !== structure) this.#forget(structure);
    const known = this.decisions.find(cursor.values, trail);
    if (known !== 0) return known === TRUE;
    cursor.begin();
    const holds = this.predicate.holds(cursor);
    this.open ||= cursor.open;
    if (this.open && this.#structure !== structure) this.#forget(structure);
    learn(this.decisions, space, cursor, holds ? TRUE : FALSE);
    for (const column of cursor.reads) trail.add(column);
    return holds;
  }

  #forget(structure: number): void {
    this.decisions.clear();
    this.#structure = structure;
  }
}

function learn(decisions: Decisions, { name }: Space, cursor: Cursor, answer: number): void {
  try {
    decisions.learn(cursor.reads, cursor.origin, answer);
  } catch (error) {
    if (!(error instanceof UnsteadyReadError)) throw error;
    throw new ModelError(
      `model ${name}: a rule, a property or a chart answered differently to the same question. They must depend on the state that they are given, and on nothing else`,
    );
  }
}

export function doubled(array: Int32Array): Int32Array {
  if (array.length > 1 << 28) {
    throw new ModelTooWideError("more successors than can be remembered");
  }
  const wider = new Int32Array(2 * array.length);
  wider.set(array);
  return wider;
}

/** The model gave a state more successors, or a component more values, than the search can number. */
export class ModelTooWideError extends Error {
  readonly code = "model-too-wide";
}
