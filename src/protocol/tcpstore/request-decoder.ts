import { StoreProtocolError } from "./errors.ts";
import { type Allocate, Incoming } from "./incoming.ts";
import type { KeyCache } from "./key-cache.ts";
import { REQUEST_LIMITS, type StoreLimits } from "./limits.ts";
import {
  type ByteString,
  type OperationLayout,
  OPERATIONS,
  type StoreRequest,
  VALIDATE_CODE,
  VALIDATE_MAGIC,
} from "./messages.ts";

const BY_CODE: readonly (OperationLayout | undefined)[] = OPERATIONS.reduce<
  (OperationLayout | undefined)[]
>((table, each) => {
  table[each.code] = each;
  return table;
}, []);

/**
 * Reads the requests of one connection from its bytes, in any fragmentation (tcpstore-wire, sections 3 and 7).
 * Work already done is never repeated, so bytes that come one at a time cost no more than bytes that come at once.
 *
 * ```ts
 * decoder.push(chunk);
 * for (let r = decoder.next(); r !== undefined; r = decoder.next()) serve(r);
 * ```
 * `next` throws `StoreProtocolError`; the connection is to be closed then, and nothing more can be read.
 */
export class RequestDecoder {
  readonly #in: Incoming;
  readonly #limits: StoreLimits;
  readonly #cache: KeyCache | undefined;
  #validated = false;
  #layout: OperationLayout | undefined;
  #started = 0;
  #step = 0;
  /** Texts still to read of a list, or -1 before its count. */
  #left = -1;
  /** Length of the text being read, or -1 before its length. */
  #length = -1;
  #lists: ByteString[] = [];
  #fields: (ByteString | number)[] = [];

  /** `cache` may be shared by the decoders of many connections. */
  constructor(limits: StoreLimits = REQUEST_LIMITS, allocate?: Allocate, cache?: KeyCache) {
    this.#limits = limits;
    this.#in = new Incoming(allocate);
    this.#cache = cache;
  }

  /** Whether the opening VALIDATE was read. */
  get validated(): boolean {
    return this.#validated;
  }

  /** Bytes that are kept for a request that is not complete, and for requests that were not asked for yet. */
  get held(): number {
    const begun = this.#layout === undefined ? 0 : this.#in.offset - this.#started;
    return begun + this.#in.available;
  }

  /** Whether a request, or VALIDATE, has begun and is not complete. */
  get incomplete(): boolean {
    return this.#layout !== undefined || this.#in.available > 0;
  }

  /** Adds bytes. They may be reused by the caller only after `next` has answered `undefined`. */
  push(chunk: Uint8Array): void {
    this.#in.push(chunk);
  }

  /** Takes care of bytes that stay unread for a while, when the caller stops before `undefined`. */
  settle(): void {
    this.#in.settle();
  }

  /** The next complete request, or `undefined` when more bytes are needed. */
  next(): StoreRequest | undefined {
    if (!this.#validated && !this.#validate()) return this.#more();
    if (this.#layout === undefined) {
      if (this.#in.available === 0) return this.#more();
      this.#begin();
    }
    const { operands } = this.#layout!;
    while (this.#step < operands.length) {
      if (!this.#read(operands[this.#step]!)) return this.#more();
      this.#step++;
    }
    return this.#complete();
  }

  #more(): undefined {
    this.#in.settle();
    return undefined;
  }

  #validate(): boolean {
    if (this.#in.available === 0) return false;
    const first = this.#in.peek();
    if (first !== VALIDATE_CODE) this.#stranger(first);
    if (this.#in.available < 5) return false;
    this.#in.u8();
    const magic = this.#in.u32();
    if (magic !== VALIDATE_MAGIC) {
      this.#fail(
        "wrong-magic",
        `VALIDATE with magic 0x${hex(magic, 8)}, expected 0x${
          hex(VALIDATE_MAGIC, 8)
        }: not a TCPStore client of this protocol`,
      );
    }
    this.#validated = true;
    return true;
  }

  #stranger(first: number): never {
    if (first === 0x16) {
      this.#fail("tls", "a TLS hello: a TCPStore speaks plain TCP, point TLS elsewhere");
    }
    if (first >= 0x41 && first <= 0x5a) {
      this.#fail("http", "looks like HTTP: this port is a TCPStore, not a web server");
    }
    this.#fail(
      "not-validated",
      `first byte 0x${hex(first, 2)}, expected VALIDATE (0x00): not a TCPStore client, or too old`,
    );
  }

  #begin(): void {
    const code = this.#in.peek();
    const layout = BY_CODE[code];
    if (layout === undefined) {
      if (code === VALIDATE_CODE) {
        this.#fail("validate-repeated", "VALIDATE again: it is legal only as the first request");
      }
      this.#fail("unknown-opcode", `opcode 0x${hex(code, 2)}: operations end at 0x12`);
    }
    this.#started = this.#in.offset;
    this.#in.u8();
    this.#layout = layout;
    this.#step = 0;
    this.#left = this.#length = -1;
    this.#lists = NONE;
    this.#fields = [];
  }

  #read(operand: OperationLayout["operands"][number]): boolean {
    switch (operand) {
      case "u32":
        if (this.#in.available < 4) return false;
        this.#fields.push(this.#in.u32());
        return true;
      case "i64":
        if (this.#in.available < 8) return false;
        this.#fields.push(this.#in.i64());
        return true;
      case "keys":
        return this.#list(1);
      case "pairs":
        return this.#list(2);
      default: {
        const text = this.#text(operand === "value");
        if (text === undefined) return false;
        this.#fields.push(text);
        return true;
      }
    }
  }

  /** A count and that many keys (`each` 1), or keys and values in turn (`each` 2). */
  #list(each: 1 | 2): boolean {
    if (this.#left < 0) {
      if (this.#in.available < 8) return false;
      const count = this.#in.u64();
      if (count > this.#limits.maxKeys) {
        this.#fail("too-many-keys", `${count} keys, at most ${this.#limits.maxKeys} are taken`);
      }
      this.#left = count * each;
      this.#lists = [];
    }
    while (this.#left > 0) {
      const text = this.#text(each === 2 && this.#left % 2 === 1);
      if (text === undefined) return false;
      this.#lists.push(text);
      this.#left--;
    }
    return true;
  }

  #text(value: boolean): ByteString | undefined {
    if (this.#length < 0) {
      if (!value && this.#cache !== undefined) {
        const whole = this.#in.wholeKey(this.#keyRoom(), this.#cache);
        if (whole !== undefined) return whole;
      }
      if (this.#in.available < 8) return undefined;
      const length = this.#in.u64();
      const limit = value ? this.#limits.maxValueBytes : this.#limits.maxKeyBytes;
      if (length > limit) {
        const what = value ? "value" : "key";
        this.#fail(`${what}-too-long`, `a ${what} of ${length} bytes, at most ${limit} are taken`);
      }
      const whole = this.#in.offset - this.#started + length;
      if (whole > this.#limits.maxMessageBytes) {
        this.#fail(
          "message-too-long",
          `a request of at least ${whole} bytes, at most ${this.#limits.maxMessageBytes} are taken`,
        );
      }
      this.#length = length;
    }
    if (this.#in.available < this.#length) return undefined;
    const text = value || this.#cache === undefined
      ? this.#in.text(this.#length)
      : this.#in.key(this.#length, this.#cache);
    this.#length = -1;
    return text;
  }

  /** The longest key that may come now: within a key's limit, and within that of the whole request. */
  #keyRoom(): number {
    const begun = this.#in.offset - this.#started + 8;
    return Math.min(this.#limits.maxKeyBytes, this.#limits.maxMessageBytes - begun);
  }

  #complete(): StoreRequest {
    const { op } = this.#layout!;
    const [first, second, third] = this.#fields as [string, string, string];
    const list = this.#lists;
    this.#layout = undefined;
    this.#lists = NONE;
    switch (op) {
      case "set":
      case "append":
      case "queuePush":
        return { op, key: first, value: second };
      case "compareSet":
        return { op, key: first, expected: second, desired: third };
      case "get":
      case "deleteKey":
      case "queuePop":
      case "queueLen":
        return { op, key: first };
      case "add":
        return { op, key: first, delta: second };
      case "barrier":
        return { op, key: first, worldSize: second };
      case "check":
      case "wait":
      case "multiGet":
        return { op, keys: list };
      case "multiSet":
        return {
          op,
          keys: list.filter((_, i) => i % 2 === 0),
          values: list.filter((_, i) => i % 2 === 1),
        };
      case "ping":
        return { op, nonce: this.#fields[0] as number };
      default:
        return { op };
    }
  }

  #fail(code: ConstructorParameters<typeof StoreProtocolError>[0], message: string): never {
    throw new StoreProtocolError(code, this.#in.offset, message);
  }
}

const NONE: ByteString[] = [];
const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0");
