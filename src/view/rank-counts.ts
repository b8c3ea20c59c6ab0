import type { RankStatus } from "./status.ts";

/** Ranks by what the topology expects of them. */
export interface RankCounts {
  /** Those that serve, or should: neither on their way in nor on their way out. */
  readonly expected: number;
  /** Of them: how many are ready. */
  readonly ready: number;
  readonly joining: number;
  readonly leaving: number;
}

/** How many ranks are expected and how many of them are ready. A rank that joins, leaves or has left is not expected. */
export function countRanks(ranks: readonly Pick<RankStatus, "state">[]): RankCounts {
  const counts = { expected: 0, ready: 0, joining: 0, leaving: 0 };
  for (const { state } of ranks) {
    if (state === "joining" || state === "leaving") counts[state]++;
    else if (state !== "left") counts.expected++;
    if (state === "ready") counts.ready++;
  }
  return counts;
}

/** `2/2 ready, 1 leaving`. */
export function countsText(ranks: readonly Pick<RankStatus, "state">[]): string {
  const { expected, ready, joining, leaving } = countRanks(ranks);
  return [
    `${ready}/${expected} ready`,
    ...(joining === 0 ? [] : [`${joining} joining`]),
    ...(leaving === 0 ? [] : [`${leaving} leaving`]),
  ].join(", ");
}
