/**
 * The journal: inputs as they happened, one JSON object a line, and everything that is computed from them again.
 *
 * This module runs in a browser too; `muster/journal/stores` keeps journals in directories.
 *
 * @module
 */
export { crc32, crc32Ascii } from "./crc.ts";
export { EventTexts } from "./event-texts.ts";
export { JournalError, type JournalErrorCode, type Place } from "./error.ts";
export { type ParsedRecord, parseRecord } from "./parse.ts";
export { type Head, JournalReader, type LeftOut, type PlacedRecord, type Segment } from "./read.ts";
export {
  asciiJson,
  bodyOf,
  type Checkpoint,
  digestOf,
  encodeCheckpoint,
  encodeHeader,
  encodeRecord,
  eventTextOf,
  FORMAT,
  type Header,
  type JournalRecord,
  type RecordHead,
  seal,
} from "./record.ts";
export {
  type Applied,
  type Difference,
  differenceText,
  type Replay,
  replay,
  type ReplayOptions,
  structuresOf,
} from "./replay.ts";
export { fork, merged } from "./fork.ts";
export { type Line, scan } from "./scan.ts";
export { type Problem, type Verdict, verify } from "./verify.ts";
export type { Durability, FaultPoint, JournalStore, OwnedJournal, Snapshot } from "./store.ts";
export { MemoryStore } from "./stores/memory.ts";
