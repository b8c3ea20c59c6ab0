/**
 * {@link Decisions} for one layout: answers found from packed words, a few loads for each component that was read.
 *
 * The tree lies in one array. A node says where its component (or a part of it: components with many values are asked for digit by
 * digit) sits in a packed state, and then has one place for each of its values: another node, an answer, or nothing.
 */
import { type Layout, NARROW } from "./layout.ts";

const FIRST = 1 << 8;
/** In front of a node's branches: word, shift, and ones as wide as the digit. */
const NODE = 3;
/** Bits of a digit: a node has at most two to this power branches. */
const DIGIT = 6;
/** Numbers of tree after which it is forgotten. */
const FULL = 1 << 24;
/** Places for answers about narrow states. */
const PLACES = 1 << 13;

export class PackedDecisions {
  /** How many answers are known. */
  count = 0;
  readonly #layout: Layout;
  /** Where the tree begins: a node, an answer (its complement to 0), or 0: nothing is known. */
  #root = 0;
  /** Offset 0 is no node. */
  #tree: Int32Array = new Int32Array(FIRST);
  #end = 1;

  /**
   * For states of two words, the answers that were given last, by what matters of the words: two words and the answer, each at a place
   * of its own. One look instead of a walk.
   */
  #recent: Int32Array;
  /** Ones where the components are that any answer depends on. */
  #first = 0;
  #second = 0;
  readonly #state = new Int32Array(2);

  constructor(layout: Layout) {
    this.#layout = layout;
    this.#recent = new Int32Array(layout.words === NARROW ? 3 * PLACES : 0);
  }

  /** Bytes that the tree takes. */
  get bytes(): number {
    return this.#tree.byteLength + this.#recent.byteLength;
  }

  /** {@link find} for a state of two words. */
  findNarrow(a: number, b: number): number {
    const recent = this.#recent;
    const x = a & this.#first;
    const y = b & this.#second;
    let h = Math.imul(x ^ 0x9e3779b9, 0x85ebca6b);
    h = Math.imul(h ^ h >>> 15 ^ y, 0xc2b2ae35);
    const at = 3 * ((h ^ h >>> 15) & (PLACES - 1));
    const known = recent[at + 2]!;
    if (known !== 0 && recent[at] === x && recent[at + 1] === y) return known;
    this.#state[0] = a;
    this.#state[1] = b;
    const answer = this.find(this.#state, 0);
    recent[at] = x;
    recent[at + 1] = y;
    recent[at + 2] = answer;
    return answer;
  }

  /** The answer (a positive number) for the state that begins there; 0 when it is not known. */
  find(words: Int32Array, from: number): number {
    const tree = this.#tree;
    let at = this.#root;
    while (at > 0) {
      at = tree[at + NODE + (words[from + tree[at]!]! >>> tree[at + 1]! & tree[at + 2]!)]!;
    }
    return -at;
  }

  /**
   * Remembers an answer for a state.
   *
   * @param columns what it depends on, in an order that is the same for all states that agree on what comes before.
   * @returns false when they do not agree: then what was remembered is void.
   */
  learn(words: Int32Array, from: number, columns: Iterable<number>, answer: number): boolean {
    if (this.#end > FULL) this.#forget();
    // Where the reference is to be written that leads on from here; 0 for the root.
    let branch = 0;
    let at = this.#root;
    for (const column of columns) {
      this.#depend(column);
      for (const { word, shift: first, bits } of this.#layout.fieldsOf(column)) {
        for (let shift = first; shift < first + bits; shift += DIGIT) {
          const ones = (1 << Math.min(first + bits - shift, DIGIT)) - 1;
          if (at === 0) {
            at = this.#node(word, shift, ones);
            this.#lead(branch, at);
          } else if (at < 0 || this.#tree[at] !== word || this.#tree[at + 1] !== shift) {
            return false;
          }
          branch = at + NODE + (words[from + word]! >>> shift & ones);
          at = this.#tree[branch]!;
        }
      }
    }
    if (at > 0 || (at < 0 && at !== -answer)) return false;
    this.#lead(branch, -answer);
    this.count++;
    return true;
  }

  #depend(column: number): void {
    if (this.#recent.length === 0) return;
    for (const { word, shift, ones } of this.#layout.fieldsOf(column)) {
      const mask = ones << shift;
      if (((word === 0 ? this.#first : this.#second) & mask) !== 0) continue;
      if (word === 0) this.#first |= mask;
      else this.#second |= mask;
      this.#recent.fill(0);
    }
  }

  #lead(branch: number, to: number): void {
    if (branch === 0) this.#root = to;
    else this.#tree[branch] = to;
  }

  #node(word: number, shift: number, ones: number): number {
    const at = this.#end;
    this.#end += NODE + ones + 1;
    if (this.#end > this.#tree.length) {
      const longer = new Int32Array(2 * this.#tree.length);
      longer.set(this.#tree);
      this.#tree = longer;
    }
    this.#tree[at] = word;
    this.#tree[at + 1] = shift;
    this.#tree[at + 2] = ones;
    return at;
  }

  #forget(): void {
    this.#tree = new Int32Array(FIRST);
    this.#root = 0;
    this.#end = 1;
    this.count = 0;
    this.#recent.fill(0);
  }
}
