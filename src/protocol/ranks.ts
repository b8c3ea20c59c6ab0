/**
 * Three numbers that look alike and must not be mixed up.
 *
 * A `WireRank` is what an engine is called on the wire (its identity, `engine_index`); an `ActiveIndex` is a
 * position among the ranks that serve now (a row of the load table); a `LocalRank` is a position on one host
 * (which devices an engine takes).
 */
declare const kind: unique symbol;
type Branded<K extends string> = number & { readonly [kind]: K };

export type WireRank = Branded<"WireRank">;
export type ActiveIndex = Branded<"ActiveIndex">;
export type LocalRank = Branded<"LocalRank">;

/** The largest rank that two bytes of identity can name. */
export const MAX_RANK = 0xffff;

/** True for a whole number from 0 to {@link MAX_RANK}. */
export const isRank = (n: unknown): n is number =>
  typeof n === "number" && Number.isInteger(n) && n >= 0 && n <= MAX_RANK;

const checked = (n: number, what: string): number => {
  if (!isRank(n)) throw new RangeError(`${what} must be a whole number from 0 to 65535, not ${n}`);
  return n;
};

/** A data-parallel rank as the wire knows it; a `RangeError` when two bytes cannot name it. */
export const wireRank = (n: number): WireRank => checked(n, "a rank") as WireRank;
/** A position among the ranks that serve. */
export const activeIndex = (n: number): ActiveIndex => checked(n, "an active index") as ActiveIndex;
/** A position among the ranks of one host. */
export const localRank = (n: number): LocalRank => checked(n, "a local rank") as LocalRank;
