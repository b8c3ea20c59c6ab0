import { Buffer } from "node:buffer";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** Between two looks at the file, in milliseconds. */
const LOOK_EVERY_MS = 200;
/** Read at one look, at most; a line that is longer is told in pieces of this size. */
const CHUNK_BYTES = 64 * 1024;

/**
 * Tells every line that is appended to a file, from its beginning. The file may come later. Returns how to stop; the lines that are there by
 * then are told first.
 */
export function followLines(file: string, told: (line: string) => void): () => void {
  let at = 0;
  let rest = Buffer.alloc(0);
  const look = (): void => {
    let fd: number;
    try {
      fd = openSync(file, "r");
    } catch {
      return;
    }
    try {
      // It was emptied (logs are appended to, so that this is allowed): begin again.
      if (fstatSync(fd).size < at) at = 0;
      const chunk = Buffer.alloc(CHUNK_BYTES);
      for (;;) {
        const got = readSync(fd, chunk, 0, CHUNK_BYTES, at);
        if (got === 0) return;
        at += got;
        rest = Buffer.concat([rest, chunk.subarray(0, got)]);
        for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
          const line = rest.subarray(0, end).toString("utf8");
          rest = rest.subarray(end + 1);
          told(line.endsWith("\r") ? line.slice(0, -1) : line);
        }
        if (rest.length >= CHUNK_BYTES) {
          told(rest.toString("utf8"));
          rest = Buffer.alloc(0);
        }
      }
    } finally {
      closeSync(fd);
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  (timer as unknown as { unref?(): void }).unref?.();
  let stopped = false;
  return () => {
    if (stopped) return;
    stopped = true;
    clearInterval(timer);
    look();
  };
}
