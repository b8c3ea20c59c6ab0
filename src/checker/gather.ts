/**
 * The search's inmost loops: the successors of neighbouring states by look-ups alone.
 *
 * First every bundle's list of successors is looked up for all states, and then the lists are applied. Both are there twice: for states
 * of two words, which are kept in two variables, and for wider ones.
 */
import type { Arrivals } from "./arrivals.ts";
import type { Expander } from "./expander.ts";
import { NARROW } from "./layout.ts";
import { EDGE, LIST, READS, type SuccessorLists } from "./successor-lists.ts";
import { STATE, UNIT_BITS, type Wave } from "./wave.ts";

/**
 * Collects the successors of neighbouring states, except those of which {@link Arrivals} knows that they were seen before.
 *
 * @param pool packed states; the first one is at the offset `at`.
 * @param first the number of that state, under which its arrival is known.
 * @returns how many states were gathered. Before the next one, what {@link Expander.join} asks for has to be done.
 */
export function gather(
  expander: Expander,
  pool: Int32Array,
  at: number,
  states: number,
  arrivals: Arrivals | undefined,
  first: number,
  wave: Wave,
): number {
  wave.clear(expander.bundles);
  // When lists are forgotten on the way to the next state, those of the states before it are still here.
  const { lists } = expander;
  const inherited = arrivals?.listsFor(expander);
  if (wave.width === NARROW) {
    wave.size = listsOfNarrow(expander, pool, at, states, wave);
    applyToNarrow(lists, pool, at, arrivals, first, wave);
  } else {
    wave.size = listsOfWide(expander, pool, at, states, arrivals, inherited, first, wave);
    applyToWide(lists, pool, at, arrivals, inherited, first, wave);
  }
  return wave.size;
}

// ---- which lists of successors ----------------------------------------------------------------------------------

function listsOfNarrow(
  expander: Expander,
  pool: Int32Array,
  at: number,
  states: number,
  { lists }: Wave,
): number {
  const { bundles } = expander;
  for (let k = 0, to = 0; k < states; k++) {
    const state = at + NARROW * k;
    const a = pool[state]!;
    const b = pool[state + 1]!;
    for (let g = 0; g < bundles.length; g++) {
      let list = bundles[g]!.decisions.findNarrow(a, b);
      if (list === 0) list = expander.join(bundles[g]!, pool, state);
      if (list < 0) return k;
      lists[to++] = list;
    }
  }
  return states;
}

function listsOfWide(
  expander: Expander,
  pool: Int32Array,
  at: number,
  states: number,
  arrivals: Arrivals | undefined,
  inherited: Int32Array | undefined,
  first: number,
  { lists, width }: Wave,
): number {
  const { bundles } = expander;
  const ring = arrivals === undefined ? 0 : arrivals.marks.length - 1;
  for (let k = 0, to = 0; k < states; k++) {
    const state = at + width * k;
    const record = (first + k & ring) * (1 + bundles.length) + 1;
    for (let g = 0; g < bundles.length; g++) {
      let list = inherited === undefined ? 0 : inherited[record + g]!;
      if (list === 0) list = bundles[g]!.decisions.find(pool, state);
      if (list === 0) list = expander.join(bundles[g]!, pool, state);
      if (list < 0) return k;
      lists[to++] = list;
    }
  }
  return states;
}

// ---- what they lead to ------------------------------------------------------------------------------------------

/*
 * Whether a successor by the unit b, of a state that was reached by the unit a, is known to have been seen: the arrival has the bit of b,
 * and the mark of the successor has not the bit of a. Shifts count modulo 32, so that marks need not be taken apart.
 */

const NO_ARRIVALS = new Int32Array(1);

function applyToNarrow(
  { edges, header, stride }: SuccessorLists,
  pool: Int32Array,
  at: number,
  arrivals: Arrivals | undefined,
  first: number,
  wave: Wave,
): void {
  const came = arrivals?.marks ?? NO_ARRIVALS;
  const { size, states, lists } = wave;
  const bundles = wave.bundles.length;
  let { words, marks, ordinals, room } = wave;
  let n = 0;
  for (let k = 0, next = 0; k < size; k++) {
    const a = pool[at + NARROW * k]!;
    const b = pool[at + NARROW * k + 1]!;
    const arrival = came[first + k & came.length - 1]!;
    let generated = 0;
    let stutters = 0;
    let steady = 0;
    for (let g = 0; g < bundles; g++) {
      const list = lists[next++]!;
      const distinct = edges[list + LIST.distinct]!;
      stutters += edges[list + LIST.stutters]!;
      steady += edges[list + LIST.steady]!;
      if (n + distinct >= room) {
        wave.reserve(n + distinct + 1);
        ({ words, marks, ordinals, room } = wave);
      }
      // All at once, if all are known.
      const some = edges[list + LIST.units]! & ~arrival |
        edges[list + LIST.disturbed]! >>> arrival + UNIT_BITS & 1;
      let from = list + header;
      for (const end = from + (some === 0 ? 0 : distinct * stride); from < end; from += stride) {
        const mark = edges[from + EDGE.mark]!;
        words[NARROW * n] = a + edges[from + EDGE.adds]!;
        words[NARROW * n + 1] = b + edges[from + EDGE.adds + 1]!;
        marks[n] = mark;
        ordinals[n] = generated + edges[from + EDGE.ordinal]!;
        // The next one is written over this one if it is known.
        n += 1 ^ (arrival >>> mark + UNIT_BITS & ~(mark >>> arrival + UNIT_BITS) & 1);
      }
      generated += edges[list + LIST.count]!;
    }
    states[STATE.size * k + STATE.end] = n;
    states[STATE.size * k + STATE.generated] = generated;
    states[STATE.size * k + STATE.stutters] = stutters;
    states[STATE.size * k + STATE.steady] = steady;
  }
  wave.count = n;
}

function applyToWide(
  { edges, header, stride }: SuccessorLists,
  pool: Int32Array,
  at: number,
  arrivals: Arrivals | undefined,
  inherited: Int32Array | undefined,
  first: number,
  wave: Wave,
): void {
  const { width, size, states, lists } = wave;
  const bundles = wave.bundles.length;
  const came = arrivals?.marks ?? NO_ARRIVALS;
  let { words, marks, ordinals, room } = wave;
  let n = 0;
  for (let k = 0, next = 0; k < size; k++) {
    const state = at + width * k;
    const arrival = came[first + k & came.length - 1]!;
    // The list that the state was reached by, which says what the arrival's unit read.
    const origin = inherited === undefined
      ? 0
      : inherited[(first + k & came.length - 1) * (1 + bundles)]!;
    let generated = 0;
    let stutters = 0;
    let steady = 0;
    for (let g = 0; g < bundles; g++) {
      const list = lists[next++]!;
      const distinct = edges[list + LIST.distinct]!;
      stutters += edges[list + LIST.stutters]!;
      steady += edges[list + LIST.steady]!;
      if (n + distinct > room) {
        wave.reserve(n + distinct);
        ({ words, marks, ordinals, room } = wave);
      }
      const some = edges[list + LIST.units]! & ~arrival |
        edges[list + LIST.disturbed]! >>> arrival + UNIT_BITS & 1;
      let from = list + header;
      for (const end = from + (some === 0 ? 0 : distinct * stride); from < end; from += stride) {
        const mark = edges[from + EDGE.mark]!;
        for (let w = 0, to = n * width; w < width; w++) {
          words[to + w] = pool[state + w]! + edges[from + EDGE.adds + w]!;
        }
        if ((arrival >>> mark + UNIT_BITS & 1) === 1) {
          let disturbs = mark >>> arrival + UNIT_BITS & 1;
          // It may, in this state or another one. In this one?
          if (disturbs === 1 && origin !== 0) {
            disturbs = 0;
            for (let w = 0, to = n * width; w < width; w++) {
              disturbs |= (words[to + w]! ^ pool[state + w]!) & edges[origin + READS + w]!;
            }
          }
          if (disturbs === 0) continue;
        }
        marks[n] = mark;
        ordinals[n++] = generated + edges[from + EDGE.ordinal]!;
      }
      generated += edges[list + LIST.count]!;
    }
    states[STATE.size * k + STATE.end] = n;
    states[STATE.size * k + STATE.generated] = generated;
    states[STATE.size * k + STATE.stutters] = stutters;
    states[STATE.size * k + STATE.steady] = steady;
  }
  wave.count = n;
}
