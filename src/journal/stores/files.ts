/** The file system, as a journal needs it. */
import {
  closeSync,
  fdatasync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { JournalError } from "../error.ts";
import type { Segment } from "../read.ts";

const CHUNK = 1 << 20;

/** The segments of a directory by name; none when there is no directory. */
export function segmentsIn(directory: string): Segment[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return [];
    throw storeError(directory, error);
  }
  return names.filter((name) => /^\d{6,}-\d{12,}\.jsonl$/.test(name)).sort().map((name) =>
    fileSegment(join(directory, name), name)
  );
}

/** A file as a segment: read in pieces of a mebibyte. */
export function fileSegment(path: string, name: string): Segment {
  return {
    name,
    get bytes() {
      return statSync(path).size;
    },
    *chunks(from = 0) {
      const file = openSync(path, "r");
      try {
        for (let position = from;;) {
          const chunk = new Uint8Array(CHUNK);
          const length = readSync(file, chunk, 0, CHUNK, position);
          if (length === 0) return;
          position += length;
          yield chunk.subarray(0, length);
        }
      } finally {
        closeSync(file);
      }
    },
  };
}

/** Writes every byte, however many calls it takes. */
export function writeAll(file: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done);
}

/** Makes the names of a directory as safe as the contents of its files. */
export function syncDirectory(directory: string): void {
  const file = openSync(directory, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Makes a directory and those above it. (`recursive` does not come to an end on Node where a file system refuses, as /proc does.) */
export function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === "EEXIST") {
      if (statSync(path).isDirectory()) return;
      throw Object.assign(new Error(`${path} is no directory`), { code: "ENOTDIR" });
    }
    if (code !== "ENOENT" || dirname(path) === path) throw error;
    makeDirectory(dirname(path));
    mkdirSync(path, { mode: 0o700 });
  }
}

/** What the file system said, with what to do about it. */
export function storeError(directory: string, error: unknown): JournalError {
  if (error instanceof JournalError) return error;
  const { code, message } = error as { code?: string; message?: string };
  const advice: Record<string, string> = {
    ENOSPC: "the disk is full: free space, then start again",
    EROFS: "the file system is read-only",
    EACCES: "this user may not write there",
    EIO: "the disk failed",
    EEXIST: "it is there already",
    ENOTDIR: "there is a file of that name: name a directory",
    ENOENT: "its file system refuses new directories: name another place",
    EDQUOT: "the quota is used up",
  };
  return new JournalError(
    "journal-store",
    `the journal in ${directory} cannot be written: ${
      advice[code ?? ""] ?? message ?? String(error)
    }`,
    { cause: error },
  );
}

/** `fdatasync`. */
export const sync = (file: number): Promise<void> =>
  new Promise((resolve, reject) => fdatasync(file, (error) => error ? reject(error) : resolve()));
