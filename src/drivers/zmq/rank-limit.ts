/**
 * How often one rank is listened to. An honest engine says two things during start-up, and a few more when it restarts; one
 * that says thousands would fill the journal, so that beyond a burst it is only counted.
 */
export class RankLimit {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #left = new Map<number, { tokens: number; at: number }>();

  constructor(burst = 20, perSecond = 5) {
    this.#burst = burst;
    this.#perSecond = perSecond;
  }

  /** Whether this message of the rank may pass. `nowMs` is a monotonic time. */
  allows(rank: number, nowMs: number = performance.now()): boolean {
    const known = this.#left.get(rank) ?? { tokens: this.#burst, at: nowMs };
    const refilled = known.tokens + (nowMs - known.at) / 1000 * this.#perSecond;
    const tokens = Math.min(this.#burst, refilled);
    const passes = tokens >= 1;
    this.#left.set(rank, { tokens: passes ? tokens - 1 : tokens, at: nowMs });
    return passes;
  }
}
