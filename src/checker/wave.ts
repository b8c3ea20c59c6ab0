/** Successors on their way into a table: those of a few neighbouring states at a time, so that memory is waited for once for all. */

/** So many units can be told apart; the groups beyond are one. */
export const UNITS = 27;
/** Bits of a mark that number its unit; the others say, unit by unit, what the successor may disturb. */
export const UNIT_BITS = 5;
const UNIT = (1 << UNIT_BITS) - 1;

/** The unit of a mark. */
export const unitOf = (mark: number): number => mark & UNIT;

/** What a wave knows of each of its states: where its successors end, and counts. */
export const STATE = { end: 0, generated: 1, stutters: 2, steady: 3, size: 4 } as const;

export class Wave {
  /** Words a state. */
  readonly width: number;
  /** States that were gathered. */
  size = 0;
  /** For each state the numbers that {@link STATE} names: successors in all, steps that changed nothing, steps that are no faults. */
  readonly states: Int32Array;
  /** The bundles that were asked, and for each state where each one's list of successors is in the expander's edges. */
  bundles: readonly unknown[] = [];
  lists: Int32Array = new Int32Array(0);
  /** Successors that have to be looked up. */
  count = 0;
  /** How many successors there is room for. */
  room = 64;
  /** The successors, packed, one after another. */
  words: Int32Array;
  /** The mark of each: its unit, and what it may disturb. */
  marks: Int32Array;
  /** Which of its state's successors each is. */
  ordinals: Int32Array;
  /** The table's hash of each, and later where it belongs in the table. */
  hashes: Int32Array;
  /** Where those end that {@link StateTable.sift} left. */
  left = 0;

  constructor(width: number, states: number) {
    this.width = width;
    this.states = new Int32Array(STATE.size * states);
    this.words = new Int32Array(width * this.room);
    this.marks = new Int32Array(this.room);
    this.ordinals = new Int32Array(this.room);
    this.hashes = new Int32Array(this.room);
  }

  /** Begins anew. */
  clear(bundles: readonly unknown[]): void {
    this.size = 0;
    this.count = 0;
    this.bundles = bundles;
    const lists = this.states.length / STATE.size * bundles.length;
    if (this.lists.length < lists) this.lists = new Int32Array(lists);
  }

  /** Where the successors of a state begin. */
  begin(state: number): number {
    return state === 0 ? 0 : this.states[STATE.size * (state - 1) + STATE.end]!;
  }

  /** Makes room for so many successors in all. */
  reserve(count: number): void {
    if (count <= this.room) return;
    while (this.room < count) this.room *= 2;
    const grown = (old: Int32Array, length: number): Int32Array => {
      const wider = new Int32Array(length);
      wider.set(old);
      return wider;
    };
    this.words = grown(this.words, this.width * this.room);
    this.marks = grown(this.marks, this.room);
    this.ordinals = grown(this.ordinals, this.room);
    this.hashes = grown(this.hashes, this.room);
  }
}
