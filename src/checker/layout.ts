/**
 * Where each component of a global state sits in its packed words.
 *
 * Every column gets as many bits as its known values need, and some get room to grow. A column that comes up later, or that outgrows its
 * bits, is given more where bits are still free, so that packed states can stay as they are; only when none are free does the search
 * lay everything out anew. So a state is exact and about as small as a hand-packed one, whatever the model.
 */
import type { Aspect, Columns } from "./columns.ts";

/** States of so many words (64 bits) or fewer take the fast path; none is kept smaller. */
export const NARROW = 2;

const bitsFor = (size: number): number => (size <= 1 ? 0 : 32 - Math.clz32(size - 1));

/** Neighbouring bits of a state that hold some digits of a column's value (of its number among the column's values). */
export interface Field {
  readonly column: number;
  readonly word: number;
  readonly shift: number;
  readonly bits: number;
  /** As many ones. */
  readonly ones: number;
  /** How many lower digits of the column are elsewhere. */
  readonly low: number;
  /** The field in pieces that have few values each. */
  readonly pieces: readonly Piece[];
}

/** Some bits of a word. */
export interface Piece {
  readonly word: number;
  readonly shift: number;
  /** As many ones as there are bits. */
  readonly ones: number;
}

/** Bits of a piece, at most. */
const PIECE = 6;

const NOWHERE: readonly Field[] = [];

export class Layout {
  /** Words a state. */
  readonly words: number;
  readonly columns: Columns;
  /** The fields of each column, lowest digits first. */
  readonly #fields: Field[][] = [];
  readonly #all: Field[] = [];
  /** How many bits each column has. */
  readonly #bits: number[];
  /** Bits used in each word. */
  readonly #used: number[];

  constructor(columns: Columns) {
    this.columns = columns;
    const bits = columns.sizes.map(bitsFor);
    const tight = arrange(bits).used.length;
    // A state of more than the fewest words is given one more, so that it need not be laid out anew so often.
    this.words = tight <= NARROW ? NARROW : tight + 1;
    widen(bits, this.words);
    const { word, shift, used } = arrange(bits);
    this.#bits = bits.map(() => 0);
    this.#used = Array.from({ length: this.words }, (_, k) => used[k] ?? 0);
    bits.forEach((b, c) => {
      if (b > 0) this.#add(c, word[c]!, shift[c]!, b);
    });
  }

  /** Whether the digits of some column are in several places. */
  get scattered(): boolean {
    return this.#fields.some((fields) => fields.length > 1);
  }

  /** Whether the column has room for so many values. */
  holds(column: number, size: number): boolean {
    return bitsFor(size) <= (this.#bits[column] ?? 0);
  }

  /** Gives a column room for so many values where bits are still free. Packed states stay as they are. False when there are too few. */
  place(column: number, size: number): boolean {
    let missing = bitsFor(size) - (this.#bits[column] ?? 0);
    // Room to grow, unless it is a flag.
    const spare = this.#used.reduce((sum, used) => sum + 32 - used, 0) - missing;
    if (size > 2) missing += Math.max(0, Math.min(4, spare >> 3));
    while (missing > 0) {
      // Whole if possible, and else as much as there is in one place.
      const k = this.#used.findIndex((used) => used + missing <= 32);
      const word = k >= 0 ? k : this.#used.findIndex((used) => used < 32);
      if (word < 0) return false;
      const bits = Math.min(missing, 32 - this.#used[word]!);
      this.#add(column, word, this.#used[word]!, bits);
      this.#used[word]! += bits;
      missing -= bits;
    }
    return true;
  }

  /** Where a column sits, or the one that an aspect is of. */
  fieldsOf(number: number): readonly Field[] {
    return this.#fields[this.columns.columnOf(number)] ?? NOWHERE;
  }

  /** What an aspect of a packed state is. */
  look({ column, of }: Aspect, words: Int32Array, at: number): number {
    let rank = 0;
    for (const { word, shift, ones, low } of this.fieldsOf(column)) {
      rank |= (words[at + word]! >>> shift & ones) << low;
    }
    return of(this.columns.valueAt(column, rank));
  }

  /** Packs one value a column. */
  pack(values: ArrayLike<number>, into: Int32Array, at = 0): void {
    into.fill(0, at, at + this.words);
    for (const { column, word, shift, ones, low } of this.#all) {
      const value = values[column]!;
      if (value === 0) continue;
      into[at + word]! |= (this.columns.rankOf(column, value) >>> low & ones) << shift;
    }
  }

  /** Adds the change of a column to packed words: what is added to a state to change it. */
  change(column: number, before: number, after: number, into: Int32Array, at: number): void {
    const was = this.columns.rankOf(column, before);
    const is = this.columns.rankOf(column, after);
    for (const { word, shift, ones, low } of this.fieldsOf(column)) {
      into[at + word]! += ((is >>> low & ones) - (was >>> low & ones)) << shift;
    }
  }

  /** Writes the columns that have a place; others are left as they are. */
  unpack(words: Int32Array, at: number, into: Int32Array): void {
    const all = this.#all;
    for (let i = 0; i < all.length; i++) {
      const { column, word, shift, ones, low } = all[i]!;
      const digits = words[at + word]! >>> shift & ones;
      into[column] = low === 0 ? digits : into[column]! | digits << low;
    }
    for (let i = 0; i < all.length; i++) {
      const { column, low } = all[i]!;
      if (low === 0 && into[column] !== 0) {
        into[column] = this.columns.valueAt(column, into[column]!);
      }
    }
  }

  /** Ones where the given columns are. */
  mask(columns: Iterable<number>): Int32Array {
    const mask = new Int32Array(this.words);
    for (const c of columns) {
      for (const { word, shift, ones } of this.fieldsOf(c)) mask[word]! |= ones << shift;
    }
    return mask;
  }

  #add(column: number, word: number, shift: number, bits: number): void {
    const low = this.#bits[column] ?? 0;
    const pieces: Piece[] = [];
    for (let at = shift; at < shift + bits; at += PIECE) {
      pieces.push({ word, shift: at, ones: (1 << Math.min(shift + bits - at, PIECE)) - 1 });
    }
    const field = { column, word, shift, bits, ones: 2 ** bits - 1 | 0, low, pieces };
    (this.#fields[column] ??= []).push(field);
    this.#all.push(field);
    this.#bits[column] = low + bits;
  }
}

/** Gives columns with many values room to grow, as long as half of what is free stays free for columns to come. */
function widen(bits: number[], words: number): void {
  let free = 32 * words - bits.reduce((sum, b) => sum + b, 0);
  const spare = free / 2;
  const growing = bits.map((_, c) => c).filter((c) => bits[c]! > 0)
    .sort((a, b) => bits[b]! - bits[a]!);
  for (const least of [4, 4, 2]) {
    for (const c of growing) {
      if (bits[c]! < least || bits[c]! > 24 || free <= spare) continue;
      bits[c]!++;
      if (arrange(bits).used.length > words) bits[c]!--;
      else free--;
    }
  }
}

/** First fit, widest first. */
function arrange(
  bits: readonly number[],
): { word: number[]; shift: number[]; used: number[] } {
  const word = bits.map(() => 0);
  const shift = bits.map(() => 0);
  const used: number[] = [];
  const order = bits.map((_, c) => c).filter((c) => bits[c]! > 0).sort((a, b) =>
    bits[b]! - bits[a]! || a - b
  );
  for (const c of order) {
    let k = used.findIndex((u) => u + bits[c]! <= 32);
    if (k < 0) k = used.push(0) - 1;
    word[c] = k;
    shift[c] = used[k]!;
    used[k] = used[k]! + bits[c]!;
  }
  return { word, shift, used };
}
