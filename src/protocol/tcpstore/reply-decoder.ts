import { StoreProtocolError } from "./errors.ts";
import { type Allocate, Incoming } from "./incoming.ts";
import { REPLY_LIMITS, type StoreLimits } from "./limits.ts";
import type { ByteString, ReplyShape, StoreReply } from "./messages.ts";

/**
 * Reads the replies of one connection, in any fragmentation. Replies carry no tag, so the caller says which shape
 * comes next (`replyShapeOf` the request), and asks with the same shape until the reply is there.
 */
export class ReplyDecoder {
  readonly #in: Incoming;
  readonly #limits: StoreLimits;
  #started = 0;
  #count = -1;
  #length = -1;
  #texts: ByteString[] = [];

  constructor(limits: StoreLimits = REPLY_LIMITS, allocate?: Allocate) {
    this.#limits = limits;
    this.#in = new Incoming(allocate);
  }

  /** Bytes that arrived and belong to no reply that was asked for. */
  get available(): number {
    return this.#in.available;
  }

  /** Adds bytes. They may be reused by the caller only after `next` or `settle`. */
  push(chunk: Uint8Array): void {
    this.#in.push(chunk);
  }

  /** Keeps unread bytes in memory of its own. */
  settle(): void {
    this.#in.settle();
  }

  /**
   * The next reply of that shape, or `undefined` when more bytes are needed.
   * @throws StoreProtocolError when the bytes cannot be that reply.
   */
  next(shape: Exclude<ReplyShape, "none">): StoreReply | undefined {
    const reply = this.#read(shape);
    if (reply === undefined) this.#in.settle();
    else {
      this.#started = this.#in.offset;
      this.#count = -1;
      this.#texts = [];
    }
    return reply;
  }

  #read(shape: Exclude<ReplyShape, "none">): StoreReply | undefined {
    switch (shape) {
      case "flag": {
        if (this.#in.available < 1) return undefined;
        const value = this.#in.u8();
        if (value > 1) {
          this.#fail("bad-reply", `0x${value.toString(16).padStart(2, "0")} where 00 or 01 is due`);
        }
        return { kind: "flag", value };
      }
      case "nonce":
        if (this.#in.available < 4) return undefined;
        return { kind: "nonce", value: this.#in.u32() };
      case "integer":
        if (this.#in.available < 8) return undefined;
        return { kind: "integer", value: this.#in.i64() };
      case "value":
        if (!this.#list(1, false)) return undefined;
        return { kind: "value", value: this.#texts[0]! };
      case "popped":
        return this.#popped();
      case "keys":
        if (!this.#counted(false) || !this.#list(this.#count, true)) return undefined;
        return { kind: "keys", keys: this.#texts };
      default:
        if (!this.#list(shape.values, false)) return undefined;
        return { kind: "values", values: this.#texts };
    }
  }

  #popped(): StoreReply | undefined {
    if (!this.#counted(true)) return undefined;
    const before = String(this.#count);
    if (this.#count === 0) return { kind: "popped", before };
    if (!this.#list(1, false)) return undefined;
    return { kind: "popped", before, item: this.#texts[0]! };
  }

  /** Reads a count, once. A queue may be of any length; a list of keys has a limit. */
  #counted(queue: boolean): boolean {
    if (this.#count >= 0) return true;
    if (this.#in.available < 8) return false;
    const count = Number(this.#in.i64());
    if (count < 0) this.#fail("bad-reply", `a count of ${count}`);
    if (!queue && count > this.#limits.maxKeys) {
      this.#fail("too-many-keys", `${count} keys, at most ${this.#limits.maxKeys} are taken`);
    }
    this.#count = count;
    return true;
  }

  #list(count: number, keys: boolean): boolean {
    while (this.#texts.length < count) {
      if (this.#length < 0) {
        if (this.#in.available < 8) return false;
        const length = this.#in.u64();
        const limit = keys ? this.#limits.maxKeyBytes : this.#limits.maxValueBytes;
        if (length > limit) {
          const what = keys ? "key" : "value";
          this.#fail(
            `${what}-too-long`,
            `a ${what} of ${length} bytes, at most ${limit} are taken`,
          );
        }
        const whole = this.#in.offset - this.#started + length;
        if (whole > this.#limits.maxMessageBytes) {
          this.#fail(
            "message-too-long",
            `a reply of at least ${whole} bytes, at most ${this.#limits.maxMessageBytes} are taken`,
          );
        }
        this.#length = length;
      }
      if (this.#in.available < this.#length) return false;
      this.#texts.push(this.#in.text(this.#length));
      this.#length = -1;
    }
    return true;
  }

  #fail(code: ConstructorParameters<typeof StoreProtocolError>[0], message: string): never {
    throw new StoreProtocolError(code, this.#in.offset, message);
  }
}
