/**
 * States that were seen by a fingerprint of 64 bits each; the states themselves are kept only until they are left.
 *
 * Two states with one fingerprint are taken for one, so that the second, and what only it leads to, is not looked at. {@link collisions}
 * says how many to expect.
 */
import { StateTable } from "./state-table.ts";
import { unitOf, type Wave } from "./wave.ts";

/** The table is let become this full. */
const FULL = 0.75;

/** How many pairs among so many states share a fingerprint of 64 bits, on average. */
export const collisions = (states: number): number => states * (states - 1) / 2 ** 65;

export class FingerprintTable extends StateTable {
  /** The two halves of each fingerprint; both 0 where a place is free. */
  #keys: Int32Array;
  #keyMask: number;
  readonly #half = new Int32Array(1);

  constructor(words: number) {
    super(words);
    this.slots = new Int32Array(0);
    this.#keys = new Int32Array(4 * this.parent.length);
    this.#keyMask = 2 * this.parent.length - 1;
  }

  override get bytes(): number {
    return super.bytes + this.#keys.byteLength;
  }

  override add(state: Int32Array, parent: number, ordinal: number): number {
    const first = this.#fingerprint(state, 0);
    const slot = this.#slot(first, this.#half[0]!);
    if (this.#keys[2 * slot] !== 0 || this.#keys[2 * slot + 1] !== 0) {
      throw new Error("only the first state is added by itself");
    }
    return ~this.#put(slot, first, state, 0, parent, ordinal);
  }

  override find(): number {
    throw new Error("states are not kept: they cannot be found by what they are");
  }

  override touch(wave: Wave): void {
    const { words, hashes, count } = wave;
    let warm = 0;
    for (let i = 0; i < count; i++) {
      const first = hashes[i] = this.#fingerprint(words, i * this.words);
      warm ^= this.#keys[2 * (first & this.#keyMask)]!;
    }
    this.warm = warm;
  }

  override sift(wave: Wave, from: number, to: number): number {
    const { words, marks, ordinals } = wave;
    const width = this.words;
    let left = from;
    let units = 0;
    for (let i = from; i < to; i++) {
      const slot = this.#slot(this.#fingerprint(words, i * width), this.#half[0]!);
      if (this.#keys[2 * slot] !== 0 || this.#keys[2 * slot + 1] !== 0) continue;
      units |= 1 << unitOf(marks[i]!);
      if (left !== i) words.copyWithin(left * width, i * width, (i + 1) * width);
      marks[left] = marks[i]!;
      ordinals[left++] = ordinals[i]!;
    }
    wave.left = left;
    return units;
  }

  override settle(wave: Wave, from: number, parent: number): void {
    const { words, marks, ordinals, left } = wave;
    this.#reserve(left - from, parent);
    let added = from;
    for (let i = from; i < left; i++) {
      const first = this.#fingerprint(words, i * this.words);
      const slot = this.#slot(first, this.#half[0]!);
      if (this.#keys[2 * slot] !== 0 || this.#keys[2 * slot + 1] !== 0) continue;
      this.#put(slot, first, words, i * this.words, parent, ordinals[i]!);
      marks[added++] = marks[i]!;
    }
  }

  /** The first half; the second one is put aside in {@link #half}. They are never both 0. */
  #fingerprint(words: Int32Array, at: number): number {
    let first = 0x9e3779b9 | 0;
    let second = 0x7f4a7c15 | 0;
    for (let k = at; k < at + this.words; k++) {
      const word = words[k]!;
      first = Math.imul(first ^ word, 0x85ebca6b);
      first ^= first >>> 15;
      second = Math.imul(second ^ word, 0xcc9e2d51) + first | 0;
      second ^= second >>> 13;
    }
    first = Math.imul(first, 0xc2b2ae35);
    second = Math.imul(second, 0x1b873593);
    this.#half[0] = second ^ second >>> 16 | (first === 0 ? 1 : 0);
    return first ^ first >>> 16;
  }

  #slot(first: number, second: number): number {
    const keys = this.#keys;
    const mask = this.#keyMask;
    for (let slot = first & mask;; slot = (slot + 1) & mask) {
      const a = keys[2 * slot]!;
      const b = keys[2 * slot + 1]!;
      if ((a | b) === 0 || (a === first && b === second)) return slot;
    }
  }

  #put(
    slot: number,
    first: number,
    words: Int32Array,
    from: number,
    parent: number,
    ordinal: number,
  ): number {
    const index = this.count++;
    const at = (index - this.base) * this.words;
    for (let k = 0; k < this.words; k++) this.pool[at + k] = words[from + k]!;
    this.parent[index] = parent;
    this.ordinal[index] = ordinal;
    this.#keys[2 * slot] = first;
    this.#keys[2 * slot + 1] = this.#half[0]!;
    return index;
  }

  /** Makes room for more states, and gives up those before the one that is being left. */
  #reserve(count: number, leaving: number): void {
    const needed = this.count + count;
    if (needed > this.parent.length) {
      const parents = new Int32Array(2 * this.parent.length);
      parents.set(this.parent);
      this.parent = parents;
      const ordinals = new Uint16Array(2 * this.ordinal.length);
      ordinals.set(this.ordinal);
      this.ordinal = ordinals;
    }
    if ((needed - this.base) * this.words > this.pool.length) {
      const kept = this.pool.subarray(
        (leaving - this.base) * this.words,
        (this.count - this.base) * this.words,
      );
      // At least half of the new pool is free, so that this stays rare.
      const room = Math.max(this.pool.length, 2 * (kept.length + count * this.words));
      const pool = new Int32Array(room);
      pool.set(kept);
      this.pool = pool;
      this.base = leaving;
    }
    if (needed > FULL * (this.#keyMask + 1)) {
      const old = this.#keys;
      this.#keys = new Int32Array(2 * old.length);
      this.#keyMask = this.#keys.length / 2 - 1;
      for (let at = 0; at < old.length; at += 2) {
        const first = old[at]!;
        const second = old[at + 1]!;
        if ((first | second) === 0) continue;
        const slot = this.#slot(first, second);
        this.#keys[2 * slot] = first;
        this.#keys[2 * slot + 1] = second;
      }
    }
  }
}
