import { Buffer } from "node:buffer";
import { crc32 } from "../crc.ts";
import { asciiJson, CRC_TAIL, type RecordHead, tailOf } from "../record.ts";

const encoder = new TextEncoder();
const bytesOf = (text: string): Uint8Array => encoder.encode(text);

/** What stands between the values of a record, as `bodyOf` says it. */
const SEQ = bytesOf('{"seq":');
const EVENT = bytesOf('","event":');
const DIGEST = bytesOf(',"digest":"');
const TAIL = bytesOf(`"${tailOf(0)}`);
const HEX = bytesOf("0123456789abcdef");

/** Up to here a loop is faster than a call into the runtime. */
const SHORT = 40;

/**
 * Records on their way to a file, as bytes: written and sealed where they are, so that a group is one write. The bytes are those of
 * `encodeRecord`, without the many short texts that it makes.
 */
export class LineBuffer {
  #bytes: Buffer = Buffer.allocUnsafeSlow(1 << 16);
  #length = 0;
  /** Records of one moment are alike from the fence to the name of the instance. */
  #stamp: { readonly fence: number; readonly at: number; readonly bytes: Uint8Array } | undefined;

  get empty(): boolean {
    return this.#length === 0;
  }

  /**
   * Appends a record with its CRC. Returns how many bytes that are.
   *
   * @param eventText the event's text by `asciiJson`
   */
  put({ seq, fence, at, to, digest }: RecordHead, eventText: string): number {
    const from = this.#length;
    const most = from + FIXED + LONGEST_ESCAPE * to.length + eventText.length + digest.length;
    const bytes = most > this.#bytes.length ? this.#larger(most) : this.#bytes;
    const stamp = this.#stampOf(fence, at);
    let end = copy(bytes, SEQ, from);
    end = writeNumber(bytes, seq, end);
    bytes.set(stamp, end);
    end = writeName(bytes, to, end + stamp.length);
    end = copy(bytes, EVENT, end);
    end = writeAscii(bytes, eventText, end);
    end = copy(bytes, DIGEST, end);
    end = writeAscii(bytes, digest, end);
    copy(bytes, TAIL, end++);
    let crc = crc32(bytes, from, end);
    for (let i = end + 15; i >= end + 8; i--, crc >>>= 4) bytes[i] = HEX[crc & 15]!;
    this.#length = end + CRC_TAIL + 1;
    return this.#length - from;
  }

  /** The bytes so far; valid until the next {@link put}. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
  }

  #stampOf(fence: number, at: number): Uint8Array {
    if (this.#stamp?.at !== at || this.#stamp.fence !== fence) {
      this.#stamp = { fence, at, bytes: bytesOf(`,"fence":${fence},"at":${at},"to":"`) };
    }
    return this.#stamp.bytes;
  }

  #larger(length: number): Buffer {
    const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#bytes.length));
    larger.set(this.bytes());
    return this.#bytes = larger;
  }
}

/** More than everything of a line that is neither a name, nor an event's text, nor a digest. */
const FIXED = 256;
/** `\u001b`, say. */
const LONGEST_ESCAPE = 6;

function copy(bytes: Uint8Array, from: Uint8Array, at: number): number {
  for (let i = 0; i < from.length; i++) bytes[at + i] = from[i]!;
  return at + from.length;
}

/** Deno is five times faster with an encoder, Node with the buffer itself. */
const writeLong: (bytes: Buffer, text: string, at: number) => void = "Deno" in globalThis
  ? (bytes, text, at) => void encoder.encodeInto(text, bytes.subarray(at))
  : (bytes, text, at) => void bytes.write(text, at, "latin1");

function writeAscii(bytes: Buffer, text: string, at: number): number {
  if (text.length > SHORT) writeLong(bytes, text, at);
  else for (let i = 0; i < text.length; i++) bytes[at + i] = text.charCodeAt(i);
  return at + text.length;
}

/** Between quotation marks; escaped where JSON does, which no name of ours needs. */
function writeName(bytes: Buffer, name: string, at: number): number {
  for (let i = 0; i < name.length; i++) {
    const c = name.charCodeAt(i);
    if (c < 0x20 || c > 0x7e || c === 0x22 || c === 0x5c) {
      return writeAscii(bytes, asciiJson(name).slice(1, -1), at);
    }
    bytes[at + i] = c;
  }
  return at + name.length;
}

function writeNumber(bytes: Buffer, n: number, at: number): number {
  if ((n | 0) !== n || n < 0) return writeAscii(bytes, String(n), at);
  n |= 0;
  let end = at + 1;
  for (let rest = n; rest > 9; rest = (rest / 10) | 0) end++;
  for (let i = end - 1; i >= at; i--) {
    const rest = (n / 10) | 0;
    bytes[i] = 48 + n - rest * 10;
    n = rest;
  }
  return end;
}
