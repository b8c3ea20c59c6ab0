/**
 * The components of a global state.
 *
 * A global state is one small number per component: the interned state of an instance, the contents of a channel, the value of
 * a store key, how much of a fault budget is spent. 0 always means "nothing yet": absent, empty, unset, unspent, or the first state.
 */
/** Numbers from here on are not columns, but aspects of columns. */
const ASPECTS = 1 << 20;

/**
 * What can be said of a component when its whole value does not matter: whether an instance is in some state. Code that looks at an aspect
 * gives one answer for all values of which the same can be said.
 */
export interface Aspect {
  /** Stands for it wherever it is told what was read. */
  readonly number: number;
  readonly column: number;
  readonly of: (value: number) => number;
}

export class Columns {
  readonly names: string[] = [];
  /** How many values of each column states can have, as far as is known. */
  readonly sizes: number[] = [];
  readonly #byName = new Map<string, number>();
  /** Values that states can have, numbered without gaps in the order in which they came up: by value, and by number. */
  readonly #rank: number[][] = [];
  readonly #valueAt: number[][] = [];
  readonly #aspects: Aspect[] = [];

  get count(): number {
    return this.names.length;
  }

  /** The column of that name, made if need be. */
  of(name: string): number {
    let column = this.#byName.get(name);
    if (column === undefined) {
      column = this.names.length;
      this.names.push(name);
      this.sizes.push(1);
      this.#rank.push([0]);
      this.#valueAt.push([0]);
      this.#byName.set(name, column);
    }
    return column;
  }

  /** The column of that name, if there is one. */
  find(name: string): number | undefined {
    return this.#byName.get(name);
  }

  /** A new aspect of a column. */
  aspect(column: number, of: (value: number) => number): Aspect {
    const known: number[] = [];
    const aspect: Aspect = {
      number: ASPECTS + this.#aspects.length,
      column,
      of: (value) => known[value] ??= of(value),
    };
    this.#aspects.push(aspect);
    return aspect;
  }

  /** The aspect of this number; undefined for a column's. */
  aspectOf(number: number): Aspect | undefined {
    return number < ASPECTS ? undefined : this.#aspects[number - ASPECTS];
  }

  /** The column that a column's or an aspect's number is about. */
  columnOf(number: number): number {
    return number < ASPECTS ? number : this.#aspects[number - ASPECTS]!.column;
  }

  /** What was read under this number, given each column's value. */
  read(number: number, values: ArrayLike<number>): number {
    if (number < ASPECTS) return values[number] ?? 0;
    const { column, of } = this.#aspects[number - ASPECTS]!;
    return of(values[column] ?? 0);
  }

  /** Notes that states can have this value. Values that only come up on the way, within a step, are not noted. */
  admit(column: number, value: number): void {
    const rank = this.#rank[column]!;
    if (rank[value] !== undefined) return;
    rank[value] = this.sizes[column]!++;
    this.#valueAt[column]!.push(value);
  }

  /** The number of a value among those that states can have; -1 for one that was not noted. */
  rankOf(column: number, value: number): number {
    return value === 0 ? 0 : this.#rank[column]![value] ?? -1;
  }

  /** The value with this number. */
  valueAt(column: number, rank: number): number {
    return this.#valueAt[column]![rank]!;
  }
}

/** Values as dense numbers: equal texts are one number. */
export class Interner<T> {
  readonly values: T[] = [];
  readonly #byKey = new Map<string, number>();

  intern(key: string, make: () => T): number {
    let id = this.#byKey.get(key);
    if (id === undefined) {
      id = this.values.length;
      this.#byKey.set(key, id);
      this.values.push(make());
    }
    return id;
  }

  get(id: number): T {
    return this.values[id]!;
  }
}

/** JSON values as dense numbers. 0 is `undefined`: absent. */
export class JsonInterner extends Interner<unknown> {
  constructor() {
    super();
    this.intern("", () => undefined);
  }

  of(value: unknown): number {
    return value === undefined ? 0 : this.intern(JSON.stringify(value), () => value);
  }
}
