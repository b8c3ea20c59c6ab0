import { Buffer } from "node:buffer";
import { closeSync, copyFileSync, fstatSync, openSync, readSync, truncateSync } from "node:fs";

/** How much of a log's end is looked at, in bytes. */
const TAIL_BYTES = 16 * 1024;

/**
 * The last lines of a file, without their ends; at most what its last 16 KiB hold, so a very long line is cut at its beginning.
 * A file that cannot be read has none.
 */
export function tailOf(file: string, lines: number): string[] {
  let fd: number;
  try {
    fd = openSync(file, "r");
  } catch {
    return [];
  }
  try {
    const size = fstatSync(fd).size;
    const wanted = Math.min(size, TAIL_BYTES);
    const bytes = Buffer.alloc(wanted);
    const got = readSync(fd, bytes, 0, wanted, size - wanted);
    const text = bytes.subarray(0, got).toString("utf8");
    const all = text.split(/\r?\n/);
    if (all.at(-1) === "") all.pop();
    // The first line is cut unless the file begins with it.
    if (size > wanted && all.length > lines) all.shift();
    return lines > 0 ? all.slice(-lines) : [];
  } finally {
    closeSync(fd);
  }
}

/**
 * Keeps what a log has so far as `<log>.1` and empties it. Whoever writes to it goes on at its new beginning, because it was opened for
 * appending; what is written between the copy and the emptying is lost. A disk that is full leaves it as it is.
 */
export function rotate(log: string): void {
  try {
    copyFileSync(log, `${log}.1`);
    truncateSync(log, 0);
  } catch {
    // tried again at the next look
  }
}

/** Size of a file in bytes, 0 when there is none. */
export function sizeOf(file: string): number {
  try {
    const fd = openSync(file, "r");
    try {
      return fstatSync(fd).size;
    } finally {
      closeSync(fd);
    }
  } catch {
    return 0;
  }
}
