/**
 * What plain code answered, remembered by what it read: which component first, and depending on its value which next, down to the answer.
 *
 * Code that is a function of what it reads always reads the same component first; so its answers form a tree. The tree asks
 * for nothing that the code did not look at, and it knows nothing of how states are packed.
 */
import type { Columns } from "./columns.ts";

/** Code read different components although everything that it had read before was the same. */
export class UnsteadyReadError extends Error {
  readonly code = "unsteady-read";
}

const FIRST = 64;

export class Decisions {
  /** Every component of which anything was ever read. */
  readonly columns: Set<number> = new Set();
  readonly #all: Columns;
  /** The component (or the aspect of one) that each node asks for. Nodes count from 1. */
  #asks: number[] = [0];
  /** Where the tree begins: a node, an answer (its complement to 0), or 0: nothing is known. */
  #root = 0;
  /** Branches by open addressing: node (0: free), value, and where it leads. */
  #branches: Int32Array = new Int32Array(3 * FIRST);
  #last = FIRST - 1;
  #count = 0;
  #answers = 0;

  constructor(columns: Columns) {
    this.#all = columns;
  }

  /** How many answers are known. */
  get count(): number {
    return this.#answers;
  }

  /** Bytes that the tree takes. */
  get bytes(): number {
    return this.#branches.byteLength + 8 * this.#asks.length;
  }

  /**
   * The answer (a positive number) for a state, one value a component; 0 when it is not known.
   *
   * @param trail is given the components that the answer depends on, in order.
   */
  find(values: Int32Array, trail: Set<number>): number {
    const asks = this.#asks;
    let at = this.#root;
    while (at > 0) {
      const column = asks[at]!;
      trail.add(column);
      at = this.#branch(at, this.#all.read(column, values));
    }
    return 0 - at;
  }

  /**
   * Remembers an answer.
   *
   * @param reads the components in the order in which they were read.
   * @param values what each held before the code changed anything.
   * @throws UnsteadyReadError when the code read otherwise the last time.
   */
  learn(reads: readonly number[], values: ArrayLike<number>, answer: number): void {
    let from = 0;
    let value = 0;
    let at = this.#root;
    const lead = (to: number): void => {
      if (from === 0) this.#root = to;
      else this.#grow(from, value, to);
    };
    for (const column of reads) {
      this.columns.add(this.#all.columnOf(column));
      if (at === 0) lead(at = this.#asks.push(column) - 1);
      else if (at < 0 || this.#asks[at] !== column) throw new UnsteadyReadError();
      from = at;
      value = this.#all.read(column, values);
      at = this.#branch(from, value);
    }
    if (at !== 0) throw new UnsteadyReadError();
    lead(-answer);
    this.#answers++;
  }

  /** Forgets every answer, but not what was read. */
  clear(): void {
    this.#asks = [0];
    this.#root = 0;
    this.#branches = new Int32Array(3 * FIRST);
    this.#last = FIRST - 1;
    this.#count = 0;
    this.#answers = 0;
  }

  #branch(node: number, value: number): number {
    const branches = this.#branches;
    for (let slot = mix(node, value) & this.#last;; slot = (slot + 1) & this.#last) {
      const at = 3 * slot;
      const found = branches[at]!;
      if (found === 0) return 0;
      if (found === node && branches[at + 1] === value) return branches[at + 2]!;
    }
  }

  #grow(node: number, value: number, to: number): void {
    if (2 * ++this.#count > this.#last) {
      const old = this.#branches;
      this.#branches = new Int32Array(2 * old.length);
      this.#last = 2 * this.#last + 1;
      for (let at = 0; at < old.length; at += 3) {
        if (old[at] !== 0) this.#insert(old[at]!, old[at + 1]!, old[at + 2]!);
      }
    }
    this.#insert(node, value, to);
  }

  #insert(node: number, value: number, to: number): void {
    let slot = mix(node, value) & this.#last;
    while (this.#branches[3 * slot] !== 0) slot = (slot + 1) & this.#last;
    this.#branches[3 * slot] = node;
    this.#branches[3 * slot + 1] = value;
    this.#branches[3 * slot + 2] = to;
  }
}

function mix(node: number, value: number): number {
  const m = Math.imul(Math.imul(node, 0x9e3779b1) ^ value, 0x85ebca6b);
  return m ^ (m >>> 15);
}
