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
 *
 * What is known of a state stays true when components, groups or parts come up later: they are absent in s, sa and sb, and what is
 * absent offers no step.
 */
import type { Bundle, Expander } from "./expander.ts";
import { NARROW } from "./layout.ts";
import type { StateTable } from "./state-table.ts";
import { READS } from "./successor-lists.ts";
import { UNIT_BITS, unitOf, UNITS, type Wave } from "./wave.ts";

const FIRST = 1 << 8;
/** The bits of an arrival or a mark that stand for units. */
const BY_UNIT = -1 << UNIT_BITS;
/** The groups beyond are in several bundles, of which none speaks for all. */
const SINGLE = ~(1 << UNITS - 1 + UNIT_BITS);

export class Arrivals {
  /** A ring, one number a state: the unit by which it came, with a bit for each unit whose steps are known unless they disturb that one. */
  marks: Int32Array = new Int32Array(FIRST);
  /**
   * A ring of records, one a state, for states of more than two words: where the list of successors is that it came by; then for each
   * bundle where its list is, if that is known.
   */
  #lists: Int32Array = new Int32Array(0);
  #bundles: readonly Bundle[] | undefined;

  get bytes(): number {
    return this.marks.byteLength + this.#lists.byteLength;
  }

  /** The records about lists, as long as they are lists of the present bundles. */
  listsFor({ bundles }: Expander): Int32Array | undefined {
    return bundles === this.#bundles ? this.#lists : undefined;
  }

  /**
   * Notes the states that were added last.
   *
   * @param table has the states, the new ones from `first` on.
   * @param wave what was gathered; the new states' marks begin at `from`.
   * @param index the state that is being left.
   * @param fresh the units by which it has successors that were not seen before.
   */
  note(
    expander: Expander,
    table: StateTable,
    first: number,
    wave: Wave,
    from: number,
    index: number,
    state: number,
    fresh: number,
  ): void {
    const { count } = table;
    while (count - index > this.marks.length) this.#grow(index, first);
    if (table.words !== NARROW) {
      this.#noteWide(expander, table, first, wave, from, index, state, fresh);
      return;
    }
    const { marks } = this;
    const ring = marks.length - 1;
    for (let i = first; i < count; i++) {
      const mark = wave.marks[from + i - first]!;
      marks[i & ring] = arrival(mark, fresh, ~mark);
    }
  }

  #noteWide(
    { bundles, bundleOf, lists: { edges } }: Expander,
    { count, pool, base, words }: StateTable,
    first: number,
    wave: Wave,
    from: number,
    index: number,
    state: number,
    fresh: number,
  ): void {
    const { marks } = this;
    const ring = marks.length - 1;
    const stride = 1 + bundles.length;
    if (bundles !== this.#bundles) {
      this.#bundles = bundles;
      this.#lists = new Int32Array(marks.length * stride);
    }
    // Lists of other bundles than the present ones may have been written over.
    const asked = wave.bundles === bundles;
    const lists = this.#lists;
    const old = (index - base) * words;
    for (let i = first; i < count; i++) {
      const mark = wave.marks[from + i - first]!;
      const now = (i - base) * words;
      const record = (i & ring) * stride;
      let untouched = ~mark;
      for (let g = 0; g < bundles.length; g++) {
        let list = asked ? wave.lists[state * bundles.length + g]! : 0;
        if (list !== 0 && (mark & bundles[g]!.units) !== 0) {
          for (let k = 0; k < words; k++) {
            if (((pool[now + k]! ^ pool[old + k]!) & edges[list + READS + k]!) !== 0) {
              list = 0;
              break;
            }
          }
        }
        if (list !== 0) untouched |= bundles[g]!.units & SINGLE;
        lists[record + 1 + g] = list;
      }
      const origin = bundleOf[unitOf(mark)]!;
      lists[record] = asked && origin >= 0 ? wave.lists[state * bundles.length + origin]! : 0;
      marks[i & ring] = arrival(mark, fresh, untouched);
    }
  }

  /** Twice as many places; the records of the states from `from` to `to` move to theirs. */
  #grow(from: number, to: number): void {
    const moved = (old: Int32Array, stride: number): Int32Array => {
      const slots = old.length / stride;
      const now = new Int32Array(2 * old.length);
      for (let i = from; i < to; i++) {
        const was = (i & slots - 1) * stride;
        const is = (i & 2 * slots - 1) * stride;
        for (let k = 0; k < stride; k++) now[is + k] = old[was + k]!;
      }
      return now;
    };
    if (this.#bundles !== undefined) this.#lists = moved(this.#lists, 1 + this.#bundles.length);
    this.marks = moved(this.marks, 1);
  }
}

/** What is known of a state that was reached by a step of this mark, which leaves these units' steps as they were. */
function arrival(mark: number, fresh: number, untouched: number): number {
  const unit = unitOf(mark);
  const before = (1 << unit) - 1;
  return (before | ~fresh) << UNIT_BITS & untouched & BY_UNIT | unit;
}
