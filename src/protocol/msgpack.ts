/**
 * The strict MessagePack codec of this room.
 *
 * Writing goes through `@msgpack/msgpack`, after a check that refuses what it would change silently (`Map`,
 * `undefined`, integers beyond 64 bits, lone surrogates) and with {@link Float} for members that are floats by
 * declaration: a bare number must be an integer, because `3.0` in place of `3` kills a real engine.
 * Reading is `msgpack-reader.ts`.
 */
import { Encoder, ExtData } from "@msgpack/msgpack";

/** A number that is a float on the wire even when it is whole, such as `kv_cache_usage` 0.0. */
export class Float {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

/** An extension value, carried as it is. */
export class Ext {
  readonly type: number;
  readonly data: Uint8Array;
  constructor(type: number, data: Uint8Array) {
    this.type = type;
    this.data = data;
  }
}

/** A map whose keys are not all text, or whose order matters although its keys look like numbers. */
export class Entries {
  readonly entries: readonly (readonly [Encodable, Encodable])[];
  constructor(entries: readonly (readonly [Encodable, Encodable])[]) {
    this.entries = entries;
  }
}

/** What {@link encode} takes. Members of objects are written in their order. */
export type Encodable =
  | null
  | boolean
  | number
  | bigint
  | string
  | Float
  | Ext
  | Entries
  | Uint8Array
  | readonly Encodable[]
  | { readonly [key: string]: Encodable };

/** Thrown by {@link encode}: the caller's value has no faithful encoding. */
export class UnencodableError extends TypeError {
  override readonly name = "UnencodableError";
  readonly code = "unencodable";
  readonly at: string;
  constructor(at: string, why: string) {
    super(`cannot encode ${at === "" ? "the value" : at}: ${why}`);
    this.at = at;
  }
}

/** Deeper values are refused when writing, as they are when reading. */
export const MAX_DEPTH = 64;
const MIN_INT64 = -(2n ** 63n);
const MAX_UINT64 = 2n ** 64n - 1n;

const library = new Encoder({ maxDepth: MAX_DEPTH + 2 });

/**
 * The MessagePack bytes of `value`: text as *str*, integers in their shortest form, {@link Float} as float 64.
 * Throws {@link UnencodableError} rather than writing something else.
 */
export function encode(value: Encodable): Uint8Array {
  if (isPlain(value, "", 0)) return library.encode(value);
  const writer = new Writer();
  writer.value(value);
  return writer.bytes();
}

/** Checks a value; true when the library can write it in one go (no float, extension or bigint inside). */
function isPlain(value: Encodable, at: string, depth: number): boolean {
  switch (typeof value) {
    case "boolean":
      return true;
    case "string":
      if (/\p{Surrogate}/u.test(value)) throw new UnencodableError(at, "a lone surrogate in text");
      return true;
    case "number":
      if (!Number.isSafeInteger(value)) {
        throw new UnencodableError(
          at,
          `${value} is not a safe integer (floats are \`new Float(n)\`, 64-bit integers are bigint)`,
        );
      }
      return !Object.is(value, -0);
    case "bigint":
      if (value < MIN_INT64 || value > MAX_UINT64) {
        throw new UnencodableError(at, `${value} needs more than 64 bits`);
      }
      return false;
    case "object":
      break;
    default:
      throw new UnencodableError(at, `${typeof value} has no encoding`);
  }
  if (value === null || value instanceof Uint8Array) return true;
  if (value instanceof Float) return false;
  if (value instanceof Ext) {
    if (!Number.isInteger(value.type) || value.type < -128 || value.type > 127) {
      throw new UnencodableError(at, `${value.type} is not an extension type`);
    }
    return false;
  }
  if (depth >= MAX_DEPTH) throw new UnencodableError(at, `nested deeper than ${MAX_DEPTH}`);
  let simple = true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      simple = isPlain(value[i] as Encodable, `${at}[${i}]`, depth + 1) && simple;
    }
    return simple;
  }
  if (value instanceof Entries) {
    for (const [key, member] of value.entries) {
      isPlain(key, `${at}{key}`, depth + 1);
      isPlain(member, `${at}{value}`, depth + 1);
    }
    return false;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new UnencodableError(
      at,
      `a ${prototype.constructor?.name ?? "class"} is not a plain map`,
    );
  }
  for (const [key, member] of Object.entries(value)) {
    isPlain(key, `${at}.${key}`, depth + 1);
    if (key === "__proto__") simple = false; // the library refuses this key, the wire does not
    simple = isPlain(member, at === "" ? key : `${at}.${key}`, depth + 1) && simple;
  }
  return simple;
}

/** Writes what the library cannot say: floats that are whole, 64-bit integers beside small ones, maps with any keys. */
class Writer {
  #bytes = new Uint8Array(512);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  bytes(): Uint8Array {
    return this.#bytes.slice(0, this.#at);
  }

  value(value: Encodable): void {
    if (typeof value === "number" || typeof value === "bigint") this.#integer(value);
    else if (value === null || typeof value !== "object" || isLeaf(value)) this.#leaf(value);
    else if (value instanceof Float) this.#float(value.value);
    else if (value instanceof Entries) {
      this.#header(value.entries.length, 0x80, 0xde);
      for (const [key, member] of value.entries) {
        this.value(key);
        this.value(member);
      }
    } else if (Array.isArray(value)) {
      this.#header(value.length, 0x90, 0xdc);
      for (const item of value) this.value(item);
    } else {
      const entries = Object.entries(value);
      this.#header(entries.length, 0x80, 0xde);
      for (const [key, member] of entries) {
        this.#leaf(key);
        this.value(member);
      }
    }
  }

  #integer(value: number | bigint): void {
    if (value >= 0 && value < 0x80) this.#byte(Number(value));
    else if (Number.isSafeInteger(Number(value))) this.#put(library.encodeSharedRef(Number(value)));
    else {
      this.#room(9);
      this.#view.setUint8(this.#at, value > 0 ? 0xcf : 0xd3);
      this.#view.setBigUint64(this.#at + 1, BigInt.asUintN(64, BigInt(value)));
      this.#at += 9;
    }
  }

  #float(value: number): void {
    this.#room(9);
    this.#view.setUint8(this.#at, 0xcb);
    this.#view.setFloat64(this.#at + 1, value);
    this.#at += 9;
  }

  /** Text, binary, an extension, nil, a boolean: as the library writes them. */
  #leaf(value: null | boolean | string | Uint8Array | Ext): void {
    const known = value instanceof Ext ? new ExtData(value.type, value.data) : value;
    this.#put(library.encodeSharedRef(known));
  }

  #header(length: number, fix: number, wide: number): void {
    this.#room(5);
    if (length < 16) return this.#byte(fix | length);
    const [size, op] = length < 0x10000 ? [2, wide] : [4, wide + 1];
    this.#byte(op!);
    if (size === 2) this.#view.setUint16(this.#at, length);
    else this.#view.setUint32(this.#at, length);
    this.#at += size!;
  }

  #byte(byte: number): void {
    this.#room(1);
    this.#bytes[this.#at++] = byte;
  }

  #put(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  #room(more: number): void {
    if (this.#at + more <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(2 * this.#bytes.length, this.#at + more));
    grown.set(this.#bytes);
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

const isLeaf = (value: object): value is Uint8Array | Ext =>
  value instanceof Uint8Array || value instanceof Ext;
