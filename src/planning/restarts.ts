/**
 * Whether a launched process that ended by itself is started again: pure, so that a machine can own the decision and a search can explore it.
 * A launch restarts with all its ranks. Time is not asked: a launch that ran for long enough is given its whole budget again by a timer.
 */
export interface RestartPolicy {
  /** Restarts of one launch in a row. 0: none. The next end is a failure, and the run's own choice is what happens then: stop all, or hold. */
  readonly budget: number;
  /** After running for so long without an end, its earlier restarts are forgotten. */
  readonly calmMs: number;
  /** The wait before the first restart in a row; each further one waits `factor` times as long, up to `maxMs`. */
  readonly backOff: { readonly firstMs: number; readonly factor: number; readonly maxMs: number };
}

/** Nothing is restarted: a cluster that cannot form up is told so at once. */
export const NO_RESTARTS: RestartPolicy = {
  budget: 0,
  calmMs: 10 * 60_000,
  backOff: { firstMs: 1000, factor: 2, maxMs: 60_000 },
};

/** May a launch that was restarted `restarts` times in a row be started again? */
export const mayRestart = (policy: RestartPolicy, restarts: number): boolean =>
  restarts < policy.budget;

/** How long it waits before restart number `restarts + 1` in a row, in milliseconds. */
export function backOffMs({ backOff }: RestartPolicy, restarts: number): number {
  return Math.min(backOff.maxMs, Math.round(backOff.firstMs * backOff.factor ** restarts));
}
