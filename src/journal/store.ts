/** Where a journal lives: what the host needs of a directory, or of memory. */
import type { Json, SavedSystem } from "../kernel/mod.ts";
import type { Place } from "./error.ts";
import type { Segment } from "./read.ts";
import type { Checkpoint, Header, RecordHead } from "./record.ts";

/** When an input counts as safe. */
export type Durability =
  /** After `fdatasync`: survives the loss of power. */
  | "sync"
  /** Once handed to the operating system: survives the process, not the machine. */
  | "os"
  /** Once in the writer's buffer, written soon after: for runs that may be lost. */
  | "memory";

/** A system as of some record: a cache that saves replay, and never a truth. */
export interface Snapshot {
  readonly format: number;
  readonly run: string;
  /** Structural hash of every chart: a snapshot of other charts is passed over. */
  readonly machines: Readonly<Record<string, string>>;
  /** Where the record stands whose result this is. */
  readonly place: Place;
  readonly system: SavedSystem;
  readonly configuration: Checkpoint["configuration"];
  readonly views: Readonly<Record<string, Json>>;
}

/** Called with a name at each moment at which a crash makes a difference. A test's function may throw or kill the process there. */
export type FaultPoint = (name: string) => void;

/** A place for one journal. */
export interface JournalStore {
  /** For messages: the directory, or `memory`. */
  readonly name: string;
  /** What is there now, for readers. */
  segments(): readonly Segment[];
  /**
   * Takes the journal for writing.
   *
   * @throws JournalError `journal-locked`, `journal-store`
   */
  own(fault?: FaultPoint): Promise<OwnedJournal>;
}

/** A journal in the hands of its one writer. */
export interface OwnedJournal {
  readonly fence: number;
  segments(): readonly Segment[];
  /** Snapshots that may be good, newest first. */
  snapshots(): Iterable<Snapshot>;
  /** Starts this owner's segment. With a checkpoint: it is the new beginning, durable and read back before older segments go. */
  begin(header: Header, checkpoint?: Checkpoint): Promise<void>;
  /**
   * Puts a record at the end. Returns where it stands.
   *
   * @param eventText the event's text by `asciiJson`
   */
  append(record: RecordHead, eventText: string): Place;
  /** Hands everything appended to the operating system. @throws JournalError `journal-store`, `journal-lost` */
  write(): void;
  /** Resolves when everything written before the call is safe. @throws JournalError `journal-store`, `journal-lost` */
  commit(): Promise<void>;
  /** Bytes in the segments since the beginning or the last checkpoint. */
  readonly bytes: number;
  saveSnapshot(snapshot: Snapshot): Promise<void>;
  /** Writes what is left and gives the journal up. */
  close(): Promise<void>;
}
