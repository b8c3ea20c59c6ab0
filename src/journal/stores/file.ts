/**
 * A journal in a directory: append-only segments, one JSON object a line, one `fdatasync` for a group of records.
 *
 * ```
 * 000001-000000000001.jsonl   segment: fence 1, from record 1
 * owner-000001                who holds it
 * snapshot-000000004711.json  a cache
 * ```
 */
import { closeSync, fdatasyncSync, mkdirSync, openSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { JournalError, type Place } from "../error.ts";
import { JournalReader, type Segment } from "../read.ts";
import {
  type Checkpoint,
  encodeCheckpoint,
  encodeHeader,
  type Header,
  type RecordHead,
} from "../record.ts";
import type { Durability, FaultPoint, JournalStore, OwnedJournal, Snapshot } from "../store.ts";
import {
  fileSegment,
  makeDirectory,
  segmentsIn,
  storeError,
  sync,
  syncDirectory,
  writeAll,
} from "./files.ts";
import { LineBuffer } from "./line-buffer.ts";
import { segmentName } from "./names.ts";
import { type Ownership, take } from "./ownership.ts";
import { readSnapshots, writeSnapshot } from "./snapshots.ts";

export interface FileStoreOptions {
  readonly durability?: Durability;
  /** Take the journal also from a holder that is not provably dead. */
  readonly force?: boolean;
}

const encoder = new TextEncoder();

/** For durability `memory`: how long a record may stay in the buffer. */
const FLUSH_MS = 50;

/** A journal in a directory. */
export class FileStore implements JournalStore {
  readonly name: string;
  readonly options: FileStoreOptions;

  /** @param directory made when it does not exist. */
  constructor(directory: string, options: FileStoreOptions = {}) {
    this.name = directory;
    this.options = options;
  }

  segments(): readonly Segment[] {
    return segmentsIn(this.name);
  }

  own(fault: FaultPoint = () => {}): Promise<OwnedJournal> {
    return attempt(this.name, () => {
      makeDirectory(this.name);
      fault("journal.own.before");
      const used = this.segments().map((s) => Number(s.name.split("-")[0]));
      const ownership = take(this.name, {
        force: this.options.force ?? false,
        above: Math.max(0, ...used),
      });
      fault("journal.own.after");
      return Promise.resolve(
        new OwnedFiles(this.name, ownership, this.options.durability ?? "sync", fault),
      );
    });
  }
}

class OwnedFiles implements OwnedJournal {
  readonly fence: number;
  bytes = 0;

  readonly #directory: string;
  readonly #ownership: Ownership;
  readonly #durability: Durability;
  readonly #fault: FaultPoint;
  #file: number | undefined;
  #segment = "";
  #offset = 0;
  #line = 0;
  readonly #lines = new LineBuffer();
  #flush: ReturnType<typeof setTimeout> | undefined;
  #failed: JournalError | undefined;

  constructor(directory: string, ownership: Ownership, durability: Durability, fault: FaultPoint) {
    this.fence = ownership.fence;
    this.#directory = directory;
    this.#ownership = ownership;
    this.#durability = durability;
    this.#fault = fault;
    this.bytes = segmentsIn(directory).reduce((sum, s) => sum + s.bytes, 0);
  }

  /** With what was appended so far, also where that stays in memory for a while. */
  segments(): readonly Segment[] {
    this.#put();
    return segmentsIn(this.#directory);
  }

  snapshots(): Iterable<Snapshot> {
    return readSnapshots(this.#directory);
  }

  begin(header: Header, checkpoint?: Checkpoint): Promise<void> {
    return this.#attempt(async () => {
      this.#ownership.check();
      this.#put();
      const name = segmentName(header);
      const path = join(this.#directory, name);
      const text = encodeHeader(header) +
        (checkpoint === undefined ? "" : encodeCheckpoint(checkpoint));
      const what = checkpoint === undefined ? "journal.segment" : "journal.checkpoint";
      this.#fault(`${what}.before`);
      const file = openSync(path, "ax", 0o600);
      writeAll(file, encoder.encode(text));
      this.#fault(`${what}.written`);
      if (this.#durability === "sync") {
        await sync(file);
        syncDirectory(this.#directory);
      }
      this.#fault(`${what}.after`);
      const older = segmentsIn(this.#directory).filter((s) => s.name !== name);
      if (checkpoint !== undefined) {
        readBack(path, name, checkpoint);
        this.#ownership.check();
        for (const segment of older) {
          this.#fault("journal.compact.before");
          unlinkSync(join(this.#directory, segment.name));
        }
        if (this.#durability === "sync") syncDirectory(this.#directory);
        this.#fault("journal.compact.after");
        this.bytes = 0;
      }
      if (this.#file !== undefined) closeSync(this.#file);
      this.#file = file;
      this.#segment = name;
      this.#offset = text.length;
      this.#line = checkpoint === undefined ? 1 : 2;
      this.bytes += text.length;
    });
  }

  append(record: RecordHead, eventText: string): Place {
    const place = { file: this.#segment, line: ++this.#line, offset: this.#offset };
    const length = this.#lines.put(record, eventText);
    this.#offset += length;
    this.bytes += length;
    return place;
  }

  write(): void {
    if (this.#durability === "memory") {
      if (this.#failed !== undefined) throw this.#failed;
      this.#flush ??= setTimeout(() => {
        this.#flush = undefined;
        try {
          this.#put();
        } catch (error) {
          this.#failed = storeError(this.#directory, error);
        }
      }, FLUSH_MS);
      return;
    }
    attemptSync(this.#directory, () => {
      this.#ownership.check();
      this.#put();
    });
  }

  commit(): Promise<void> {
    return this.#attempt(async () => {
      if (this.#durability === "sync" && this.#file !== undefined) {
        this.#fault("journal.sync.before");
        await sync(this.#file);
        this.#fault("journal.sync.after");
      }
      this.#ownership.check();
    });
  }

  saveSnapshot(snapshot: Snapshot): Promise<void> {
    return this.#attempt(() => writeSnapshot(this.#directory, snapshot, this.#fault));
  }

  async close(): Promise<void> {
    clearTimeout(this.#flush);
    const file = this.#file;
    if (file === undefined) return this.#ownership.release();
    await this.#attempt(async () => {
      this.#ownership.check();
      this.#put();
      if (this.#durability === "sync") await sync(file);
      this.#fault("journal.release.before");
      this.#ownership.release();
      this.#fault("journal.release.after");
    }).finally(() => {
      this.#file = undefined;
      closeSync(file);
    });
  }

  #put(): void {
    if (this.#lines.empty || this.#file === undefined) return;
    this.#fault("journal.write.before");
    writeAll(this.#file, this.#lines.bytes());
    this.#lines.clear();
    this.#fault("journal.write.after");
  }

  #attempt<T>(action: () => Promise<T>): Promise<T> {
    return attempt(this.#directory, action);
  }
}

/**
 * Writes a journal of one segment into a directory that does not exist yet.
 *
 * @param lines the header, perhaps a checkpoint, then records of fence 1
 * @throws JournalError `journal-store`
 */
export function writeSegment(directory: string, lines: readonly string[]): void {
  const { fence, first } = JSON.parse(lines[0]!) as Header;
  try {
    makeDirectory(dirname(directory));
    mkdirSync(directory, { mode: 0o700 });
    const file = openSync(join(directory, segmentName({ fence, first })), "ax", 0o600);
    try {
      writeAll(file, encoder.encode(lines.join("")));
      fdatasyncSync(file);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw storeError(directory, error);
  }
}

function readBack(path: string, name: string, written: Checkpoint): void {
  const found = new JournalReader([fileSegment(path, name)]).checkpoint;
  if (JSON.stringify(found) !== JSON.stringify(written)) {
    throw new JournalError(
      "journal-store",
      `the checkpoint in ${path} was not read back as written`,
    );
  }
}

async function attempt<T>(directory: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw storeError(directory, error);
  }
}

function attemptSync(directory: string, action: () => void): void {
  try {
    action();
  } catch (error) {
    throw storeError(directory, error);
  }
}
