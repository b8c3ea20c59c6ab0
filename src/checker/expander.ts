/**
 * The successors of packed states, from memory wherever the plain code has answered the same question before.
 *
 * There are two levels. What each part (one channel to one instance, one instance's own doings, one kind of fault) answered is remembered
 * by what it read ({@link KnownPart}). Neighbouring groups of parts are bundled, and the bundles' joined answers are remembered again
 * in packed form, so that a state costs a few look-ups however many processes there are.
 */
import { type Field, Layout } from "./layout.ts";
import { ANSWER, KnownPart, type KnownPredicate } from "./memory.ts";
import { PackedDecisions } from "./packed-decisions.ts";
import { Cursor, type Part, type Space } from "./space.ts";
import { SuccessorLists } from "./successor-lists.ts";
import { UNIT_BITS, UNITS } from "./wave.ts";

/** Bundles are joined while their joined answers are likely to be fewer than this. */
const JOINED = 1 << 11;
/** A bundle that has more answers after all is taken apart again. */
const TOO_MANY = 1 << 11;

/** Neighbouring groups, looked up together. */
export interface Bundle {
  first: number;
  last: number;
  parts: KnownPart[];
  /** The group of each part. */
  groups: number[];
  /** The units of its groups, as bits of a mark. */
  units: number;
  /** Where the successors of a state are among the {@link Expander.lists}. */
  decisions: PackedDecisions;
  /** Each list, and where the answers of the parts are that it was made of. */
  known: { readonly start: number; readonly found: readonly number[] }[];
}

export class Expander {
  readonly space: Space;
  readonly cursor: Cursor = new Cursor();
  layout: Layout;
  lists: SuccessorLists;
  /** Another array whenever what was remembered of some bundle became void. */
  bundles: readonly Bundle[] = [];
  /** The bundle of each unit; -1 when several have to do with it. */
  readonly bundleOf: Int32Array = new Int32Array(UNITS);
  /** Whether a value came up for which the layout has no room, or a group that belongs to no bundle. */
  outgrown = false;
  #structure = 0;
  #known = new Map<Part, KnownPart>();
  /** Groups that were joined with others, in vain. */
  readonly #apart = new Set<number>();
  /** Which units read each column, as bits of a mark. */
  #readers: number[] = [];

  constructor(space: Space) {
    this.space = space;
    this.layout = new Layout(space.columns);
    this.lists = new SuccessorLists(this.layout);
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
   * @param anew whether to lay everything out anew in any case.
   * @returns where columns were given room, or undefined when everything was laid out anew: packed states have to be repacked.
   */
  relayout(anew: boolean): readonly Field[] | undefined {
    this.outgrown = false;
    const placed: Field[] = [];
    const fits = !anew && this.space.columns.sizes.every((size, column) => {
      if (this.layout.holds(column, size)) return true;
      const before = this.layout.fieldsOf(column).length;
      if (!this.layout.place(column, size)) return false;
      placed.push(...this.layout.fieldsOf(column).slice(before));
      return true;
    });
    if (!fits) {
      this.#layAnew();
      return undefined;
    }
    // All states that were seen have zeros there, so that what is known of them stays true.
    for (const { parts, decisions, known } of this.bundles) {
      const read = placed.filter((f) => parts.some((p) => p.decisions.columns.has(f.column)));
      if (read.length === 0) continue;
      decisions.guard(read);
      const mask = this.layout.mask(read.map((f) => f.column));
      for (const { start } of known) this.lists.depend(start, mask);
    }
    this.#renew();
    return placed;
  }

  /** Bytes that remembered successors take. */
  get bytes(): number {
    let bytes = this.lists.bytes;
    for (const { decisions } of this.bundles) bytes += decisions.bytes;
    for (const known of this.#known.values()) bytes += known.bytes;
    return bytes;
  }

  /**
   * Where a bundle's successors are of a state that it has not met: joins what is known of its parts.
   *
   * @returns -1 when what was remembered of this or other bundles became void on the way. If {@link outgrown} says so, the layout has
   * to be made anew first.
   */
  join(bundle: Bundle, pool: Int32Array, at: number): number {
    if (this.outgrown) return -1;
    if (this.lists.full) return this.#again();
    const { space, cursor } = this;
    const { parts, decisions } = bundle;
    this.place(pool, at);
    const found: number[] = [];
    const reads = new Set<number>();
    for (const known of parts) {
      let answer = known.find(space, cursor.values, reads);
      if (answer === 0) {
        const groups = space.groups.length;
        answer = known.ask(space, cursor);
        for (const column of cursor.reads) reads.add(column);
        if (space.groups.length !== groups || !this.#holds(known, answer)) this.outgrown = true;
        this.#note(known, cursor.reads);
      }
      found.push(answer);
    }
    if (this.outgrown) return -1;
    if (this.#structure !== space.structure) return this.#renew();
    if (decisions.count > TOO_MANY && bundle.last > bundle.first) return this.#takeApart(bundle);
    const list = decisions.learn(pool, at, reads, () => {
      const start = this.lists.write(parts, found, reads, this.#readers);
      bundle.known.push({ start, found });
      return start;
    });
    return list === 0 ? this.#again() : list;
  }

  /** Joins neighbouring bundles of which few different answers are known. Groups that came up later get bundles of their own. */
  rebundle(): void {
    const spans: [number, number][] = [];
    let size = Infinity;
    for (const { first, last, decisions } of this.bundles) {
      const own = this.#apart.has(first) ? Infinity : Math.max(1, decisions.count);
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
    this.#again();
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
    this.lists = new SuccessorLists(this.layout);
    const all = [...spans];
    for (let g = (spans.at(-1)?.[1] ?? -1) + 1; g < this.space.groups.length; g++) all.push([g, g]);
    this.bundles = all.map(([first, last]) => this.#newBundle(first, last));
    this.#index();
  }

  /** Puts groups together in another way. What is known of bundles that stay as they are stays known. */
  #respan(spans: readonly (readonly [number, number])[]): void {
    const old = new Map(this.bundles.map((b) => [`${b.first} ${b.last}`, b]));
    this.bundles = spans.map(([first, last]) => {
      return old.get(`${first} ${last}`) ?? this.#newBundle(first, last);
    });
    this.#index();
  }

  /** Forgets the joined answers of bundles that have more parts now, or that looked for components of which there are more now. */
  #renew(): number {
    const more = this.#structure !== this.space.structure;
    const stale = ({ parts, first, last }: Bundle): boolean => {
      let count = 0;
      for (let g = first; g <= last; g++) count += this.space.groups[g]!.parts.length;
      return count !== parts.length || parts.some(({ open }) => open && more);
    };
    const all = this.bundles.map((b) => stale(b) ? this.#newBundle(b.first, b.last) : b);
    const { length } = this.space.groups;
    for (let g = all.at(-1)!.last + 1; g < length; g++) all.push(this.#newBundle(g, g));
    if (all.length > this.bundles.length || all.some((b, g) => b !== this.bundles[g])) {
      this.bundles = all;
    }
    this.#index();
    return -1;
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
    const decisions = new PackedDecisions(this.layout);
    return { first, last, parts, groups, units, decisions, known: [] };
  }

  #index(): void {
    this.#structure = this.space.structure;
    this.#readers = [];
    this.bundleOf.fill(-1);
    for (const [g, { parts }] of this.bundles.entries()) {
      for (const { unit, decisions } of parts) {
        this.bundleOf[unit] = unit === UNITS - 1 ? -1 : g;
        for (const c of decisions.columns) {
          this.#readers[c] = (this.#readers[c] ?? 0) | 1 << (unit + UNIT_BITS);
        }
      }
    }
  }

  /** Notes what a part has read. Successors that change it may disturb the part's unit: those that are known are marked so. */
  #note({ unit }: KnownPart, reads: readonly number[]): void {
    const bit = 1 << (unit + UNIT_BITS);
    const fresh: number[] = [];
    for (const number of reads) {
      const column = this.space.columns.columnOf(number);
      const readers = this.#readers[column] ?? 0;
      if ((readers & bit) !== 0) continue;
      this.#readers[column] = readers | bit;
      fresh.push(column);
    }
    if (fresh.length === 0) return;
    for (const { parts, known } of this.bundles) {
      if (!parts.some(({ changes }) => fresh.some((column) => changes.has(column)))) continue;
      for (const { start, found } of known) this.lists.mark(start, parts, found, this.#readers);
    }
  }

  #knownOf(part: Part, unit: number): KnownPart {
    let known = this.#known.get(part);
    if (known === undefined) {
      this.#known.set(part, known = new KnownPart(part, unit, this.space.columns));
    }
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
}
