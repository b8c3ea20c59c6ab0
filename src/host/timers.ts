/** The armed timers of a system, on one timer of the runtime. */
import type { InstanceId } from "../kernel/mod.ts";
import type { Clock, SteadyTime } from "./clock.ts";

export interface ArmedTimer {
  readonly to: InstanceId;
  readonly timer: string;
  readonly generation: number;
  readonly dueAt: number;
}

/** Runtimes fire at once when asked for a longer delay. */
const LONGEST_MS = 2 ** 31 - 1;

export class Timers {
  readonly #clock: Clock;
  readonly #time: SteadyTime;
  readonly #fire: (timer: ArmedTimer) => void;
  /** A binary heap by due time, then by generation. Disarmed ones stay in it until their time comes. */
  readonly #heap: ArmedTimer[] = [];
  readonly #armed = new Map<number, ArmedTimer>();
  #handle: unknown;
  #wakeAt = Infinity;
  #running = false;

  constructor(clock: Clock, time: SteadyTime, fire: (timer: ArmedTimer) => void) {
    this.#clock = clock;
    this.#time = time;
    this.#fire = fire;
  }

  arm(timer: ArmedTimer): void {
    this.#armed.set(timer.generation, timer);
    this.#push(timer);
    this.#schedule();
  }

  disarm(generation: number): void {
    this.#armed.delete(generation);
    if (this.#heap.length > 64 && this.#heap.length > 4 * this.#armed.size) this.#tidy();
  }

  /** How many are armed. */
  get size(): number {
    return this.#armed.size;
  }

  /** How many should have fired by now. */
  overdue(): number {
    const now = this.#time.now();
    return [...this.#armed.values()].filter((t) => t.dueAt <= now).length;
  }

  /** From now on timers fire, those that are overdue at once; until now they were only kept. */
  start(): void {
    this.#running = true;
    this.#wake();
  }

  stop(): void {
    this.#running = false;
    if (this.#handle !== undefined) this.#clock.clearTimeout(this.#handle);
    this.#handle = undefined;
    this.#wakeAt = Infinity;
  }

  #schedule(): void {
    if (!this.#running) return;
    const next = this.#next();
    if (next === undefined || next.dueAt >= this.#wakeAt) return;
    if (this.#handle !== undefined) this.#clock.clearTimeout(this.#handle);
    this.#wakeAt = next.dueAt;
    const delay = Math.min(LONGEST_MS, Math.max(0, next.dueAt - this.#time.now()));
    this.#handle = this.#clock.setTimeout(() => this.#wake(), delay);
  }

  #wake(): void {
    this.#handle = undefined;
    this.#wakeAt = Infinity;
    const now = this.#time.now();
    for (let next; (next = this.#next()) !== undefined && next.dueAt <= now;) {
      this.#pop();
      this.#armed.delete(next.generation);
      this.#fire(next);
    }
    this.#schedule();
  }

  /** The next armed timer; disarmed ones on the way are dropped. */
  #next(): ArmedTimer | undefined {
    while (this.#heap.length > 0 && this.#armed.get(this.#heap[0]!.generation) !== this.#heap[0]) {
      this.#pop();
    }
    return this.#heap[0];
  }

  #tidy(): void {
    this.#heap.length = 0;
    for (const timer of this.#armed.values()) this.#push(timer);
  }

  #push(timer: ArmedTimer): void {
    const heap = this.#heap;
    let i = heap.push(timer) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!before(timer, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
  }
}

const before = (a: ArmedTimer, b: ArmedTimer): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.generation < b.generation);
