import type { ByteString } from "./messages.ts";

/** `Buffer` of Node and Deno has this; plain `Uint8Array` does not. */
interface Sliceable {
  latin1Slice?(start: number, end: number): string;
}

const CHUNK = 8192;

/** The bytes from `start` to `end` as a byte string. */
export function byteString(
  bytes: Uint8Array,
  start: number = 0,
  end: number = bytes.length,
): ByteString {
  if (start === end) return "";
  const buffer = bytes as Uint8Array & Sliceable;
  if (buffer.latin1Slice !== undefined) return buffer.latin1Slice(start, end);
  let text = "";
  for (let at = start; at < end; at += CHUNK) {
    text += String.fromCharCode.apply(
      null,
      bytes.subarray(at, Math.min(end, at + CHUNK)) as unknown as number[],
    );
  }
  return text;
}

/**
 * The bytes of a byte string.
 * @throws RangeError when a character is above U+00FF: that is text, not bytes (use `utf8`).
 */
export function bytesOf(text: ByteString): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0xff) {
      throw new RangeError(
        `character ${i} is U+${code.toString(16).padStart(4, "0")}: a byte string has bytes only`,
      );
    }
    bytes[i] = code;
  }
  return bytes;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
// deno-lint-ignore no-control-regex
const ASCII = /^[\x00-\x7f]*$/;

/** Text as the byte string of its UTF-8 form. */
export function utf8(text: string): ByteString {
  return ASCII.test(text) ? text : byteString(encoder.encode(text));
}

/** The text whose UTF-8 form a byte string is; bytes that are not UTF-8 become U+FFFD. */
export function textOf(bytes: ByteString): string {
  return ASCII.test(bytes) ? bytes : decoder.decode(bytesOf(bytes));
}

/** Lower-case hex of a byte string. */
export function hexOf(bytes: ByteString): string {
  let hex = "";
  for (let i = 0; i < bytes.length; i++) hex += bytes.charCodeAt(i).toString(16).padStart(2, "0");
  return hex;
}

/**
 * The byte string of hex digits.
 * @throws RangeError when they are not an even number of hex digits.
 */
export function fromHex(hex: string): ByteString {
  if (hex.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(hex)) {
    throw new RangeError("not an even number of hex digits");
  }
  let text = "";
  for (let i = 0; i < hex.length; i += 2) {
    text += String.fromCharCode(Number.parseInt(hex.slice(i, i + 2), 16));
  }
  return text;
}
