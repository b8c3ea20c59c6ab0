/**
 * Lists of successors in packed form, for one layout: what the search's inmost loops read.
 *
 * At a list's offset: the numbers that {@link LIST} names; ones where the components are that it depends on; then the successors. Those
 * come last that lead where another one of the same unit leads: who knows the others need not look them up.
 *
 * A mark has the successor's unit (its group, by number) in its low bits, and above them a bit for each unit that may have read what
 * the successor changes: the others offer the same after it as before.
 */
import type { Layout } from "./layout.ts";
import { ANSWER, doubled, type KnownPart, ModelTooWideError } from "./memory.ts";
import { UNIT_BITS, unitOf } from "./wave.ts";

/** What a list starts with. */
export const LIST = {
  /** Successors. */
  count: 0,
  /** Steps that changed nothing. */
  stutters: 1,
  /** Successors by steps that are no faults. */
  steady: 2,
  /** Successors that lead to different states. */
  distinct: 3,
  /** Their units, as bits of a mark. */
  units: 4,
  /** All bits of all their marks. */
  disturbed: 5,
} as const;
/** Then come ones where the components are that it depends on. */
export const READS = 6;
/** A successor starts with these, and then says what it adds to each word. */
export const EDGE = { action: 0, mark: 1, ordinal: 2, adds: 3 } as const;
/** Numbers of lists after which they are forgotten. */
const FULL = 1 << 25;

/** For each column the units that read it, as bits of a mark. */
export type Readers = readonly (number | undefined)[];

export class SuccessorLists {
  /** All lists. */
  edges: Int32Array = new Int32Array(1 << 12);
  /** Numbers a successor. */
  readonly stride: number;
  /** Where the successors of a list begin. */
  readonly header: number;
  readonly #layout: Layout;
  #end = 1;

  constructor(layout: Layout) {
    this.#layout = layout;
    this.stride = EDGE.adds + layout.words;
    this.header = READS + layout.words;
  }

  get bytes(): number {
    return this.edges.byteLength;
  }

  /** Whether there are so many that they should be forgotten. */
  get full(): boolean {
    return this.#end > FULL;
  }

  /**
   * Writes the joined list of what some parts answered.
   *
   * @param found where each part's answer is.
   * @param reads what it depends on.
   * @returns where it is.
   */
  write(
    parts: readonly KnownPart[],
    found: readonly number[],
    reads: Iterable<number>,
    readers: Readers,
  ): number {
    const start = this.#end;
    const total = (of: number): number =>
      parts.reduce((sum, { answers }, p) => sum + answers[found[p]! + of]!, 0);
    const count = total(ANSWER.count);
    if (count > 0xffff) {
      throw new ModelTooWideError(`the model has a state with ${count} successors`);
    }
    this.#end += this.header + count * this.stride;
    while (this.#end > this.edges.length) this.edges = doubled(this.edges);
    const { edges } = this;
    edges.fill(0, start, this.#end);
    edges[start + LIST.count] = count;
    edges[start + LIST.stutters] = total(ANSWER.stutters);
    edges[start + LIST.steady] = total(ANSWER.steady);
    edges.set(this.#layout.mask(reads), start + READS);
    let at = start + this.header;
    let ordinal = 0;
    eachSuccessor(parts, found, (action, unit, answers, from, to) => {
      edges[at + EDGE.action] = action;
      edges[at + EDGE.mark] = markOf(unit, answers, from, to, readers);
      edges[at + EDGE.ordinal] = ordinal++;
      for (let c = from; c < to; c += 3) {
        this.#layout.change(answers[c]!, answers[c + 1]!, answers[c + 2]!, edges, at + EDGE.adds);
      }
      at += this.stride;
    });
    edges[start + LIST.distinct] = this.#distinct(start + this.header, count);
    this.#sum(start);
    return start;
  }

  /** Other units read other columns now: marks a list's successors anew. */
  mark(start: number, parts: readonly KnownPart[], found: readonly number[], by: Readers): void {
    const marks: number[] = [];
    eachSuccessor(parts, found, (_, unit, answers, from, to) => {
      marks.push(markOf(unit, answers, from, to, by));
    });
    for (let i = 0, at = start + this.header; i < marks.length; i++, at += this.stride) {
      this.edges[at + EDGE.mark] = marks[this.edges[at + EDGE.ordinal]!]!;
    }
    this.#sum(start);
  }

  /** A list may depend on what is there, too. */
  depend(start: number, mask: Int32Array): void {
    for (let k = 0; k < mask.length; k++) this.edges[start + READS + k]! |= mask[k]!;
  }

  /** Sums up a list's marks. */
  #sum(start: number): void {
    const { edges, stride, header } = this;
    let units = 0;
    let disturbed = 0;
    for (let i = edges[start + LIST.count]!, at = start + header; i > 0; i--, at += stride) {
      const mark = edges[at + EDGE.mark]!;
      units |= 1 << unitOf(mark) + UNIT_BITS;
      disturbed |= mark;
    }
    edges[start + LIST.units] = units;
    edges[start + LIST.disturbed] = disturbed;
  }

  /** Puts successors last that lead where another one of the same unit leads. Returns how many do not. */
  #distinct(begin: number, count: number): number {
    const { edges, stride } = this;
    const same = (a: number, b: number): boolean => {
      if (unitOf(edges[a + EDGE.mark]!) !== unitOf(edges[b + EDGE.mark]!)) return false;
      for (let k = EDGE.adds; k < stride; k++) if (edges[a + k] !== edges[b + k]) return false;
      return true;
    };
    let distinct = 0;
    const others: Int32Array[] = [];
    for (let i = 0; i < count; i++) {
      const at = begin + i * stride;
      let known = false;
      for (let j = 0; j < distinct && !known; j++) known = same(begin + j * stride, at);
      if (known) others.push(edges.slice(at, at + stride));
      else edges.copyWithin(begin + distinct++ * stride, at, at + stride);
    }
    others.forEach((edge, i) => edges.set(edge, begin + (distinct + i) * stride));
    return distinct;
  }
}

/** Visits every successor in answers: its action, its unit, and where its changes are (column, before, after). */
function eachSuccessor(
  parts: readonly KnownPart[],
  found: readonly number[],
  visit: (action: number, unit: number, answers: Int32Array, from: number, to: number) => void,
): void {
  for (let p = 0; p < found.length; p++) {
    const { answers, unit } = parts[p]!;
    let at = found[p]! + ANSWER.successors;
    for (let i = answers[found[p]! + ANSWER.count]!; i > 0; i--) {
      const from = at + 2;
      const to = from + 3 * answers[at + 1]!;
      visit(answers[at]!, unit, answers, from, to);
      at = to;
    }
  }
}

function markOf(
  unit: number,
  answers: Int32Array,
  from: number,
  to: number,
  readers: Readers,
): number {
  let mark = unit;
  for (let at = from; at < to; at += 3) mark |= readers[answers[at]!] ?? 0;
  return mark;
}
