/** Exhaustive search: breadth-first (shortest counterexamples) or depth-first, within bounds, over exactly stored states. */
import { Arrivals } from "./arrivals.ts";
import { BITS, Concerns } from "./concerns.ts";
import { Expander } from "./expander.ts";
import { gather } from "./gather.ts";
import { type Claim, Question, Quiet } from "./judge.ts";
import { FingerprintTable } from "./fingerprint-table.ts";
import { NARROW } from "./layout.ts";
import { NarrowTable } from "./narrow-table.ts";
import type { Predicate, Space } from "./space.ts";
import { StateTable } from "./state-table.ts";
import { EDGE } from "./successor-lists.ts";
import { STATE, Wave } from "./wave.ts";

/** Fewer states than these are packed anew without much ado. */
const FEW = 1 << 17;
/** So many states are looked ahead, so that memory is waited for once for all of them. */
const AHEAD = 64;

export interface SearchOptions {
  readonly order?: "breadth-first" | "depth-first";
  /** Stop after so many distinct states. */
  readonly states?: number;
  /** Do not look beyond so many steps. */
  readonly depth?: number;
  /** Go on after a violation, to find the first of every claim (default false). */
  readonly all?: boolean;
  /** States for which this is false are counted, but not left. */
  readonly within?: Predicate;
  /** Where a run may come to rest: a state without successors (faults aside) elsewhere is a violation named `rest`. */
  readonly rest?: Predicate;
  /** Tells whether no state of the same orbit was seen before. Asked once for each state that is new as such. */
  readonly orbit?: (values: Int32Array, columns: number) => boolean;
  /** Told five times a second. What it answers is done: go on with {@link Search.run} later, or stop here for a reason. */
  readonly onProgress?: (progress: Progress) => void | "pause" | StopReason;
  /** Keep fingerprints of states that were left instead of the states. Breadth-first only, without orbits. */
  readonly fingerprints?: boolean;
  /** Look up every successor, also those that are known to have been seen (default false). For tests of the search itself. */
  readonly plain?: boolean;
}

/** Why somebody outside ends a search before its end. */
export type StopReason = "interrupted" | "memory";

/** How far a search is. */
export interface Progress {
  readonly states: number;
  readonly generated: number;
  readonly depth: number;
  readonly frontier: number;
  readonly seconds: number;
}

/** A state at which a claim failed (or, for a witness, held). */
export interface Finding {
  readonly claim: string;
  readonly state: number;
}

function tableFor(words: number, options: SearchOptions, capacity?: number): StateTable {
  if (options.fingerprints === true) return new FingerprintTable(words);
  return words === NARROW ? new NarrowTable(capacity) : new StateTable(words, capacity);
}

/** Where states are kept by fingerprint only, a new layout cannot be given to those that were left: the search has to begin again. */
export class LayoutOutgrown extends Error {}

export class Search {
  readonly space: Space;
  readonly expander: Expander;
  table: StateTable;
  generated = 0;
  /** Steps that changed nothing, such as a poll that saw nothing new. */
  stutters = 0;
  depth = 0;
  seconds = 0;
  /** States that were found, but not left, because of a bound. */
  frontier = 0;
  /** Which bound stopped the search, if any did. */
  stoppedBy: "states" | "depth" | "within" | StopReason | undefined;
  /** Whether {@link run} was left before its end, to be called again. */
  paused = false;
  readonly violations: Finding[] = [];
  readonly witnesses: Finding[] = [];

  readonly #options: SearchOptions;
  readonly #claims: readonly Claim[];
  #watched: Question[] = [];
  readonly #quiet = new Quiet();
  readonly #concerns = new Concerns();
  readonly #within: Question | undefined;
  readonly #rest: Question | undefined;
  readonly #failed = new Set<string>();
  readonly #witnessed = new Set<string>();
  #depths: Uint16Array | undefined;
  #levelEnd = 1;
  #state: Int32Array;
  /** What was gathered ahead, and the state with which it begins. */
  #wave: Wave;
  #first = 0;
  readonly #ahead: number;
  readonly #arrivals: Arrivals | undefined;
  #stop = false;
  #next = 0;
  #rebundleAt = 1024;
  readonly #stack: number[] = [0];

  constructor(space: Space, claims: readonly Claim[], options: SearchOptions = {}) {
    this.space = space;
    this.#claims = [...claims];
    this.#options = options;
    this.expander = new Expander(space);
    const initial = this.expander.initial();
    const { words } = this.expander.layout;
    this.table = tableFor(words, options);
    this.#state = new Int32Array(words);
    this.#watch();
    const { within, rest, order, orbit, plain } = options;
    this.#ahead = order === "depth-first" || within !== undefined ? 1 : AHEAD;
    this.#wave = new Wave(words, this.#ahead);
    if (within !== undefined) this.#within = new Question(within, this.expander.layout);
    if (rest !== undefined) this.#rest = new Question(rest, this.expander.layout);
    if (order === "depth-first") this.#depths = new Uint16Array(1 << 12);
    // What a state's arrival says holds where every state that was found is also left, in order.
    else if (within === undefined && orbit === undefined && plain !== true) {
      this.#arrivals = new Arrivals();
    }
    this.table.add(initial, -1, 0);
    orbit?.(this.#valuesOf(initial), space.columns.count);
    this.#judge(0, undefined);
  }

  /** Runs to the end, to a bound, to the first violation, or until it is told to pause. */
  run(): this {
    const began = performance.now();
    let told = began;
    const lifo = this.#options.order === "depth-first";
    const stack = this.#stack;
    const limit = this.#options.states ?? Infinity;
    let rebundleAt = this.#rebundleAt;
    this.paused = false;
    for (let next = this.#next; !this.#stop; next++) {
      let index = next;
      if (lifo) {
        const top = stack.pop();
        if (top === undefined) break;
        index = top;
        this.depth = Math.max(this.depth, this.#depths![index]!);
      } else {
        if (index >= this.table.count) break;
        if (index === this.#levelEnd) {
          this.depth++;
          this.#levelEnd = this.table.count;
        }
      }
      if (this.table.count > limit) {
        this.stoppedBy = "states";
        this.frontier += lifo ? stack.length + 1 : this.table.count - index;
        break;
      }
      const depth = lifo ? this.#depths![index]! : this.depth;
      if (depth >= (this.#options.depth ?? Infinity)) {
        this.stoppedBy ??= "depth";
        this.frontier++;
        continue;
      }
      if (next === rebundleAt) {
        this.#tidy();
        rebundleAt *= 8;
      }
      const first = this.table.count;
      this.#expand(index);
      if (this.#stop) this.frontier += lifo ? stack.length : this.table.count - index - 1;
      if (lifo) {
        for (let i = this.table.count - 1; i >= first; i--) {
          this.#deepen(i, depth + 1);
          stack.push(i);
        }
      }
      if ((next & 1023) === 0 && this.#options.onProgress !== undefined) {
        const now = performance.now();
        if (now - told > 200) {
          told = now;
          const left = lifo ? stack.length : this.table.count - next - 1;
          const answer = this.#options.onProgress({
            states: this.table.count,
            generated: this.generated,
            depth: this.depth,
            frontier: left,
            seconds: this.seconds + (now - began) / 1000,
          });
          if (answer === "pause") {
            this.paused = true;
            this.#next = next + 1;
            this.#rebundleAt = rebundleAt;
            break;
          } else if (answer !== undefined && left > 0 && !this.#stop) {
            this.stoppedBy = answer;
            this.frontier += left;
            break;
          }
        }
      }
    }
    this.seconds += (performance.now() - began) / 1000;
    return this;
  }

  /** Bytes that the search's own tables take. */
  get bytes(): number {
    return this.table.bytes + this.expander.bytes + (this.#arrivals?.bytes ?? 0) +
      this.#watched.reduce((sum, question) => sum + question.bytes, 0);
  }

  /** Calls back for every successor of a stored state that is stored too. For graph algorithms after the search. */
  forEachEdge(
    index: number,
    visit: (action: number, target: number, ordinal: number) => void,
  ): void {
    const { expander, table } = this;
    const { words } = table;
    const state = table.pool.slice(index * words, (index + 1) * words);
    const wave = this.#wave;
    while (gather(expander, state, 0, 1, undefined, 0, wave) === 0) {
      if (expander.outgrown) throw new Error("a finished search met a value that it does not know");
    }
    const { edges, header, stride } = expander.lists;
    // The visitor may ask for the edges of other states.
    const lists = expander.bundles.map(({ decisions }) => decisions.find(state, 0));
    const target = new Int32Array(words);
    let ordinal = 0;
    for (const list of lists) {
      const count = edges[list]!;
      const places: number[] = [];
      for (let e = 0, at = list + header; e < count; e++, at += stride) {
        places[edges[at + EDGE.ordinal]!] = at;
      }
      for (const at of places) {
        for (let k = 0; k < words; k++) target[k] = state[k]! + edges[at + EDGE.adds + k]!;
        visit(edges[at + EDGE.action]!, table.find(target), ordinal++);
      }
    }
  }

  /** The components of a stored state. */
  values(index: number): Int32Array {
    const words = this.table.words;
    return this.#valuesOf(this.table.pool.slice(index * words, (index + 1) * words));
  }

  /** How a stored state was reached: which successor to take at each step from the initial state. */
  path(index: number): number[] {
    const ordinals: number[] = [];
    for (let i = index; this.table.parent[i]! >= 0; i = this.table.parent[i]!) {
      ordinals.push(this.table.ordinal[i]!);
    }
    return ordinals.reverse();
  }

  // ---- one state -----------------------------------------------------------------------------------------------

  #expand(index: number): void {
    const k = this.#gather(index);
    if (k < 0) return;
    const wave = this.#wave;
    const { table } = this;
    const about = STATE.size * k;
    this.generated += wave.states[about + STATE.generated]!;
    this.stutters += wave.states[about + STATE.stutters]!;
    const from = wave.begin(k);
    const to = wave.states[about]!;
    if (this.#options.orbit !== undefined) this.#meetOrbits(index, from, to, this.#options.orbit);
    else if (from < to) {
      const fresh = table.sift(wave, from, to);
      if (fresh !== 0) {
        const first = table.count;
        table.settle(wave, from, index);
        this.#arrivals?.note(this.expander, table, first, wave, from, index, k, fresh);
        if (this.#watched.length > 0) {
          const state = this.#load(index);
          for (let i = first; i < table.count && !this.#stop; i++) this.#judge(i, state);
        }
      }
    }
    if (
      wave.states[about + STATE.steady] === 0 && this.#rest !== undefined &&
      !this.#failed.has("rest")
    ) {
      if (!this.#rest.holds(this.expander, this.#load(index), 0)) this.#violated("rest", index);
    }
  }

  /** Sees to it that the successors of a state are gathered: which state of the wave it is, or -1 when it is not to be left. */
  #gather(index: number): number {
    const wave = this.#wave;
    if (this.#ahead > 1 && index - this.#first < wave.size) return index - this.#first;
    if (this.#within?.holds(this.expander, this.#load(index), 0) === false) {
      this.stoppedBy ??= "within";
      this.frontier++;
      return -1;
    }
    const end = this.#ahead === 1 ? index + 1 : Math.min(index + this.#ahead, this.#levelEnd);
    this.#first = index;
    const { pool, base, words } = this.table;
    const at = (index - base) * words;
    if (gather(this.expander, pool, at, end - index, this.#arrivals, index, wave) === 0) {
      if (this.expander.outgrown) this.#relayout();
      return this.#gather(index);
    }
    // All at once, so that the processor waits for many places in memory at the same time.
    this.table.touch(wave);
    return 0;
  }

  /** Copies a state out of the table. Valid until the next call. */
  #load(index: number): Int32Array {
    const { pool, base } = this.table;
    const state = this.#state;
    for (let k = 0, at = (index - base) * state.length; k < state.length; k++) {
      state[k] = pool[at + k]!;
    }
    return state;
  }

  #meetOrbits(
    parent: number,
    from: number,
    to: number,
    isNew: NonNullable<SearchOptions["orbit"]>,
  ): void {
    const { table } = this;
    const { words, ordinals } = this.#wave;
    const state = this.#load(parent);
    for (let i = from; i < to; i++) {
      const next = words.slice(i * table.words, (i + 1) * table.words);
      if (table.find(next) >= 0) continue;
      if (!isNew(this.#valuesOf(next), this.space.columns.count)) continue;
      this.#judge(~table.add(next, parent, ordinals[i]!), state);
    }
  }

  #judge(index: number, parent: Int32Array | undefined): void {
    const { pool, words, base } = this.table;
    const at = (index - base) * words;
    const narrow = words === NARROW;
    if (narrow && this.#quiet.knows(pool[at]!, pool[at + 1]!)) return;
    let quiet = narrow;
    let concerned = parent === undefined ? -1 : this.#concerns.of(this.#watched, pool, at, parent);
    for (let w = 0; w < this.#watched.length; w++) {
      if (w < BITS && (concerned >>> w & 1) === 0) continue;
      const question = this.#watched[w]!;
      const holds = question.holds(this.expander, pool, at);
      const { kind, name } = question.predicate as Claim;
      if (kind === "always" ? holds : !holds) continue;
      quiet = false;
      if (kind === "always") this.#violated(name, index);
      else {
        this.#witnessed.add(name);
        this.witnesses.push({ claim: name, state: index });
        this.#watch();
      }
      // Fewer are watched now, under other numbers.
      concerned = -1;
      w = -1;
    }
    if (quiet) this.#quiet.note(pool[at]!, pool[at + 1]!, this.#watched);
  }

  #violated(claim: string, state: number): void {
    this.#failed.add(claim);
    this.violations.push({ claim, state });
    if (this.#options.all !== true) this.#stop = true;
    this.#watch();
  }

  // ---- upkeep --------------------------------------------------------------------------------------------------

  /** Watches the claims that are still open. */
  #watch(): void {
    const open = this.#claims.filter((c) =>
      c.kind === "always" ? !this.#failed.has(c.name) : !this.#witnessed.has(c.name)
    );
    const kept = new Map(this.#watched.map((q) => [q.predicate, q]));
    this.#watched = open.map((c) =>
      kept.get(c) ?? new Question(c, this.expander.layout, this.#concerns)
    );
    this.#concerns.void();
    this.#quiet.reset(this.#watched);
  }

  /** Now that more is known: fewer bundles, and values in one place, while there are few states to be packed anew. */
  #tidy(): void {
    this.expander.rebundle();
    const few = this.table.count < FEW && this.#options.fingerprints !== true;
    if (few && this.expander.layout.scattered) this.#relayout(true);
  }

  #relayout(anew = false): void {
    const { expander } = this;
    const old = expander.layout;
    const placed = expander.relayout(anew);
    for (const question of [...this.#watched, this.#within, this.#rest]) {
      question?.refit(expander, placed);
    }
    this.#quiet.reset(this.#watched);
    this.#wave.size = 0;
    if (placed !== undefined) return;
    if (this.#options.fingerprints === true) throw new LayoutOutgrown();
    const values = new Int32Array(this.space.columns.count);
    const { pool, parent, ordinal, count, words } = this.table;
    const now = expander.layout.words;
    this.table = tableFor(now, this.#options, parent.length);
    this.#state = new Int32Array(now);
    this.#wave = new Wave(now, this.#ahead);
    for (let i = 0; i < count; i++) {
      old.unpack(pool, i * words, values);
      expander.layout.pack(values, this.#state);
      this.table.add(this.#state, parent[i]!, ordinal[i]!);
    }
  }

  #valuesOf(state: Int32Array): Int32Array {
    const values = new Int32Array(this.space.columns.count);
    this.expander.layout.unpack(state, 0, values);
    return values;
  }

  #deepen(index: number, depth: number): void {
    if (index >= this.#depths!.length) {
      const wider = new Uint16Array(2 * this.#depths!.length);
      wider.set(this.#depths!);
      this.#depths = wider;
    }
    this.#depths![index] = depth;
  }
}
