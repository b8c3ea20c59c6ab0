import { performance } from "node:perf_hooks";

/** Where a host has its time from. A test gives one that it moves by hand. */
export interface Clock {
  /** Milliseconds since the epoch. May run back: the host sees to it that the journal's time does not. */
  now(): number;
  setTimeout(action: () => void, delayMs: number): unknown;
  clearTimeout(handle: unknown): void;
}

/** The wall clock at the start of the process, moved on by the monotonic clock: it takes no part in later adjustments. */
export const systemClock: Clock = {
  now: () => Math.floor(performance.timeOrigin + performance.now()),
  setTimeout: (action, delayMs) => setTimeout(action, delayMs),
  clearTimeout: (handle) => clearTimeout(handle as ReturnType<typeof setTimeout>),
};

/** A clock's time that never runs back, not even behind what the journal has seen. */
export class SteadyTime {
  readonly #clock: Clock;
  #ahead: number;
  #latest: number;

  /** @param atLeast the time of the last record: when the clock stands before it, time goes on from there. */
  constructor(clock: Clock, atLeast: number) {
    this.#clock = clock;
    this.#latest = atLeast;
    this.#ahead = Math.max(0, atLeast - clock.now());
  }

  now(): number {
    const now = this.#clock.now() + this.#ahead;
    // The clock was set back: time goes on from where it was, so that deadlines do not wait for it to catch up.
    if (now < this.#latest) this.#ahead += this.#latest - now;
    else this.#latest = now;
    return this.#latest;
  }
}
