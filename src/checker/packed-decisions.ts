/**
 * {@link Decisions} for one layout: answers found from packed words, a few loads for each component that was read.
 *
 * The tree lies in one array. A node says where its component (or a part of it: components with many values are asked for digit by
 * digit) sits in a packed state, and then has one place for each of its values: another node, an answer, or nothing.
 */
import { type Field, type Layout, NARROW } from "./layout.ts";

const FIRST = 1 << 8;
/** In front of a node's branches: word, shift, and ones as wide as the digit. */
const NODE = 3;
/** Numbers of tree after which it is forgotten. */
const FULL = 1 << 24;
/** Places for the answers given last about narrow states: at first, and at most. */
const PLACES = 1 << 6;
const MOST_PLACES = 1 << 15;
/** Numbers a place: two words, the answer, and one that keeps a place within a cache line. */
const PLACE = 4;

export class PackedDecisions {
  /** How many answers are known. */
  count = 0;
  readonly #layout: Layout;
  /** Where the tree begins: a node, an answer (its complement to 0), or 0: nothing is known. */
  #root = 0;
  /** Offset 0 is no node. */
  #tree: Int32Array = new Int32Array(FIRST);
  #end = 1;
  /** Fields that are asked for first; see {@link guard}. */
  readonly #guards: Field[] = [];
  /** By the node at which an aspect begins to be asked for and by what it is: a place that leads on from there. */
  readonly #aspects = new Map<string, number>();

  /**
   * For states of two words, the answers that were given last, by what matters of the words: two words and the answer, each at a place
   * of its own. One look instead of a walk. There are more places when looks often fail.
   */
  #recent: Int32Array;
  #failed = 0;
  /** Ones where the components are that any answer depends on. */
  #first = 0;
  #second = 0;
  readonly #state = new Int32Array(2);

  constructor(layout: Layout) {
    this.#layout = layout;
    this.#recent = new Int32Array(layout.words === NARROW ? PLACE * PLACES : 0);
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
    const at = place(x, y) & recent.length - PLACE;
    return recent[at] === x && recent[at + 1] === y && recent[at + 2] !== 0
      ? recent[at + 2]!
      : this.#walk(a, b, x, y);
  }

  #walk(a: number, b: number, x: number, y: number): number {
    if (++this.#failed > this.#recent.length && this.#recent.length < PLACE * MOST_PLACES) {
      this.#recent = new Int32Array(2 * this.#recent.length);
      this.#failed = 0;
    }
    this.#state[0] = a;
    this.#state[1] = b;
    const answer = this.find(this.#state, 0);
    const recent = this.#recent;
    const at = place(x, y) & recent.length - PLACE;
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
    return 0 - at;
  }

  /**
   * Remembers an answer for a state.
   *
   * @param columns what it depends on (columns and aspects), in an order that is the same for all states that agree on what comes before.
   * @param make the answer, asked for unless it turns out that it was known for a state that differs in nothing of that.
   * @returns the answer; 0 when states do not agree in the order: then what was remembered is void.
   */
  learn(words: Int32Array, from: number, columns: Iterable<number>, make: () => number): number {
    if (this.#end > FULL) this.#forget();
    // Where the reference is to be written that leads on from here; 0 for the root.
    let branch = 0;
    let at = this.#root;
    let first = 0;
    const ask = (field: Field): boolean => {
      for (const { word, shift, ones } of field.pieces) {
        if (at === 0) {
          at = this.#node(word, shift, ones);
          this.#lead(branch, at);
        } else if (at < 0 || this.#tree[at] !== word || this.#tree[at + 1] !== shift) {
          return false;
        }
        if (first === 0) first = at;
        branch = at + NODE + (words[from + word]! >>> shift & ones);
        at = this.#tree[branch]!;
      }
      return true;
    };
    if (!this.#guards.every(ask)) return 0;
    for (const column of columns) {
      first = 0;
      for (const field of this.#layout.fieldsOf(column)) {
        if (this.#guards.includes(field)) continue;
        if (this.#depend(field)) this.#recent.fill(0);
        if (!ask(field)) return 0;
      }
      const aspect = this.#layout.columns.aspectOf(column);
      if (aspect === undefined || first === 0 || at !== 0) continue;
      // All values of which the same can be said lead on to the same place.
      const same = `${first} ${this.#layout.look(aspect, words, from)}`;
      const other = this.#aspects.get(same);
      if (other === undefined) this.#aspects.set(same, branch);
      else this.#lead(branch, at = this.#tree[other]!);
    }
    if (at > 0) return 0;
    if (at === 0) {
      this.#lead(branch, at = -make());
      this.count++;
    }
    return -at;
  }

  /**
   * Columns on which answers may depend were given these places. All states that were seen have zeros there; so they are asked for
   * first, and what is known is known for zeros.
   */
  guard(fields: readonly Field[]): void {
    for (const field of fields) {
      this.#guards.unshift(field);
      this.#depend(field);
      for (const { word, shift, ones } of [...field.pieces].reverse()) {
        const node = this.#node(word, shift, ones);
        this.#tree[node + NODE] = this.#root;
        this.#root = node;
      }
    }
  }

  /** Notes that answers depend on what is there. Whether that is new. */
  #depend({ word, shift, ones }: Field): boolean {
    if (this.#recent.length === 0) return false;
    const mask = ones << shift;
    if (((word === 0 ? this.#first : this.#second) & mask) === mask) return false;
    if (word === 0) this.#first |= mask;
    else this.#second |= mask;
    return true;
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
    this.#guards.length = 0;
    this.#aspects.clear();
    this.#root = 0;
    this.#end = 1;
    this.count = 0;
    this.#recent.fill(0);
  }
}

function place(x: number, y: number): number {
  const h = Math.imul(x ^ 0x9e3779b9, 0x85ebca6b);
  const mixed = Math.imul(h ^ h >>> 15 ^ y, 0xc2b2ae35);
  return mixed ^ mixed >>> 15;
}
