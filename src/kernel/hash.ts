/**
 * A 64-bit hash in two halves of 32 bits, as signed integers (which engines keep without an allocation). Not cryptographic: it finds
 * accidents, not forgeries.
 */
export interface Hash {
  readonly hi: number;
  readonly lo: number;
}

export const ZERO: Hash = { hi: 0, lo: 0 };

/** Hashes a text (its UTF-16 code units). */
export function hashText(text: string): Hash {
  let a = 0x9e3779b9 | 0;
  let b = 0x243f6a88 | 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    a = Math.imul(a ^ c, 0x85ebca6b);
    b = Math.imul(b ^ c, 0xc2b2ae35);
    a ^= a >>> 15;
    b ^= b >>> 13;
  }
  return finish(a, b);
}

/** One hash of two, in this order. */
export function mix(x: Hash, y: Hash): Hash {
  const a = Math.imul(x.lo ^ (y.hi >>> 7), 0x85ebca6b) ^ Math.imul(y.lo, 0x27d4eb2f);
  const b = Math.imul(x.hi ^ (y.lo >>> 11), 0xc2b2ae35) ^ Math.imul(y.hi, 0x165667b1);
  return finish(a, b);
}

/** Adds a member to the hash of a set. */
export const include = (set: Hash, member: Hash): Hash => ({
  hi: (set.hi + member.hi) | 0,
  lo: (set.lo + member.lo) | 0,
});

/** Takes a member out of the hash of a set. */
export const exclude = (set: Hash, member: Hash): Hash => ({
  hi: (set.hi - member.hi) | 0,
  lo: (set.lo - member.lo) | 0,
});

/** As 16 hex digits. */
export const hex = ({ hi, lo }: Hash): string => hex32(hi) + hex32(lo);

const BYTES: readonly string[] = Array.from(
  { length: 256 },
  (_, i) => i.toString(16).padStart(2, "0"),
);

/** 32 bits as 8 hex digits. */
export const hex32 = (n: number): string =>
  BYTES[n >>> 24]! + BYTES[(n >>> 16) & 255]! + BYTES[(n >>> 8) & 255]! + BYTES[n & 255]!;

function finish(a: number, b: number): Hash {
  a = Math.imul(a ^ (a >>> 16), 0x7feb352d) ^ Math.imul(b ^ (b >>> 15), 0x846ca68b);
  b = Math.imul(b ^ (b >>> 16), 0x9e3779b1) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae3d);
  return { hi: b ^ (b >>> 16), lo: a ^ (a >>> 15) };
}
