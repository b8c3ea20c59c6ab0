/** All states that were seen: packed words in the order of discovery, a hash table over them, and how each was reached. */
import { type Batch, unitOf } from "./batch.ts";

const FIRST = 1 << 12;
/** Below so many states the tables grow in larger steps. */
const EARLY = 1 << 20;

/** Mixes a state's words. */
function hashWords(words: Int32Array, at: number, count: number): number {
  let h = 0x9e3779b9 | 0;
  for (let k = at; k < at + count; k++) {
    h = Math.imul(h ^ words[k]!, 0x85ebca6b);
    h ^= h >>> 15;
  }
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}

export class StateTable {
  count = 0;
  readonly words: number;
  /** The states from {@link base} on, `words` numbers each. */
  pool: Int32Array;
  /** The first state that is kept. */
  base = 0;
  /** Index of the state that this one was reached from; -1 for the first. */
  parent: Int32Array;
  /** Which of the parent's successors it was. */
  ordinal: Uint16Array;
  /** Keeps the reads that warm the cache from being optimised away. */
  warm = 0;
  /** A state's index (-1: free) and its hash. */
  #slots: Int32Array;
  #mask: number;

  /** @param indexed whether states can be found from the beginning (otherwise {@link index} makes them findable). */
  constructor(words: number, capacity: number = FIRST, indexed = true) {
    this.words = words;
    this.pool = new Int32Array(capacity * words);
    this.parent = new Int32Array(capacity);
    this.ordinal = new Uint16Array(capacity);
    this.#slots = new Int32Array(indexed ? 4 * capacity : 0).fill(-1);
    this.#mask = 2 * capacity - 1;
  }

  /** Bytes that the tables take. */
  get bytes(): number {
    return this.pool.byteLength + this.parent.byteLength + this.ordinal.byteLength +
      this.#slots.byteLength;
  }

  /** The index of this state, or the one's complement of the index under which it was added now. */
  add(state: Int32Array, parent: number, ordinal: number): number {
    const hash = hashWords(state, 0, this.words);
    const slot = this.#slotOf(state, 0, hash, hash & this.#mask);
    const index = this.#slots[2 * slot]!;
    if (index >= 0) return index;
    if (this.count === this.parent.length) {
      this.grow();
      return this.add(state, parent, ordinal);
    }
    return ~this.#put(slot, hash, state, 0, parent, ordinal);
  }

  /** The index of this state, or -1. */
  find(state: Int32Array): number {
    const hash = hashWords(state, 0, this.words);
    return this.#slots[2 * this.#slotOf(state, 0, hash, hash & this.#mask)]!;
  }

  /**
   * Asks for the places in memory where a batch's successors are looked up: when many are asked for before the first is
   * used, the processor waits for them at the same time.
   */
  touch(batch: Batch): void {
    const { words: width } = this;
    const { words, hashes, count } = batch;
    const slots = this.#slots;
    const mask = this.#mask;
    let warm = 0;
    for (let i = 0; i < count; i++) {
      const hash = hashes[i] = hashWords(words, i * width, width);
      warm ^= slots[2 * (hash & mask)]!;
    }
    this.warm = warm;
  }

  /**
   * Leaves those in a batch that was touched that were not seen before.
   *
   * @returns the units of those that are left, a bit each.
   */
  sift(batch: Batch): number {
    const { words: width } = this;
    const { words, marks, ordinals, hashes, count } = batch;
    let left = 0;
    let units = 0;
    for (let i = 0; i < count; i++) {
      const hash = hashes[i]!;
      const slot = this.#slotOf(words, i * width, hash, hash & this.#mask);
      if (this.#slots[2 * slot]! >= 0) continue;
      units |= 1 << unitOf(marks[i]!);
      if (left !== i) words.copyWithin(left * width, i * width, (i + 1) * width);
      hashes[left] = hash;
      marks[left] = marks[i]!;
      ordinals[left++] = ordinals[i]!;
    }
    batch.count = left;
    return units;
  }

  /** Adds what {@link sift} left; the batch then has the marks of those that were added, in order. */
  settle(batch: Batch, parent: number): void {
    if (this.count + batch.count > this.parent.length) this.grow();
    const { words: width } = this;
    const { words, marks, ordinals, hashes, count } = batch;
    let added = 0;
    for (let i = 0; i < count; i++) {
      const hash = hashes[i]!;
      const slot = this.#slotOf(words, i * width, hash, hash & this.#mask);
      if (this.#slots[2 * slot]! >= 0) continue;
      this.#put(slot, hash, words, i * width, parent, ordinals[i]!);
      marks[added++] = marks[i]!;
    }
    batch.count = added;
  }

  /** The slot where this state is, or where it belongs. */
  #slotOf(words: Int32Array, from: number, hash: number, start: number): number {
    const slots = this.#slots;
    const mask = this.#mask;
    const { pool, words: width } = this;
    for (let slot = start;; slot = (slot + 1) & mask) {
      const index = slots[2 * slot]!;
      if (index < 0) return slot;
      if (slots[2 * slot + 1] !== hash) continue;
      const at = index * width;
      let k = 0;
      while (k < width && pool[at + k] === words[from + k]) k++;
      if (k === width) return slot;
    }
  }

  #put(
    slot: number,
    hash: number,
    words: Int32Array,
    from: number,
    parent: number,
    ordinal: number,
  ): number {
    const index = this.count++;
    const { pool, words: width } = this;
    for (let k = 0, at = index * width; k < width; k++) pool[at + k] = words[from + k]!;
    this.parent[index] = parent;
    this.ordinal[index] = ordinal;
    this.#slots[2 * slot] = index;
    this.#slots[2 * slot + 1] = hash;
    return index;
  }

  /** Makes all states findable. */
  protected index(): void {
    const slots = this.#slots = new Int32Array(4 * this.parent.length).fill(-1);
    const mask = this.#mask = 2 * this.parent.length - 1;
    for (let i = 0; i < this.count; i++) {
      const hash = hashWords(this.pool, i * this.words, this.words);
      let slot = hash & mask;
      while (slots[2 * slot]! >= 0) slot = (slot + 1) & mask;
      slots[2 * slot] = i;
      slots[2 * slot + 1] = hash;
    }
  }

  protected grow(): void {
    const capacity = (this.parent.length < EARLY ? 4 : 2) * this.parent.length;
    const pool = new Int32Array(capacity * this.words);
    pool.set(this.pool);
    this.pool = pool;
    const parent = new Int32Array(capacity);
    parent.set(this.parent);
    this.parent = parent;
    const ordinal = new Uint16Array(capacity);
    ordinal.set(this.ordinal);
    this.ordinal = ordinal;
    const old = this.#slots;
    if (old.length === 0) return;
    const slots = this.#slots = new Int32Array(4 * capacity).fill(-1);
    const mask = this.#mask = 2 * capacity - 1;
    // In the order of the old slots, so that the new ones are written from front to back, a few places at a time.
    for (let at = 0; at < old.length; at += 2) {
      if (old[at]! < 0) continue;
      let slot = old[at + 1]! & mask;
      while (slots[2 * slot]! >= 0) slot = (slot + 1) & mask;
      slots[2 * slot] = old[at]!;
      slots[2 * slot + 1] = old[at + 1]!;
    }
  }
}
