/**
 * What is known of states that were found and not yet left, from the way in which they were found.
 *
 * **Lists of successors.** A bundle whose list depends on nothing that a step changes has the same list after it as before.
 *
 * **Known successors.** Let a step lead from a state s to a new state sa, and let another step b be possible in s, so that neither changes
 * what the other's unit reads. Then b is possible in sa, a is possible in the state sb, and both lead to the same state. When sb is left
 * before sa, that state is known by the time at which sa is left, so that it need not be looked up again. In a breadth-first search sb
 * is left before sa if it was seen before, or if b comes before a. This leaves out look-ups, not states: the same states are found,
 * in the same order, by the same steps.
 */
import { type Batch, UNIT_BITS, unitOf } from "./batch.ts";
import { type Expander, READS } from "./expander.ts";
import { NARROW } from "./layout.ts";
import type { StateTable } from "./state-table.ts";

const FIRST = 1 << 8;

export class Arrivals {
  /**
   * A ring of records, one a state: the unit by which it came, with a bit for each unit whose steps are known unless they disturb that one;
   * then for each bundle where its list is, if that is known.
   */
  records: Int32Array = new Int32Array(0);
  #stride = 1;
  #slots = FIRST;
  /** States before this one have no record. */
  #since = 0;
  #bundlesOf: Expander["bundles"] | undefined;

  get bytes(): number {
    return this.records.byteLength;
  }

  /** Where a state's record is in {@link records}; -1 if there is none. */
  of(index: number, { bundles }: Expander): number {
    return index < this.#since || bundles !== this.#bundlesOf
      ? -1
      : (index & (this.#slots - 1)) * this.#stride;
  }

  /**
   * Notes the states that were added last.
   *
   * @param table has the states, the new ones from `first` on.
   * @param left the state that is being left, which has this index.
   * @param fresh the units by which it has successors that were not seen before.
   */
  note(
    expander: Expander,
    table: StateTable,
    first: number,
    { marks, count, offsets, bundles: asked }: Batch,
    left: Int32Array,
    index: number,
    fresh: number,
  ): void {
    const { bundles, edges } = expander;
    const { pool, base } = table;
    if (bundles !== this.#bundlesOf) this.#begin(expander, first);
    while (first + count - index > this.#slots) this.#grow(index, first);
    const { records } = this;
    const stride = this.#stride;
    const words = left.length;
    for (let i = 0; i < count; i++) {
      const mark = marks[i]!;
      const unit = unitOf(mark);
      const before = (1 << unit) - 1;
      let at = ((first + i) & (this.#slots - 1)) * stride;
      records[at++] = ((before | ~fresh) << UNIT_BITS) & (~mark >>> UNIT_BITS << UNIT_BITS) | unit;
      const state = (first + i - base) * words;
      // A narrow state's list is looked up in less time.
      for (let g = 0; g < this.#stride - 1; g++) {
        let list = asked === bundles ? offsets[g]! : 0;
        if (list !== 0 && (mark & bundles[g]!.units) !== 0) {
          const reads = list + READS;
          for (let k = 0; k < words; k++) {
            if (((pool[state + k]! ^ left[k]!) & edges[reads + k]!) !== 0) list = 0;
          }
        }
        records[at++] = list;
      }
    }
  }

  /** Forgets all. */
  clear(): void {
    this.#bundlesOf = undefined;
  }

  #begin({ bundles, layout }: Expander, first: number): void {
    this.#bundlesOf = bundles;
    this.#stride = layout.words === NARROW ? 1 : 1 + bundles.length;
    this.#since = first;
    this.records = new Int32Array(this.#slots * this.#stride);
  }

  /** Twice as many slots; the records of the states from `from` to `to` move to theirs. */
  #grow(from: number, to: number): void {
    const old = this.records;
    const mask = this.#slots - 1;
    this.#slots *= 2;
    const stride = this.#stride;
    this.records = new Int32Array(this.#slots * stride);
    for (let i = Math.max(from, this.#since); i < to; i++) {
      const at = (i & mask) * stride;
      this.records.set(old.subarray(at, at + stride), (i & (this.#slots - 1)) * stride);
    }
  }
}
