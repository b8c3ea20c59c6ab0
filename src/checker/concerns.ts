/**
 * Which questions may have another answer in a state than in its parent: read off the bits that differ, a byte at a time, instead of
 * question by question.
 */
import type { Question } from "./judge.ts";

/** So many questions have a bit of a number; whoever has more asks the others each. */
export const BITS = 32;

export class Concerns {
  /** For each byte of a state and each value of its changed bits: the questions that depend on one of them, a bit each. */
  #table: Int32Array = new Int32Array(0);
  /** Questions of which nothing can be said. */
  #always = 0;
  #stale = true;

  /** What questions depend on has changed. */
  void(): void {
    this.#stale = true;
  }

  /** The questions that may have another answer in the state that begins there than in this one. */
  of(
    questions: readonly Question[],
    pool: Int32Array,
    at: number,
    parent: Int32Array,
  ): number {
    if (this.#stale) this.#tabulate(questions, parent.length);
    const table = this.#table;
    let concerned = this.#always;
    for (let k = 0; k < parent.length; k++) {
      const changed = pool[at + k]! ^ parent[k]!;
      if (changed === 0) continue;
      const row = k << 10;
      concerned |= table[row | changed & 255]! | table[row | 256 | changed >>> 8 & 255]! |
        table[row | 512 | changed >>> 16 & 255]! | table[row | 768 | changed >>> 24]!;
    }
    return concerned;
  }

  #tabulate(questions: readonly Question[], words: number): void {
    this.#stale = false;
    this.#always = 0;
    const table = this.#table = new Int32Array(words << 10);
    questions.slice(0, BITS).forEach(({ mask, open }, q) => {
      if (open) this.#always |= 1 << q;
      for (let byte = 0; byte < 4 * words; byte++) {
        const ones = mask[byte >> 2]! >>> 8 * (byte & 3) & 255;
        for (let value = 1; value < 256; value++) {
          if ((value & ones) !== 0) table[byte << 8 | value]! |= 1 << q;
        }
      }
    });
  }
}
