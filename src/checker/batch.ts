/** Successors on their way into a table. */

/** So many units can be told apart; the groups beyond are one. */
export const UNITS = 27;
/** Bits of a mark that number its unit; the others say, unit by unit, what the successor may disturb. */
export const UNIT_BITS = 5;
const UNIT = (1 << UNIT_BITS) - 1;

/** The unit of a mark. */
export const unitOf = (mark: number): number => mark & UNIT;

/** The successors of one state. */
export class Batch {
  /** How many there are. */
  count = 0;
  /** The successors, packed, one after another. */
  words: Int32Array;
  /** The mark of each: its unit, and what it may disturb. */
  marks: Int32Array;
  /** Which of the state's successors each is. */
  ordinals: Int32Array;
  /** The table's hash of each. */
  hashes: Int32Array;
  /** How many successors the state has, those that were left out included. */
  generated = 0;
  /** The bundles that were asked, and where each one's list of successors is in the expander's edges. */
  bundles: readonly unknown[] = [];
  offsets: Int32Array = new Int32Array(0);
  /** Steps that changed nothing. */
  stutters = 0;
  /** Successors by steps that are no faults. */
  steady = 0;
  readonly width: number;
  #room = 64;

  constructor(width: number) {
    this.width = width;
    this.words = new Int32Array(width * this.#room);
    this.marks = new Int32Array(this.#room);
    this.ordinals = new Int32Array(this.#room);
    this.hashes = new Int32Array(this.#room);
  }

  clear(): void {
    this.count = 0;
    this.generated = 0;
    this.stutters = 0;
    this.steady = 0;
  }

  /** Makes room for so many in all. */
  reserve(count: number): void {
    if (count <= this.#room) return;
    while (this.#room < count) this.#room *= 2;
    const grown = (old: Int32Array, length: number): Int32Array => {
      const wider = new Int32Array(length);
      wider.set(old);
      return wider;
    };
    this.words = grown(this.words, this.width * this.#room);
    this.marks = grown(this.marks, this.#room);
    this.ordinals = grown(this.ordinals, this.#room);
    this.hashes = grown(this.hashes, this.#room);
  }
}
