/**
 * A 64-bit hash in two halves of 32 bits, as signed integers (which engines keep without an allocation). Not cryptographic: it finds
 * accidents, not forgeries.
 */
export interface Hash {
  readonly hi: number;
  readonly lo: number;
}

export const ZERO: Hash = { hi: 0, lo: 0 };

/** Hashes a text (its UTF-16 code units) that comes in pieces, so that nobody need put it together. */
export class TextHash {
  #a = 0;
  #b = 0;

  /** The first piece; what was not ended is forgotten. */
  begin(piece: string): this {
    this.#a = 0x9e3779b9 | 0;
    this.#b = 0x243f6a88 | 0;
    return this.add(piece);
  }

  /** The next piece. */
  add(piece: string): this {
    let a = this.#a;
    let b = this.#b;
    for (let i = 0; i < piece.length; i++) {
      const c = piece.charCodeAt(i);
      a = Math.imul(a ^ c, 0x85ebca6b);
      b = Math.imul(b ^ c, 0xc2b2ae35);
      a ^= a >>> 15;
      b ^= b >>> 13;
    }
    this.#a = a;
    this.#b = b;
    return this;
  }

  /** The hash of all pieces. */
  end(): Hash {
    return finish(this.#a, this.#b);
  }
}

const whole = new TextHash();

/** Hashes a text. */
export const hashText = (text: string): Hash => whole.begin(text).end();

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
