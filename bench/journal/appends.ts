/** Appends: the journal beside plain writers of the same bytes, in turns on one file system. */
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import {
  asciiJson,
  encodeRecord,
  type OwnedJournal,
  type RecordHead,
} from "../../src/journal/mod.ts";
import type { KernelEvent } from "../../src/kernel/mod.ts";
import type { BenchTable } from "../run.ts";
import { inDirectory, owned } from "./recorded.ts";

/** Records in a group. */
const SIZES = [1, 10, 100, 1000];
/** How many groups a writer writes before it is the next one's turn. */
const GROUPS = 20;
const ROUNDS = 30;
const AT = 1_800_000_000_000;
const DIGEST = "0123456789abcdef0123456789abcdef";

interface Append {
  readonly head: RecordHead;
  readonly text: string;
  /** The finished line, for the writer that only writes. */
  readonly line: string;
  /** What the line says, for the writer that makes it itself. */
  readonly record: object;
}

/** Writes groups. Resolves when everything is safe. */
interface Writer {
  append(groups: readonly (readonly Append[])[]): Promise<void>;
}

/** The simplest writer: a group is joined and written, then a blocking `fdatasync`, again. */
class PlainWriter implements Writer {
  readonly #file: number;
  readonly #lineOf: (item: Append) => string;

  constructor(path: string, lineOf: (item: Append) => string) {
    this.#file = openSync(path, "ax");
    this.#lineOf = lineOf;
  }

  append(groups: readonly (readonly Append[])[]): Promise<void> {
    for (const group of groups) {
      writeSync(this.#file, group.map(this.#lineOf).join(""));
      fdatasyncSync(this.#file);
    }
    return Promise.resolve();
  }

  close(): void {
    closeSync(this.#file);
  }
}

function write(journal: OwnedJournal, group: readonly Append[]): void {
  for (const { head, text } of group) journal.append(head, text);
  journal.write();
}

/** One sync a group, as many as the plain writer has; the next group is encoded and written meanwhile. */
const syncEach = (journal: OwnedJournal): Writer => ({
  append: async (groups) => {
    let syncing = Promise.resolve();
    for (const group of groups) {
      write(journal, group);
      await syncing;
      syncing = journal.commit();
      if (group.length === 1) await syncing; // whoever waits for it is told before the next
    }
    await syncing;
  },
});

/** As the host uses it: one sync serves everything that was written before it began. */
const syncShared = (journal: OwnedJournal): Writer => ({
  append: async (groups) => {
    let written = 0;
    let safe = 0;
    let syncing: Promise<void> | undefined;
    const sync = () => {
      if (syncing !== undefined || safe === written) return;
      const upTo = written;
      syncing = journal.commit().then(() => {
        safe = upTo;
        syncing = undefined;
        sync();
      });
    };
    for (const group of groups) {
      write(journal, group);
      written++;
      sync();
      if (group.length === 1) await syncing;
      else await new Promise((resolve) => setImmediate(resolve)); // a group in each turn of the event loop
    }
    while (safe < written) await syncing;
  },
});

/** What is appended, made before the clock starts. */
function groupsOf(
  size: number,
  event: (n: number) => [to: string, event: KernelEvent],
): Append[][] {
  return Array.from({ length: GROUPS }, (_, g) =>
    Array.from({ length: size }, (_, i) => {
      const seq = g * size + i + 1;
      const [to, said] = event(seq);
      const head = { seq, fence: 1, at: AT, to, digest: DIGEST };
      const text = asciiJson(said);
      const line = encodeRecord(head, text);
      return { head, text, line, record: JSON.parse(line) as object };
    }));
}

const jsonLine = ({ record }: Append): string => `${JSON.stringify(record)}\n`;

/** The table of appends. @param event what the nth record says, and to whom. */
export async function appends(
  event: (n: number) => [to: string, event: KernelEvent],
): Promise<BenchTable> {
  const rows: (string | number)[][] = [];
  for (const size of SIZES) {
    const groups = groupsOf(size, event);
    const [finished, json, each, shared] = await inDirectory((path) => rates(path, groups));
    rows.push([
      size === 1 ? "one at a time" : `groups of ${size.toLocaleString("en-US")}`,
      finished!,
      json!,
      shared!,
      shared! / finished!,
      shared! / json!,
      each!,
      each! / finished!,
    ]);
  }
  return {
    title:
      "Appends a second at durability sync, all of them safe in the end: plain writers of the same bytes, and the journal",
    columns: [
      "",
      "finished lines",
      "JSON lines",
      "journal",
      "of finished",
      "of JSON",
      "a sync a group",
      "of finished",
    ],
    rows,
    notes: [
      `Four writers of the same bytes to files of one directory, in turns of ${GROUPS} groups; medians of ${ROUNDS} turns. Finished lines: made before the`,
      "clock starts, joined; one write and one blocking fdatasync a group. JSON lines: the same, but JSON.stringify makes each line. Journal: encoding,",
      "CRC and ownership check, as the host does it: one fdatasync for all that was written while the last one ran. A sync a group: the journal with as",
      "many fdatasyncs as the plain writers; the next group is encoded while the last one is synced. One at a time: each is safe before the next.",
    ],
  };
}

/** Records a second of each writer. */
async function rates(path: string, groups: readonly (readonly Append[])[]): Promise<number[]> {
  const finished = new PlainWriter(join(path, "finished"), ({ line }) => line);
  const json = new PlainWriter(join(path, "json"), jsonLine);
  const took: number[][] = [[], [], [], []];
  await owned(
    join(path, "each"),
    "sync",
    (each) =>
      owned(join(path, "shared"), "sync", async (shared) => {
        const writers = [finished, json, syncEach(each), syncShared(shared)];
        // Disks have moods: they take turns, and the first one changes. V8 compiles in the first rounds, which do not count.
        for (let round = -4; round < ROUNDS; round++) {
          for (let w = 0; w < writers.length; w++) {
            const which = (w + round + 4) % writers.length;
            const began = performance.now();
            await writers[which]!.append(groups);
            if (round >= 0) took[which]!.push(performance.now() - began);
          }
        }
      }),
  );
  finished.close();
  json.close();
  const count = groups.length * groups[0]!.length;
  return took.map((times) => count / median(times) * 1000);
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
