import { byteString } from "./bytes.ts";
import type { KeyCache } from "./key-cache.ts";
import type { ByteString } from "./messages.ts";

const SMALLEST = 256;

/** Where leftovers are kept. Drivers pass one that makes a `Buffer`, which turns into text faster. */
export type Allocate = (size: number) => Uint8Array;

/**
 * Bytes that arrived and were not yet taken. A chunk is read where it lies; only what is left of it when the reader
 * has to wait is copied, into a buffer that grows by doubling with what really arrived, never with what was announced.
 */
export class Incoming {
  #bytes: Uint8Array = EMPTY;
  #at = 0;
  #end = 0;
  #own = true;
  #before = 0;
  readonly #allocate: Allocate;

  constructor(allocate: Allocate = (size) => new Uint8Array(size)) {
    this.#allocate = allocate;
  }

  /** Bytes that arrived and were not taken. */
  get available(): number {
    return this.#end - this.#at;
  }

  /** Bytes taken since the start of the connection. */
  get offset(): number {
    return this.#before + this.#at;
  }

  /** Adds a chunk. It is not copied unless something is left over: `settle` before the caller reuses it. */
  push(chunk: Uint8Array): void {
    if (this.#at === this.#end) {
      this.#before += this.#at;
      this.#bytes = chunk;
      this.#at = 0;
      this.#end = chunk.length;
      this.#own = false;
      return;
    }
    this.#reserve(chunk.length);
    this.#bytes.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  /** Keeps what is left in memory of its own, and lets go of everything else. */
  settle(): void {
    if (this.#at === this.#end) {
      this.#before += this.#at;
      this.#bytes = EMPTY;
      this.#at = this.#end = 0;
      this.#own = true;
    } else if (!this.#own) this.#reserve(0);
  }

  /** The next byte, without taking it. Ask `available` first; so for the readers below. */
  peek(ahead: number = 0): number {
    return this.#bytes[this.#at + ahead]!;
  }

  u8(): number {
    return this.#bytes[this.#at++]!;
  }

  u32(): number {
    const b = this.#bytes;
    const at = this.#at;
    this.#at += 4;
    return (b[at]! | b[at + 1]! << 8 | b[at + 2]! << 16 | b[at + 3]! << 24) >>> 0;
  }

  /** A u64 as a number: exact below 2^53, and still above every limit where it is not exact. */
  u64(): number {
    const low = this.u32();
    return this.u32() * 0x1_0000_0000 + low;
  }

  /** An i64 in decimal. */
  i64(): string {
    const low = this.u32();
    const high = this.u32() | 0;
    // Below 2^53 in size a number is exact, and much faster than a bigint.
    if (high >= -0x20_0000 && high < 0x20_0000) return String(high * 0x1_0000_0000 + low);
    return ((BigInt(high) << 32n) + BigInt(low)).toString();
  }

  text(length: number): ByteString {
    const start = this.#at;
    this.#at += length;
    return byteString(this.#bytes, start, this.#at);
  }

  /** A key, from the cache if it was read before. */
  key(length: number, cache: KeyCache): ByteString {
    const start = this.#at;
    this.#at += length;
    return cache.read(this.#bytes, start, this.#at);
  }

  /**
   * A whole key with its length before it, if all of it is there and it is at most `limit` bytes: the usual case in one
   * step. Otherwise nothing is taken, and the length is to be read for itself.
   */
  wholeKey(limit: number, cache: KeyCache): ByteString | undefined {
    const b = this.#bytes;
    const at = this.#at;
    const start = at + 8;
    if (start > this.#end) return undefined;
    const length = b[at]! | b[at + 1]! << 8;
    const above = b[at + 2]! | b[at + 3]! | b[at + 4]! | b[at + 5]! | b[at + 6]! | b[at + 7]!;
    if (above !== 0 || length > limit || start + length > this.#end) return undefined;
    this.#at = start + length;
    return cache.read(b, start, this.#at);
  }

  #reserve(more: number): void {
    const held = this.#end - this.#at;
    if (this.#own && this.#end + more <= this.#bytes.length) return;
    let target = this.#bytes;
    if (!this.#own || held + more > target.length) {
      let size = this.#own ? Math.max(SMALLEST, target.length) : SMALLEST;
      while (size < held + more) size *= 2;
      target = this.#allocate(size);
      target.set(this.#bytes.subarray(this.#at, this.#end));
    } else target.copyWithin(0, this.#at, this.#end);
    this.#before += this.#at;
    this.#bytes = target;
    this.#at = 0;
    this.#end = held;
    this.#own = true;
  }
}

const EMPTY = new Uint8Array(0);
