/** All states that were seen: packed words in the order of discovery, a hash table over them, and how each was reached. */
import { unitOf, type Wave } from "./wave.ts";

const FIRST = 1 << 13;
/** Below so many states the lists grow in larger steps. */
const EARLY = 1 << 20;
/** Places in the hash table for each state that there is room for. */
const PLACES = 2;

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
  /**
   * One number a place: 0 if it is free, and else a state's index + 1 in the low bits and above them the high bits of its hash, so that the
   * state itself is looked at only when it is very likely the one that is looked for.
   */
  protected slots: Int32Array;
  /** The low bits of a hash say where a state belongs. */
  protected mask: number;
  /** The bits of a place that are an index. */
  protected indexBits: number;

  constructor(words: number, capacity: number = FIRST) {
    this.words = words;
    this.pool = new Int32Array(capacity * words);
    this.parent = new Int32Array(capacity);
    this.ordinal = new Uint16Array(capacity);
    this.slots = new Int32Array(0);
    this.mask = 0;
    this.indexBits = 0;
    this.index(PLACES * 2 ** Math.ceil(Math.log2(capacity)));
  }

  /** Bytes that the tables take. */
  get bytes(): number {
    return this.pool.byteLength + this.parent.byteLength + this.ordinal.byteLength +
      this.slots.byteLength;
  }

  /** The index of this state, or the one's complement of the index under which it was added now. */
  add(state: Int32Array, parent: number, ordinal: number): number {
    this.reserve(1);
    const hash = this.hash(state, 0);
    const slot = this.#slotOf(state, 0, hash);
    const known = this.slots[slot]! & this.indexBits;
    return known > 0 ? known - 1 : ~this.#put(slot, hash, state, 0, parent, ordinal);
  }

  /** The index of this state, or -1. */
  find(state: Int32Array): number {
    const slot = this.#slotOf(state, 0, this.hash(state, 0));
    return (this.slots[slot]! & this.indexBits) - 1;
  }

  /**
   * Asks for the places in memory where a wave's successors are looked up: when many are asked for before the first is
   * used, the processor waits for them at the same time.
   */
  touch(wave: Wave): void {
    const { words: width, slots, mask } = this;
    const { words, hashes, count } = wave;
    let warm = 0;
    for (let i = 0; i < count; i++) {
      const hash = hashes[i] = hashWords(words, i * width, width);
      warm ^= slots[hash & mask]!;
    }
    this.warm = warm;
  }

  /**
   * Leaves those of a state's successors, from `from` to `to` in a wave that was touched, that were not seen before.
   *
   * @returns the units of those that are left, a bit each.
   */
  sift(wave: Wave, from: number, to: number): number {
    const { words: width, slots } = this;
    const { words, marks, ordinals, hashes } = wave;
    let left = from;
    let units = 0;
    for (let i = from; i < to; i++) {
      const hash = hashes[i]!;
      if (slots[this.#slotOf(words, i * width, hash)] !== 0) continue;
      units |= 1 << unitOf(marks[i]!);
      if (left !== i) words.copyWithin(left * width, i * width, (i + 1) * width);
      hashes[left] = hash;
      marks[left] = marks[i]!;
      ordinals[left++] = ordinals[i]!;
    }
    wave.left = left;
    return units;
  }

  /** Adds what {@link sift} left; afterwards the marks from `from` on are those of the states that were added, in order. */
  settle(wave: Wave, from: number, parent: number): void {
    const { left } = wave;
    this.reserve(left - from);
    const { words: width } = this;
    const { words, marks, ordinals, hashes } = wave;
    let added = from;
    for (let i = from; i < left; i++) {
      const hash = hashes[i]!;
      const slot = this.#slotOf(words, i * width, hash);
      if (this.slots[slot] !== 0) continue;
      this.#put(slot, hash, words, i * width, parent, ordinals[i]!);
      marks[added++] = marks[i]!;
    }
  }

  /** The hash of the state that begins there. */
  protected hash(words: Int32Array, at: number): number {
    return hashWords(words, at, this.words);
  }

  /** Makes room for so many states more. */
  protected reserve(more: number): void {
    const { length } = this.parent;
    if (this.count + more <= length) return;
    let capacity = length;
    while (this.count + more > capacity) capacity *= capacity < EARLY ? 4 : 2;
    const pool = new Int32Array(capacity * this.words);
    pool.set(this.pool);
    this.pool = pool;
    const parent = new Int32Array(capacity);
    parent.set(this.parent);
    this.parent = parent;
    const ordinal = new Uint16Array(capacity);
    ordinal.set(this.ordinal);
    this.ordinal = ordinal;
    this.index(PLACES * capacity);
  }

  /** Makes all states findable in a new table of so many places. */
  protected index(places: number): void {
    const slots = this.slots = new Int32Array(places);
    const mask = this.mask = places - 1;
    this.indexBits = places - 1;
    const tag = ~this.indexBits;
    for (let i = 0; i < this.count; i++) {
      const hash = this.hash(this.pool, i * this.words);
      let slot = hash & mask;
      while (slots[slot] !== 0) slot = slot + 1 & mask;
      slots[slot] = hash & tag | i + 1;
    }
  }

  /** The slot where this state is, or where it belongs. */
  #slotOf(words: Int32Array, from: number, hash: number): number {
    const { pool, words: width, slots, mask, indexBits } = this;
    for (let slot = hash & mask;; slot = slot + 1 & mask) {
      const entry = slots[slot]!;
      if (entry === 0) return slot;
      if (((entry ^ hash) & ~indexBits) !== 0) continue;
      const at = ((entry & indexBits) - 1) * width;
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
    this.slots[slot] = hash & ~this.indexBits | index + 1;
    return index;
  }
}
