/**
 * What a search needs of a model: components, an initial state, and groups of actions.
 *
 * A group's successors are computed by slow, plain code through a {@link Cursor}, which notes what was read. The search
 * remembers them by the values that were read, so the plain code runs once per combination and everything else is a look-up.
 */
import type { Aspect, Columns } from "./columns.ts";

/** One thing that can happen, as data. Equal actions are one object with one number. */
export interface Action {
  /** In words, for example `deliver ready to rank/1/engine`. */
  readonly label: string;
  readonly kind: ActionKind;
  /** The instance that something happens to, if any. */
  readonly to?: string;
  /** Where a message came from. */
  readonly from?: string;
  /** The event that the instance is given. */
  readonly event?: { readonly type: string; readonly [member: string]: unknown };
  /** What is lost by a crash in the middle of this step. */
  readonly lost?: readonly string[];
  /** A fault need not happen: fairness does not ask for it. */
  readonly fault: boolean;
}

export type ActionKind =
  | "event"
  | "deliver"
  | "timer"
  | "outcome"
  | "crash"
  | "restart"
  | "drop"
  | "duplicate";

/** Actions whose successors depend on the same few components. */
export interface Part {
  expand(cursor: Cursor): void;
}

/** What one process can do, or one kind of fault. */
export interface Group {
  readonly name: string;
  /** May grow while the search runs. */
  readonly parts: readonly Part[];
}

/** A question about a state. */
export interface Predicate {
  readonly name: string;
  holds(cursor: Cursor): boolean;
}

export interface Space {
  readonly name: string;
  readonly columns: Columns;
  /** May grow while the search runs. */
  readonly groups: readonly Group[];
  readonly actions: readonly Action[];
  /** Grows when components appear that code may look for without naming them. */
  readonly structure: number;
  /** Writes the initial state. */
  start(cursor: Cursor): void;
}

/** A state that is looked at and changed component by component. */
export class Cursor {
  #now = new Int32Array(64);
  #base = new Int32Array(64);
  #read = new Uint8Array(64);
  readonly #looked = new Set<number>();
  #reads: number[] = [];
  #changed: number[] = [];
  #emit: (action: number, cursor: Cursor) => void = () => {};

  /** Whether what was read may include components that are not there yet. Then memory of one state says little about the next. */
  open = false;

  /** The value of a component; noted as read. */
  get(column: number): number {
    this.#note(column);
    return this.#now[column]!;
  }

  /** An aspect of a component; only that is noted as read. */
  look({ number, column, of }: Aspect): number {
    if (column >= this.#now.length) this.#room(column + 1);
    if (this.#read[column] === 0 && !this.#looked.has(number)) {
      this.#looked.add(number);
      this.#reads.push(number);
    }
    return of(this.#now[column]!);
  }

  set(column: number, value: number): void {
    this.#note(column);
    if (this.#now[column] === value) return;
    this.#now[column] = value;
    this.#changed.push(column);
  }

  /** The changes so far are a successor by this action. The cursor is back at the state itself afterwards. */
  emit(action: number): void {
    this.#emit(action, this);
    this.reset();
  }

  /** Forgets the changes so far. */
  reset(): void {
    for (const c of this.#changed) this.#now[c] = this.#base[c]!;
    this.#changed.length = 0;
  }

  // ---- for the search ------------------------------------------------------------------------------------------

  /** The components as they are now, changes included. Valid until the next call. */
  get values(): Int32Array {
    return this.#now;
  }

  /** What was changed since the last reset, perhaps several times. */
  get changed(): readonly number[] {
    return this.#changed;
  }

  /** What was read since the cursor was placed, in order: columns, and numbers of aspects. */
  get reads(): readonly number[] {
    return this.#reads;
  }

  before(column: number): number {
    return this.#base[column] ?? 0;
  }

  /** The components before any change. Valid until the next call. */
  get origin(): Int32Array {
    return this.#base;
  }

  /** Puts the cursor on a state. */
  place(fill: (values: Int32Array) => void, columns: number): void {
    this.#room(columns);
    this.reset();
    this.#now.fill(0);
    fill(this.#now);
    this.#base.set(this.#now);
    this.begin();
  }

  /** Notes afresh what is read. */
  begin(): void {
    this.open = false;
    for (const c of this.#reads) if (c < this.#read.length) this.#read[c] = 0;
    this.#looked.clear();
    this.#reads.length = 0;
  }

  /** Collects successors while `run` runs. */
  collect(run: () => void, emit: (action: number, cursor: Cursor) => void): void {
    const outer = this.#emit;
    this.#emit = emit;
    try {
      run();
    } finally {
      this.#emit = outer;
      this.reset();
    }
  }

  #note(column: number): void {
    if (column >= this.#now.length) this.#room(column + 1);
    if (this.#read[column] === 0) {
      this.#read[column] = 1;
      this.#reads.push(column);
    }
  }

  #room(columns: number): void {
    if (columns <= this.#now.length) return;
    const size = Math.max(columns, 2 * this.#now.length);
    const grown = (old: Int32Array) => {
      const wider = new Int32Array(size);
      wider.set(old);
      return wider;
    };
    this.#now = grown(this.#now);
    this.#base = grown(this.#base);
    const read = new Uint8Array(size);
    read.set(this.#read);
    this.#read = read;
  }
}
