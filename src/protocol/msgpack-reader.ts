/**
 * Reads MessagePack as strictly as the peers' own decoder does.
 *
 * Written here and not left to a library because the distinctions matter on this wire: an integer is not a
 * float, text is not bytes and is valid UTF-8, nothing may follow the value, binary values are copies (a frame's
 * buffer is reused), lengths are checked before anything is allocated, and a refusal knows its byte.
 */
import { Ext, Float, MAX_DEPTH } from "./msgpack.ts";
import { Refused } from "./refusal.ts";

/** A decoded value. Integers are numbers while they are safe, else bigint; maps keep any key. */
export type Wire =
  | null
  | boolean
  | number
  | bigint
  | string
  | Float
  | Ext
  | Uint8Array
  | readonly Wire[]
  | WireMap;
export type WireMap = ReadonlyMap<Wire, Wire>;

/** How much a message may be. */
export type Limits = {
  /** Bytes of the whole frame. */
  readonly maxBytes: number;
  /** Arrays and maps inside each other. */
  readonly maxDepth: number;
};

/** Control messages are small; anything near this size is not one of ours. */
export const CONTROL_LIMITS: Limits = { maxBytes: 1 << 20, maxDepth: MAX_DEPTH };
/** Frames that also carry requests or tokens. */
export const DATA_LIMITS: Limits = { maxBytes: 1 << 28, maxDepth: MAX_DEPTH };

// `ignoreBOM` keeps a leading U+FEFF; without it the decoder would drop it silently.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** How many bytes follow an opcode of fixed size. */
const SKIP: { readonly [op: number]: number } = {
  0xca: 4,
  0xcb: 8,
  0xcc: 1,
  0xcd: 2,
  0xce: 4,
  0xcf: 8,
  0xd0: 1,
  0xd1: 2,
  0xd2: 4,
  0xd3: 8,
  0xd4: 2,
  0xd5: 3,
  0xd6: 5,
  0xd7: 9,
  0xd8: 17,
};

/** The one value that `bytes` hold. Throws `Refused`, so use it inside `decoded`. */
export function readAll(bytes: Uint8Array, limits: Limits = CONTROL_LIMITS): Wire {
  const reader = new Reader(bytes, limits);
  const value = reader.value();
  reader.end();
  return value;
}

/** A cursor over one frame. */
export class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #maxDepth: number;
  #at = 0;
  #depth = 0;

  constructor(bytes: Uint8Array, limits: Limits) {
    if (bytes.length > limits.maxBytes) {
      throw new Refused(
        "too-large",
        "",
        `at most ${limits.maxBytes} bytes`,
        `${bytes.length} bytes`,
      );
    }
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#maxDepth = limits.maxDepth;
  }

  /** Refuses bytes after the value. */
  end(): void {
    const left = this.#bytes.length - this.#at;
    if (left > 0) throw this.#malformed("the end of the message", `${left} more bytes`);
  }

  /** The length of the array that begins here, or nothing when something else does. */
  arrayLength(): number | undefined {
    const op = this.#bytes[this.#at];
    if (op === undefined) return undefined;
    if (op >= 0x90 && op <= 0x9f) {
      this.#at++;
      return this.#items(op & 0x0f, 1);
    }
    if (op === 0xdc || op === 0xdd) {
      this.#at++;
      return this.#items(op === 0xdc ? this.#u16() : this.#u32(), 1);
    }
    return undefined;
  }

  /**
   * The members of these keys of the map that begins here, in the order of the keys; the others are stepped over. Nothing
   * when something else begins here. A key that comes twice has its last value, as in {@link value}.
   */
  pick(keys: readonly Uint8Array[]): (Wire | undefined)[] | undefined {
    const op = this.#bytes[this.#at];
    if (op === undefined || !((op >= 0x80 && op <= 0x8f) || op === 0xde || op === 0xdf)) {
      return undefined;
    }
    this.#at++;
    const length = op <= 0x8f ? op & 0x0f : op === 0xde ? this.#u16() : this.#u32();
    this.#items(length, 2);
    this.#enter();
    const picked: (Wire | undefined)[] = new Array(keys.length);
    for (let i = 0; i < length; i++) {
      const key = this.#keyAmong(keys);
      if (key < 0) this.skip();
      else picked[key] = this.value();
    }
    this.#depth--;
    return picked;
  }

  /** Which of the keys comes next; -1 for another, or one in a longer form than need be. */
  #keyAmong(keys: readonly Uint8Array[]): number {
    const from = this.#at;
    this.skip();
    const length = this.#at - from - 1;
    if (this.#bytes[from] !== (0xa0 | length)) return -1;
    return keys.findIndex((key) => {
      if (key.length !== length) return false;
      for (let i = 0; i < length; i++) if (key[i] !== this.#bytes[from + 1 + i]) return false;
      return true;
    });
  }

  /** Steps over one value without building it; text inside is not validated. */
  skip(): void {
    const op = this.#byte();
    if (op < 0x80 || op >= 0xe0 || op === 0xc0 || op === 0xc2 || op === 0xc3) return;
    if (op < 0x90) return this.#skipItems(this.#items(2 * (op & 0x0f), 1));
    if (op < 0xa0) return this.#skipItems(this.#items(op & 0x0f, 1));
    if (op < 0xc0) return void this.#take(op & 0x1f);
    const fixed = SKIP[op];
    if (fixed !== undefined) return void this.#take(fixed);
    switch (op) {
      case 0xc4:
      case 0xd9:
        return void this.#take(this.#byte());
      case 0xc5:
      case 0xda:
        return void this.#take(this.#u16());
      case 0xc6:
      case 0xdb:
        return void this.#take(this.#u32());
      case 0xc7:
        return void this.#take(this.#byte() + 1);
      case 0xc8:
        return void this.#take(this.#u16() + 1);
      case 0xc9:
        return void this.#take(this.#u32() + 1);
      case 0xdc:
        return this.#skipItems(this.#items(this.#u16(), 1));
      case 0xdd:
        return this.#skipItems(this.#items(this.#u32(), 1));
      case 0xde:
        return this.#skipItems(this.#items(2 * this.#u16(), 1));
      case 0xdf:
        return this.#skipItems(this.#items(2 * this.#u32(), 1));
      default:
        this.#at--;
        throw this.#malformed("a MessagePack value", "the reserved opcode 0xc1");
    }
  }

  #skipItems(count: number): void {
    this.#enter();
    for (let i = 0; i < count; i++) this.skip();
    this.#depth--;
  }

  /** Reads one value. */
  value(): Wire {
    const op = this.#byte();
    if (op < 0x80) return op;
    if (op >= 0xe0) return op - 0x100;
    if (op < 0x90) return this.#map(op & 0x0f);
    if (op < 0xa0) return this.#array(op & 0x0f);
    if (op < 0xc0) return this.#text(op & 0x1f);
    switch (op) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc4:
        return this.#copy(this.#byte());
      case 0xc5:
        return this.#copy(this.#u16());
      case 0xc6:
        return this.#copy(this.#u32());
      case 0xc7:
        return this.#ext(this.#byte());
      case 0xc8:
        return this.#ext(this.#u16());
      case 0xc9:
        return this.#ext(this.#u32());
      case 0xca:
        return new Float(this.#view.getFloat32(this.#take(4)));
      case 0xcb:
        return new Float(this.#view.getFloat64(this.#take(8)));
      case 0xcc:
        return this.#byte();
      case 0xcd:
        return this.#u16();
      case 0xce:
        return this.#u32();
      case 0xcf:
        return safe(this.#view.getBigUint64(this.#take(8)));
      case 0xd0:
        return this.#view.getInt8(this.#take(1));
      case 0xd1:
        return this.#view.getInt16(this.#take(2));
      case 0xd2:
        return this.#view.getInt32(this.#take(4));
      case 0xd3:
        return safe(this.#view.getBigInt64(this.#take(8)));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return this.#ext(1 << (op - 0xd4));
      case 0xd9:
        return this.#text(this.#byte());
      case 0xda:
        return this.#text(this.#u16());
      case 0xdb:
        return this.#text(this.#u32());
      case 0xdc:
        return this.#array(this.#u16());
      case 0xdd:
        return this.#array(this.#u32());
      case 0xde:
        return this.#map(this.#u16());
      case 0xdf:
        return this.#map(this.#u32());
      default:
        this.#at--;
        throw this.#malformed("a MessagePack value", "the reserved opcode 0xc1");
    }
  }

  #array(length: number): Wire[] {
    this.#items(length, 1);
    this.#enter();
    const items: Wire[] = [];
    for (let i = 0; i < length; i++) items.push(this.value());
    this.#depth--;
    return items;
  }

  #map(length: number): WireMap {
    this.#items(length, 2);
    this.#enter();
    const map = new Map<Wire, Wire>();
    for (let i = 0; i < length; i++) map.set(this.value(), this.value());
    this.#depth--;
    return map;
  }

  #text(length: number): string {
    const from = this.#take(length);
    try {
      return utf8.decode(this.#bytes.subarray(from, from + length));
    } catch {
      this.#at = from;
      throw this.#malformed("text in UTF-8", "bytes that are not");
    }
  }

  #copy(length: number): Uint8Array {
    const from = this.#take(length);
    return Uint8Array.from(this.#bytes.subarray(from, from + length));
  }

  #ext(length: number): Ext {
    const type = this.#view.getInt8(this.#take(1));
    return new Ext(type, this.#copy(length));
  }

  #enter(): void {
    if (++this.#depth > this.#maxDepth) {
      throw new Refused(
        "too-large",
        `byte ${this.#at}`,
        `nesting of at most ${this.#maxDepth}`,
        "more",
      );
    }
  }

  /** Each item takes a byte at least, so a length beyond the frame's end is known before it is read. */
  #items(length: number, bytesEach: number): number {
    const left = this.#bytes.length - this.#at;
    if (length * bytesEach > left) {
      throw this.#malformed(`${length} items`, `a frame that ends after ${left} more bytes`);
    }
    return length;
  }

  #take(length: number): number {
    const from = this.#at;
    if (from + length > this.#bytes.length) {
      throw this.#malformed(`${length} more bytes`, "the end of the frame");
    }
    this.#at += length;
    return from;
  }

  #byte(): number {
    return this.#bytes[this.#take(1)]!;
  }
  #u16(): number {
    return this.#view.getUint16(this.#take(2));
  }
  #u32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  #malformed(expected: string, got: string): Refused {
    return new Refused("malformed", `byte ${this.#at}`, expected, got);
  }
}

const safe = (value: bigint): number | bigint =>
  value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
    ? Number(value)
    : value;
