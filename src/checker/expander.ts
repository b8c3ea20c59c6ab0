/**
 * The successors of packed states, from memory wherever the plain code has answered the same question before.
 *
 * There are two levels. What each part (one channel to one instance, one instance's own doings, one kind of fault) answered is remembered
 * by what it read ({@link KnownPart}). Neighbouring groups of parts are bundled, and the bundles' joined answers are remembered again
 * in packed form, so that a state costs a few look-ups however many processes there are.
 */
import { type Batch, UNIT_BITS, UNITS } from "./batch.ts";
import { Layout, NARROW } from "./layout.ts";
import { ANSWER, doubled, KnownPart, type KnownPredicate, ModelTooWideError } from "./memory.ts";
import { PackedDecisions } from "./packed-decisions.ts";
import { Cursor, type Part, type Space } from "./space.ts";

/** In {@link Expander.edges}, a list of successors starts with three counts; then come ones where the components are that it depends on. */
export const READS = 3;
/** A successor starts with these, and then says what it adds to each word. */
export const EDGE = 2;
/** Bundles are joined while their joined answers are likely to be fewer than this. */
const JOINED = 1 << 9;
/** A bundle that has more answers after all is taken apart again. */
const TOO_MANY = 1 << 11;
/** Numbers of remembered bundle answers after which they are forgotten. */
const ARENA = 1 << 25;

/** Neighbouring groups, looked up together. */
export interface Bundle {
  first: number;
  last: number;
  parts: KnownPart[];
  /** The group of each part. */
  groups: number[];
  /** The units of its groups, as bits of a mark. */
  units: number;
  /** Where the successors of a state are in {@link Expander.edges}. */
  lists: PackedDecisions;
}

export class Expander {
  readonly space: Space;
  readonly cursor: Cursor = new Cursor();
  layout: Layout;
  /**
   * Lists of successors. At a list's offset: how many, how many steps changed nothing, how many are no faults; ones where the
   * components are that it depends on; then for each successor its action, its mark, and what it adds to each word.
   *
   * A mark has the successor's unit (its group, by number) in its low bits, and above them a bit for each unit that may have read what
   * the successor changes: the others offer the same after it as before.
   */
  edges: Int32Array = new Int32Array(1 << 12);
  /** Words of {@link edges} a successor. */
  stride: number;
  /** Where the successors of a list begin. */
  header: number;
  bundles: Bundle[] = [];
  /** Whether a value came up for which the layout has no room, or a group that belongs to no bundle. */
  outgrown = false;
  #end = 1;
  #structure = 0;
  #known = new Map<Part, KnownPart>();
  /** Groups that were joined with others, in vain. */
  readonly #apart = new Set<number>();
  /** Which units read each column, as bits of a mark. */
  #readers: number[] = [];

  constructor(space: Space) {
    this.space = space;
    this.layout = new Layout(space.columns);
    this.stride = EDGE + this.layout.words;
    this.header = READS + this.layout.words;
  }

  /** The initial state, packed in the present layout. */
  initial(): Int32Array {
    this.cursor.place(() => {}, this.space.columns.count);
    this.space.start(this.cursor);
    const values = this.cursor.values.slice();
    this.cursor.reset();
    values.forEach((value, column) => {
      if (value > 0) this.space.columns.admit(column, value);
    });
    this.#layAnew();
    const state = new Int32Array(this.layout.words);
    this.layout.pack(values, state);
    return state;
  }

  /**
   * Makes room for every value and group that is known now.
   *
   * @returns the columns that were given room, or undefined when everything was laid out anew: packed states have to be repacked.
   */
  relayout(): ReadonlySet<number> | undefined {
    this.outgrown = false;
    const { sizes } = this.space.columns;
    const grown = new Set<number>();
    const fits = sizes.every((size, column) => {
      if (this.layout.holds(column, size)) return true;
      grown.add(column);
      return this.layout.place(column, size);
    });
    if (!fits) this.#layAnew();
    else this.#renew(grown);
    return fits ? grown : undefined;
  }

  /** Bytes that remembered successors take. */
  get bytes(): number {
    let bytes = this.edges.byteLength;
    for (const { lists } of this.bundles) bytes += lists.bytes;
    for (const known of this.#known.values()) bytes += known.bytes;
    return bytes;
  }

  /**
   * Collects the successors of a state, except those of which {@link Arrivals} knows that they were seen before.
   *
   * @param record where in `records` is what is known of the state; -1: nothing.
   * @returns false when it has to be tried again; see {@link join}.
   */
  gather(state: Int32Array, records: Int32Array, record: number, batch: Batch): boolean {
    batch.clear();
    const { bundles, stride } = this;
    const words = stride - EDGE;
    const narrow = words === NARROW;
    const inherits = record >= 0 && !narrow;
    const a = state[0]!;
    const b = state[1]!;
    const arrival = record < 0 ? 0 : records[record]!;
    batch.bundles = bundles;
    if (batch.offsets.length < bundles.length) batch.offsets = new Int32Array(bundles.length);
    const { offsets } = batch;
    const disturbs = 1 << (arrival + UNIT_BITS); // shifts count modulo 32, so this is the arrival's unit
    let count = 0;
    let ordinal = 0;
    for (let g = 0; g < bundles.length; g++) {
      let offset = inherits ? records[record + 1 + g]! : 0;
      if (offset === 0) {
        const { lists } = bundles[g]!;
        offset = narrow ? lists.findNarrow(a, b) : lists.find(state, 0);
      }
      if (offset === 0) {
        offset = this.join(bundles[g]!, state);
        if (offset < 0) return false;
      }
      offsets[g] = offset;
      const { edges, header } = this;
      const own = edges[offset]!;
      batch.stutters += edges[offset + 1]!;
      batch.steady += edges[offset + 2]!;
      batch.reserve(count + own);
      const { words: to, marks, ordinals } = batch;
      let from = offset + header;
      for (let e = 0; e < own; e++, from += stride, ordinal++) {
        const mark = edges[from + 1]!;
        if ((arrival >>> (mark + UNIT_BITS) & 1) === 1 && (mark & disturbs) === 0) continue;
        if (narrow) {
          to[2 * count] = a + edges[from + EDGE]!;
          to[2 * count + 1] = b + edges[from + EDGE + 1]!;
        } else {
          for (let k = 0, at = count * words; k < words; k++) {
            to[at + k] = state[k]! + edges[from + EDGE + k]!;
          }
        }
        marks[count] = mark;
        ordinals[count++] = ordinal;
      }
    }
    batch.count = count;
    batch.generated = ordinal;
    return true;
  }

  /** The offset of a bundle's successors of this state, or -1 when all bundles have to be asked again: see {@link join}. */
  successors(bundle: Bundle, state: Int32Array): number {
    return bundle.lists.find(state, 0) || this.join(bundle, state);
  }

  /**
   * Joins what is known of a bundle's parts. As {@link successors}, for a state that the bundle has not met.
   *
   * @returns -1 when what was remembered of this or other bundles became void on the way. If {@link outgrown} says so, the layout has
   * to be made anew first.
   */
  join(bundle: Bundle, state: Int32Array): number {
    if (this.outgrown) return -1;
    if (this.#end > ARENA) return this.#again();
    const { space, cursor } = this;
    this.place(state, 0);
    const answers: number[] = [];
    const trail = new Set<number>();
    let fits = true;
    const read = new Set<number>();
    for (const known of bundle.parts) {
      let answer = known.find(space, cursor.values, trail);
      if (answer === 0) {
        const groups = space.groups.length;
        const before = new Set(known.decisions.columns);
        answer = known.ask(space, cursor);
        for (const column of cursor.reads) {
          trail.add(column);
          if (!before.has(column)) read.add(column);
        }
        fits &&= space.groups.length === groups && this.#holds(known, answer);
      }
      answers.push(answer);
    }
    if (!fits) {
      this.outgrown = true;
      return -1;
    }
    if (read.size > 0) {
      // What may disturb whom has changed: marks are void where these columns matter.
      this.#renew(read);
      return -1;
    }
    if (bundle.lists.count > TOO_MANY && bundle.last > bundle.first) return this.#takeApart(bundle);
    const start = this.#write(bundle, answers, trail);
    return bundle.lists.learn(state, 0, trail, start) ? start : this.#again();
  }

  /** Joins neighbouring bundles of which few different answers are known. Groups that came up later get bundles of their own. */
  rebundle(): void {
    const spans: [number, number][] = [];
    let size = Infinity;
    for (const { first, last, lists } of this.bundles) {
      const own = this.#apart.has(first) ? Infinity : Math.max(1, lists.count);
      if (size * own <= JOINED) {
        spans.at(-1)![1] = last;
        size *= own;
      } else {
        spans.push([first, last]);
        size = own;
      }
    }
    if (spans.length < this.bundles.length) this.#respan(spans);
  }

  /** Asks a predicate about a state, by plain code if need be. */
  ask(known: KnownPredicate, pool: Int32Array, at: number, trail: Set<number>): boolean {
    this.place(pool, at);
    return known.holds(this.space, this.cursor, trail);
  }

  /** Puts the cursor on a packed state. */
  place(pool: Int32Array, at: number): void {
    this.cursor.place(
      (values) => this.layout.unpack(pool, at, values),
      this.space.columns.count,
    );
  }

  // ---- internals -----------------------------------------------------------------------------------------------

  #layAnew(): void {
    this.layout = new Layout(this.space.columns);
    this.stride = EDGE + this.layout.words;
    this.header = READS + this.layout.words;
    this.#bundle(this.bundles.map((b) => [b.first, b.last]));
  }

  /** Forgets the joined answers, because something has changed that they depend on. */
  #again(): number {
    this.#bundle(this.bundles.map((b) => [b.first, b.last]));
    return -1;
  }

  /** Takes the group with the most answers out of a bundle for good: together they have too many different ones. */
  #takeApart(bundle: Bundle): number {
    const { first, last } = bundle;
    const answers = new Array<number>(last - first + 1).fill(0);
    bundle.parts.forEach(({ decisions }, p) =>
      answers[bundle.groups[p]! - first]! += decisions.count
    );
    const culprit = first + answers.indexOf(Math.max(...answers));
    this.#apart.add(culprit);
    const spans: [number, number][] = [];
    for (const other of this.bundles) {
      if (other !== bundle) spans.push([other.first, other.last]);
      else {
        if (culprit > first) spans.push([first, culprit - 1]);
        spans.push([culprit, culprit]);
        if (culprit < last) spans.push([culprit + 1, last]);
      }
    }
    this.#respan(spans);
    return -1;
  }

  #bundle(spans: readonly (readonly [number, number])[]): void {
    this.#end = 1;
    const all = [...spans];
    for (let g = (spans.at(-1)?.[1] ?? -1) + 1; g < this.space.groups.length; g++) all.push([g, g]);
    this.bundles = all.map(([first, last]) => this.#newBundle(first, last));
    this.#index();
  }

  /** Puts groups together in another way. What is known of bundles that stay as they are stays known. */
  #respan(spans: readonly (readonly [number, number])[]): void {
    const old = new Map(this.bundles.map((b) => [`${b.first} ${b.last}`, b]));
    this.bundles = spans.map(([first, last]) => {
      const same = old.get(`${first} ${last}`);
      return same === undefined ? this.#newBundle(first, last) : { ...same };
    });
    this.#index();
  }

  /** Forgets the joined answers that have to do with some columns, and those that looked for components of which there are more now. */
  #renew(columns: ReadonlySet<number>): void {
    const more = this.#structure !== this.space.structure;
    const stale = ({ parts, first, last }: Bundle): boolean => {
      let count = 0;
      for (let g = first; g <= last; g++) count += this.space.groups[g]!.parts.length;
      return count !== parts.length ||
        parts.some(({ open, decisions }) => open && more || meet(columns, decisions.columns));
    };
    // New objects also where nothing changed: whoever remembers the old ones must not take them for these.
    this.bundles = this.bundles.map((b) => stale(b) ? this.#newBundle(b.first, b.last) : { ...b });
    const { length } = this.space.groups;
    for (let g = this.bundles.at(-1)!.last + 1; g < length; g++) {
      this.bundles.push(this.#newBundle(g, g));
    }
    this.#index();
  }

  #newBundle(first: number, last: number): Bundle {
    const parts: KnownPart[] = [];
    const groups: number[] = [];
    for (let g = first; g <= last; g++) {
      for (const part of this.space.groups[g]!.parts) {
        parts.push(this.#knownOf(part, Math.min(g, UNITS - 1)));
        groups.push(g);
      }
    }
    const units = parts.reduce((bits, { unit }) => bits | 1 << (unit + UNIT_BITS), 0);
    return { first, last, parts, groups, units, lists: new PackedDecisions(this.layout) };
  }

  #index(): void {
    this.#structure = this.space.structure;
    this.#readers = [];
    for (const { parts } of this.bundles) {
      for (const { unit, decisions } of parts) {
        for (const c of decisions.columns) {
          this.#readers[c] = (this.#readers[c] ?? 0) | 1 << (unit + UNIT_BITS);
        }
      }
    }
  }

  #knownOf(part: Part, unit: number): KnownPart {
    let known = this.#known.get(part);
    if (known === undefined) this.#known.set(part, known = new KnownPart(part, unit));
    return known;
  }

  /** Whether the layout has room for every value that an answer brings. */
  #holds({ answers }: KnownPart, answer: number): boolean {
    const { columns } = this.space;
    let at = answer + ANSWER.successors;
    for (let i = answers[answer + ANSWER.count]!; i > 0; i--) {
      at++;
      for (let n = answers[at++]!; n > 0; n--, at += 3) {
        const column = answers[at]!;
        if (!this.layout.holds(column, columns.rankOf(column, answers[at + 2]!) + 1)) return false;
      }
    }
    return true;
  }

  /** Writes the joined list of a bundle's successors in packed form. */
  #write(bundle: Bundle, found: readonly number[], trail: Iterable<number>): number {
    const { layout, stride, header } = this;
    const start = this.#end;
    let to = start + header;
    let count = 0;
    let stutters = 0;
    let steady = 0;
    for (let p = 0; p < found.length; p++) {
      const { answers, unit } = bundle.parts[p]!;
      const answer = found[p]!;
      const own = answers[answer + ANSWER.count]!;
      count += own;
      stutters += answers[answer + ANSWER.stutters]!;
      steady += answers[answer + ANSWER.steady]!;
      while (to + own * stride > this.edges.length) this.edges = doubled(this.edges);
      const { edges } = this;
      let at = answer + ANSWER.successors;
      for (let i = 0; i < own; i++, to += stride) {
        edges.fill(0, to, to + stride);
        edges[to] = answers[at++]!;
        let mark = unit;
        for (let n = answers[at++]!; n > 0; n--, at += 3) {
          const column = answers[at]!;
          mark |= this.#readers[column] ?? 0;
          layout.change(column, answers[at + 1]!, answers[at + 2]!, edges, to + EDGE);
        }
        edges[to + 1] = mark;
      }
    }
    if (count > 0xffff) {
      throw new ModelTooWideError(`model ${this.space.name}: a state with ${count} successors`);
    }
    while (start + header > this.edges.length) this.edges = doubled(this.edges);
    this.edges[start] = count;
    this.edges[start + 1] = stutters;
    this.edges[start + 2] = steady;
    this.edges.set(layout.mask(trail), start + READS);
    this.#end = to;
    return start;
  }
}

function meet(some: ReadonlySet<number>, others: ReadonlySet<number>): boolean {
  for (const one of some) if (others.has(one)) return true;
  return false;
}
