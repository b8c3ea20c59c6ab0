/** Bytes to lines: finds the ends, checks the CRC of each, and tells a torn end from damage. */
import { crc32 } from "./crc.ts";
import type { Place } from "./error.ts";
import { CRC_TAIL } from "./record.ts";

/** A line of a segment, without its newline, and where it stands. */
export interface Line extends Place {
  readonly text: string;
  /** Offset of the next line. */
  readonly end: number;
  /** Why it cannot be believed: it has no newline (the writer was stopped), or it is not what was written. */
  readonly fault: "unterminated" | "mismatch" | undefined;
}

// Every line is ASCII. Other bytes still become one character each, so that offsets hold; their CRC fails.
const decoder = new TextDecoder("latin1");
const TAIL = [...',"crc":"'].map((c) => c.charCodeAt(0));

/** The lines of a file that is given in chunks, from a place in it on. */
export function* scan(chunks: Iterable<Uint8Array>, from: Place): Generator<Line> {
  const { file } = from;
  let { offset, line } = from;
  let bytes: Uint8Array = new Uint8Array(0);
  for (const chunk of chunks) {
    bytes = bytes.length === 0 ? chunk : concat(bytes, chunk);
    const text = decoder.decode(bytes);
    let start = 0;
    for (let end; (end = bytes.indexOf(10, start)) >= 0; start = end + 1) {
      const next = offset + end + 1 - start;
      const fault = intact(bytes, start, end) ? undefined : "mismatch";
      yield { file, line: line++, offset, end: next, text: text.slice(start, end), fault };
      offset = next;
    }
    bytes = bytes.slice(start);
  }
  if (bytes.length > 0) {
    const end = offset + bytes.length;
    yield { file, line, offset, end, text: decoder.decode(bytes), fault: "unterminated" };
  }
}

/** The first place of a file. */
export const beginningOf = (file: string): Place => ({ file, line: 1, offset: 0 });

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** Whether `bytes[start, end)` ends with the CRC of what is before it. */
function intact(bytes: Uint8Array, start: number, end: number): boolean {
  const body = end - CRC_TAIL;
  if (body < start || bytes[end - 1] !== 0x7d || bytes[end - 2] !== 0x22) return false;
  for (let i = 0; i < 8; i++) if (bytes[body + i] !== TAIL[i]) return false;
  let written = 0;
  for (let i = body + 8; i < body + 16; i++) {
    const c = bytes[i]!;
    const digit = c >= 0x30 && c <= 0x39 ? c - 0x30 : c >= 0x61 && c <= 0x66 ? c - 0x57 : -1;
    if (digit < 0) return false;
    written = (written << 4) | digit;
  }
  return crc32(bytes, start, body) === written >>> 0;
}
