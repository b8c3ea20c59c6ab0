import { JournalReader, type JournalRecord, type LeftOut, parseRecord } from "../../journal/mod.ts";
import type { RunHead } from "../source.ts";

/** A journal as the page holds it. */
export interface LoadedRun {
  readonly head: RunHead | undefined;
  readonly records: readonly JournalRecord[];
  /** What a reader should know: what was left out, and why. */
  readonly remarks: readonly string[];
}

/** One file that was dropped onto the page. */
export interface DroppedFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/**
 * A journal from its files: all segments of a directory, or one of them. Other files of the directory (snapshots, the
 * owner's mark) are passed over. Throws `JournalError` with the place for what is damaged.
 */
export function readDropped(files: readonly DroppedFile[]): LoadedRun {
  const segments = files.filter((file) => startsLikeJournal(file.bytes));
  if (segments.length === 0) {
    const names = files.map((file) => file.name).join(", ");
    throw new Error(
      `no journal among ${
        names || "nothing"
      }: its files end in .jsonl and begin with {"journal":"muster"`,
    );
  }
  const reader = new JournalReader(segments.map(({ name, bytes }) => ({
    name,
    bytes: bytes.length,
    chunks: (from = 0) => chunksOf(bytes, from),
  })));
  const records = [...reader.records()].map((placed) => placed.record);
  const { header, checkpoint } = reader;
  return {
    head: header === undefined ? undefined : { header, ...(checkpoint ? { checkpoint } : {}) },
    records,
    remarks: reader.leftOut.map(leftOutText),
  };
}

const startsLikeJournal = (bytes: Uint8Array): boolean =>
  new TextDecoder().decode(bytes.subarray(0, 40)).startsWith('{"journal":');

const CHUNK = 1 << 20;

function* chunksOf(bytes: Uint8Array, from: number): Generator<Uint8Array> {
  for (let at = from; at < bytes.length; at += CHUNK) yield bytes.subarray(at, at + CHUNK);
}

const leftOutText = ({ place, bytes, why }: LeftOut): string =>
  why === "torn"
    ? `The last ${bytes} bytes of ${place.file} (line ${place.line}) were being written when the writer stopped; they are left out.`
    : `${bytes} bytes of ${place.file} from line ${place.line} on were written by an owner that had lost the journal; they are left out.`;

/** A line of `/api/journal` or of its events as a record. Throws `JournalError` when it is none. */
export const servedRecord = (line: string): JournalRecord =>
  parseRecord(line, { file: "what the server sent", line: 1, offset: 0 });

/** The lines of a stream of UTF-8, as they arrive: the answer of `/api/journal` is the head, then a record a line. */
export async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + decoder.decode(value, { stream: !done })).split("\n");
    rest = lines.pop()!;
    yield* lines;
    if (done) {
      if (rest !== "") yield rest;
      return;
    }
  }
}
