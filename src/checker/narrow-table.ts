/** A {@link StateTable} for states of two words, each of which is kept in a variable instead of a loop. */
import { NARROW } from "./layout.ts";
import { StateTable } from "./state-table.ts";
import { unitOf, type Wave } from "./wave.ts";

export class NarrowTable extends StateTable {
  constructor(capacity?: number) {
    super(NARROW, capacity);
  }

  override touch(wave: Wave): void {
    const { slots, mask } = this;
    const { words, hashes, count } = wave;
    let warm = 0;
    for (let i = 0; i < count; i++) {
      const hash = hashes[i] = hashOf(words[2 * i]!, words[2 * i + 1]!);
      warm ^= slots[hash & mask]!;
    }
    this.warm = warm;
  }

  override sift(wave: Wave, from: number, to: number): number {
    const { words, marks, ordinals, hashes } = wave;
    const { slots, mask, indexBits, pool } = this;
    let left = from;
    let units = 0;
    for (let i = from; i < to; i++) {
      const a = words[2 * i]!;
      const b = words[2 * i + 1]!;
      const hash = hashes[i]!;
      let slot = hash & mask;
      let entry = slots[slot]!;
      while (entry !== 0) {
        if (((entry ^ hash) & ~indexBits) === 0) {
          const at = 2 * (entry & indexBits) - 2;
          if (pool[at] === a && pool[at + 1] === b) break;
        }
        slot = slot + 1 & mask;
        entry = slots[slot]!;
      }
      if (entry !== 0) continue;
      const mark = marks[i]!;
      units |= 1 << unitOf(mark);
      words[2 * left] = a;
      words[2 * left + 1] = b;
      hashes[left] = hash;
      marks[left] = mark;
      ordinals[left++] = ordinals[i]!;
    }
    wave.left = left;
    return units;
  }

  override settle(wave: Wave, from: number, by: number): void {
    const { words, marks, ordinals, hashes, left } = wave;
    this.reserve(left - from);
    const { slots, mask, indexBits, pool, parent, ordinal } = this;
    const first = this.count;
    let index = first;
    for (let i = from; i < left; i++) {
      const a = words[2 * i]!;
      const b = words[2 * i + 1]!;
      const hash = hashes[i]!;
      let slot = hash & mask;
      let entry = slots[slot]!;
      while (entry !== 0) {
        if (((entry ^ hash) & ~indexBits) === 0) {
          const at = 2 * (entry & indexBits) - 2;
          if (pool[at] === a && pool[at + 1] === b) break;
        }
        slot = slot + 1 & mask;
        entry = slots[slot]!;
      }
      if (entry !== 0) continue;
      slots[slot] = hash & ~indexBits | index + 1;
      pool[2 * index] = a;
      pool[2 * index + 1] = b;
      parent[index] = by;
      ordinal[index] = ordinals[i]!;
      marks[from + index - first] = marks[i]!;
      index++;
    }
    this.count = index;
  }

  protected override hash(words: Int32Array, at: number): number {
    return hashOf(words[at]!, words[at + 1]!);
  }
}

function hashOf(a: number, b: number): number {
  let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b);
  h ^= h >>> 15;
  h = Math.imul(h ^ b, 0xc2b2ae35);
  return h ^ (h >>> 16);
}
