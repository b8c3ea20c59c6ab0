/** Judges states by the claims that are still open. */
import type { Concerns } from "./concerns.ts";
import type { Expander } from "./expander.ts";
import { type Field, type Layout, NARROW } from "./layout.ts";
import { KnownPredicate } from "./memory.ts";
import { PackedDecisions } from "./packed-decisions.ts";
import type { Predicate } from "./space.ts";

/** A claim that the search itself can judge state by state. */
export interface Claim extends Predicate {
  /** `always`: must hold in every state. `sometimes`: must hold in at least one. */
  readonly kind: "always" | "sometimes";
}

const FALSE = 1;
const TRUE = 2;

/** A predicate with its answers for packed states. */
export class Question {
  readonly predicate: Predicate;
  readonly #known: KnownPredicate;
  #answers: PackedDecisions;
  /** Ones where the components are that were ever read. */
  #mask: Int32Array;
  #columns = 0;

  readonly #concerns: Concerns | undefined;

  /** @param concerns is told when the answers depend on other components than before. */
  constructor(predicate: Predicate, layout: Layout, concerns?: Concerns) {
    this.predicate = predicate;
    this.#concerns = concerns;
    this.#known = new KnownPredicate(predicate, layout.columns);
    this.#answers = new PackedDecisions(layout);
    this.#mask = new Int32Array(layout.words);
  }

  get bytes(): number {
    return this.#answers.bytes + this.#known.decisions.bytes;
  }

  /** Whether the state that begins there satisfies it. */
  holds(expander: Expander, pool: Int32Array, at: number): boolean {
    const answer = this.#mask.length === NARROW
      ? this.#answers.findNarrow(pool[at]!, pool[at + 1]!)
      : this.#answers.find(pool, at);
    return answer === 0 ? this.#ask(expander, pool, at) : answer === TRUE;
  }

  /** Apart from {@link holds}, which is called for every state and should be small. */
  #ask(expander: Expander, pool: Int32Array, at: number): boolean {
    const trail = new Set<number>();
    const { open } = this;
    const holds = expander.ask(this.#known, pool, at, trail);
    const known = holds ? TRUE : FALSE;
    if (this.#answers.learn(pool, at, trail, () => known) !== known) this.refit(expander);
    const { columns } = this.#known.decisions;
    if (columns.size !== this.#columns || this.open !== open) {
      this.#columns = columns.size;
      this.#mask = expander.layout.mask(columns);
      this.#concerns?.void();
    }
    return holds;
  }

  /** Ones where the components are that its answers depend on, as far as is known. */
  get mask(): Int32Array {
    return this.#mask;
  }

  /** Whether they may depend on components that are not there yet. */
  get open(): boolean {
    return this.#known.open;
  }

  /**
   * States are packed in another way, or new components have come.
   *
   * @param placed where columns were given room, if all else is packed as before.
   */
  refit({ layout }: Expander, placed?: readonly Field[]): void {
    const { decisions: { columns }, open } = this.#known;
    if (placed === undefined || open) this.#answers = new PackedDecisions(layout);
    else {
      const read = placed.filter((field) => columns.has(field.column));
      if (read.length === 0) return;
      this.#answers.guard(read);
    }
    this.#mask = layout.mask(columns);
    this.#concerns?.void();
  }
}

/** Places for what was found quiet. */
const PLACES = 1 << 13;

/**
 * For states of two words: those about which no question had anything to report, by what matters of them. One look instead of one for
 * each question.
 */
export class Quiet {
  #known: Int32Array = new Int32Array(0);
  #first = 0;
  #second = 0;

  /** Begins anew for these questions. */
  reset(questions: readonly Question[]): void {
    this.#known = new Int32Array(questions.some((q) => q.mask.length !== NARROW) ? 0 : 3 * PLACES);
    this.#first = 0;
    this.#second = 0;
  }

  knows(a: number, b: number): boolean {
    const at = this.#place(a, b);
    const known = this.#known;
    return known[at + 2] === 1 && known[at] === (a & this.#first) &&
      known[at + 1] === (b & this.#second);
  }

  note(a: number, b: number, questions: readonly Question[]): void {
    if (this.#known.length === 0) return;
    let first = 0;
    let second = 0;
    for (const { mask } of questions) {
      first |= mask[0]!;
      second |= mask[1]!;
    }
    if (first !== this.#first || second !== this.#second) {
      this.#first = first;
      this.#second = second;
      this.#known.fill(0);
    }
    const at = this.#place(a, b);
    this.#known[at] = a & first;
    this.#known[at + 1] = b & second;
    this.#known[at + 2] = 1;
  }

  #place(a: number, b: number): number {
    let h = Math.imul(a & this.#first ^ 0x9e3779b9, 0x85ebca6b);
    h = Math.imul(h ^ h >>> 15 ^ b & this.#second, 0xc2b2ae35);
    return 3 * ((h ^ h >>> 15) & (PLACES - 1));
  }
}
