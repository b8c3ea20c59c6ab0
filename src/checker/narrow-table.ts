/**
 * All states that were seen, for states of up to 64 bits: the keys lie in the hash table itself, so that meeting a known state
 * again costs one access to memory.
 */
import { type Batch, unitOf } from "./batch.ts";
import { StateTable } from "./state-table.ts";

export class NarrowTable extends StateTable {
  /** The two words of each state. Both are 0 where a slot is free; the state that is all zeros has a place of its own. */
  #keys: Int32Array;
  #keyMask: number;
  #zero = false;
  #indexed = false;

  constructor(capacity?: number) {
    super(2, capacity, false);
    this.#keys = new Int32Array(4 * this.parent.length);
    this.#keyMask = 2 * this.parent.length - 1;
  }

  override get bytes(): number {
    return super.bytes + this.#keys.byteLength;
  }

  override touch(batch: Batch): void {
    const { words, hashes, count } = batch;
    const keys = this.#keys;
    const mask = this.#keyMask;
    let warm = 0;
    for (let i = 0; i < count; i++) {
      const hash = hashes[i] = hashOf(words[2 * i]!, words[2 * i + 1]!);
      warm ^= keys[2 * (hash & mask)]!;
    }
    this.warm = warm;
  }

  override sift(batch: Batch): number {
    const { words, marks, ordinals, hashes, count } = batch;
    const keys = this.#keys;
    const mask = this.#keyMask;
    let left = 0;
    let units = 0;
    for (let i = 0; i < count; i++) {
      const a = words[2 * i]!;
      const b = words[2 * i + 1]!;
      let slot = hashes[i]! & mask;
      let x = keys[2 * slot]!;
      let y = keys[2 * slot + 1]!;
      while ((x !== a || y !== b) && (x | y) !== 0) {
        slot = (slot + 1) & mask;
        x = keys[2 * slot]!;
        y = keys[2 * slot + 1]!;
      }
      if ((x | y) !== 0 || (this.#zero && (a | b) === 0)) continue;
      const mark = marks[i]!;
      units |= 1 << unitOf(mark);
      words[2 * left] = a;
      words[2 * left + 1] = b;
      hashes[left] = hashes[i]!;
      marks[left] = mark;
      ordinals[left++] = ordinals[i]!;
    }
    batch.count = left;
    return units;
  }

  override settle(batch: Batch, from: number): void {
    const { words, marks, ordinals, hashes, count } = batch;
    if (this.count + count > this.parent.length) this.grow();
    const keys = this.#keys;
    const mask = this.#keyMask;
    const { pool, parent, ordinal } = this;
    const first = this.count;
    let index = first;
    for (let i = 0; i < count; i++) {
      const a = words[2 * i]!;
      const b = words[2 * i + 1]!;
      let slot = hashes[i]! & mask;
      let x = keys[2 * slot]!;
      let y = keys[2 * slot + 1]!;
      while ((x !== a || y !== b) && (x | y) !== 0) {
        slot = (slot + 1) & mask;
        x = keys[2 * slot]!;
        y = keys[2 * slot + 1]!;
      }
      if ((x | y) !== 0) continue;
      if ((a | b) === 0) {
        if (this.#zero) continue;
        this.#zero = true;
      }
      keys[2 * slot] = a;
      keys[2 * slot + 1] = b;
      pool[2 * index] = a;
      pool[2 * index + 1] = b;
      parent[index] = from;
      ordinal[index] = ordinals[i]!;
      marks[index - first] = marks[i]!;
      index++;
    }
    batch.count = index - first;
    this.count = index;
    this.#indexed &&= index === first;
  }

  override add(state: Int32Array, parent: number, ordinal: number): number {
    const a = state[0]!;
    const b = state[1]!;
    if (this.#has(a, b)) return this.find(state);
    if (this.count === this.parent.length) this.grow();
    const index = this.count++;
    this.pool[2 * index] = a;
    this.pool[2 * index + 1] = b;
    this.parent[index] = parent;
    this.ordinal[index] = ordinal;
    this.#enter(a, b);
    this.#indexed = false;
    return ~index;
  }

  override find(state: Int32Array): number {
    if (!this.#indexed) {
      this.index();
      this.#indexed = true;
    }
    return super.find(state);
  }

  protected override grow(): void {
    super.grow();
    const old = this.#keys;
    this.#keys = new Int32Array(4 * this.parent.length);
    this.#keyMask = 2 * this.parent.length - 1;
    // In the order of the old slots, so that the new ones are written from front to back, a few places at a time.
    for (let at = 0; at < old.length; at += 2) {
      if ((old[at]! | old[at + 1]!) !== 0) this.#enter(old[at]!, old[at + 1]!);
    }
  }

  #has(a: number, b: number): boolean {
    if ((a | b) === 0) return this.#zero;
    const keys = this.#keys;
    const mask = this.#keyMask;
    for (let slot = hashOf(a, b) & mask;; slot = (slot + 1) & mask) {
      const x = keys[2 * slot]!;
      const y = keys[2 * slot + 1]!;
      if ((x | y) === 0) return false;
      if (x === a && y === b) return true;
    }
  }

  #enter(a: number, b: number): void {
    if ((a | b) === 0) {
      this.#zero = true;
      return;
    }
    const keys = this.#keys;
    const mask = this.#keyMask;
    let slot = hashOf(a, b) & mask;
    while ((keys[2 * slot]! | keys[2 * slot + 1]!) !== 0) slot = (slot + 1) & mask;
    keys[2 * slot] = a;
    keys[2 * slot + 1] = b;
  }
}

function hashOf(a: number, b: number): number {
  let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b);
  h ^= h >>> 15;
  h = Math.imul(h ^ b, 0xc2b2ae35);
  return h ^ (h >>> 16);
}
