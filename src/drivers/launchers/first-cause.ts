import { Buffer } from "node:buffer";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { causeIn } from "./vllm-output.ts";

/** What is read of an output, at most: its beginning is where the first cause is. */
const READ_BYTES = 4 * 1024 * 1024;

/**
 * The last line of the first Python traceback in a log from byte `at` on, or null. When one of many processes fails, the others fail because of it,
 * and their tracebacks are the last lines of the output.
 */
export function causeSince(log: string, at: number): string | null {
  let fd: number;
  try {
    fd = openSync(log, "r");
  } catch {
    return null;
  }
  try {
    const size = Math.max(0, Math.min(READ_BYTES, fstatSync(fd).size - at));
    const bytes = Buffer.alloc(size);
    const got = readSync(fd, bytes, 0, size, at);
    return causeIn(bytes.subarray(0, got).toString("utf8").split("\n"));
  } finally {
    closeSync(fd);
  }
}
