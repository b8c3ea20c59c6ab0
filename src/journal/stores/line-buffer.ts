import { Buffer } from "node:buffer";
import { crc32 } from "../crc.ts";
import { CRC_TAIL, tailOf } from "../record.ts";

const TAIL = Buffer.from(tailOf(0), "latin1");
const HEX = Buffer.from("0123456789abcdef", "latin1");

const encoder = new TextEncoder();
/** Writes ASCII. Deno is five times faster with an encoder, Node a little with the buffer itself. */
const writeAscii: (bytes: Buffer, text: string, at: number) => void = "Deno" in globalThis
  ? (bytes, text, at) => void encoder.encodeInto(text, bytes.subarray(at))
  : (bytes, text, at) => void bytes.write(text, at, "latin1");

/** Lines on their way to a file, as bytes: sealed where they are, so that a group is one write. */
export class LineBuffer {
  #bytes: Buffer = Buffer.allocUnsafe(1 << 16);
  #length = 0;

  get empty(): boolean {
    return this.#length === 0;
  }

  /** Appends a body (ASCII) with its CRC. Returns how many bytes that are. */
  put(body: string): number {
    const from = this.#length;
    const end = from + body.length;
    this.#reserve(end + CRC_TAIL + 1);
    writeAscii(this.#bytes, body, from);
    this.#seal(crc32(this.#bytes, from, end), end);
    this.#length = end + CRC_TAIL + 1;
    return this.#length - from;
  }

  /** Writes what {@link tailOf} says, byte by byte: a call into the runtime for so few would cost more. */
  #seal(crc: number, at: number): void {
    const bytes = this.#bytes;
    for (let i = 0; i < TAIL.length; i++) bytes[at + i] = TAIL[i]!;
    for (let i = 15; i >= 8; i--, crc >>>= 4) bytes[at + i] = HEX[crc & 15]!;
  }

  /** The bytes so far; valid until the next {@link put}. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.#bytes.length));
    larger.set(this.bytes());
    this.#bytes = larger;
  }
}
