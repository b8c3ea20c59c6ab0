/**
 * The lines of a journal: a header, perhaps a checkpoint, then one record for each input.
 *
 * Each is one JSON object in ASCII (other characters are escaped), with its CRC-32 as the last member. The CRC covers the bytes before
 * `,"crc"`. The order of members is part of the format: readers slice the event's text out of a line without parsing it anew.
 */
import {
  effectsDigest,
  hex32,
  type Input,
  type Json,
  type KernelEvent,
  type SavedSystem,
  type Stamped,
  stateDigest,
  type System,
} from "../kernel/mod.ts";
import { crc32Ascii } from "./crc.ts";

/** The version of this format. A journal of another one is refused. */
export const FORMAT = 1;

/** The first line of a segment. */
export interface Header {
  readonly journal: "muster";
  readonly format: number;
  /** Names the run, from its first segment to its last. */
  readonly run: string;
  /** Counts the owners of the run. */
  readonly fence: number;
  /** Sequence number of the segment's first record: what older segments hold from there on does not count. */
  readonly first: number;
  /** Wall-clock milliseconds. */
  readonly at: number;
  /** Structural hash of every chart, by name. For people: compatibility is decided by digests. */
  readonly machines: Readonly<Record<string, string>>;
  /** For a run made from a prefix of another. */
  readonly forkOf?: { readonly run: string; readonly seq: number } | undefined;
}

/** The second line of a segment that begins with a compacted past. */
export interface Checkpoint {
  /** The whole system, with its open calls, timers and resources. */
  readonly system: SavedSystem;
  /** The event of input 1, so that a restart with another configuration is still noticed. */
  readonly configuration: KernelEvent;
  /** What views had folded so far, by name. */
  readonly views: Readonly<Record<string, Json>>;
}

/** An input as it is kept. */
export interface JournalRecord extends Input {
  readonly fence: number;
  /** {@link digestOf} of what the input led to. */
  readonly digest: string;
}

/** A record without its event, whose text is at hand. */
export type RecordHead = Omit<JournalRecord, "event">;

/**
 * 32 hex digits for what a step led to: 16 for the state after it, 16 for its effects in order. Recovery never reads them; a check
 * compares them.
 */
export const digestOf = (system: Pick<System, "hash">, effects: readonly Stamped[]): string =>
  stateDigest(system) + effectsDigest(effects);

/** JSON text of a value in ASCII. */
export function asciiJson(value: unknown): string {
  const text = JSON.stringify(value);
  // deno-lint-ignore no-control-regex
  if (!/[^\x00-\x7f]/.test(text)) return text;
  return text.replace(
    // deno-lint-ignore no-control-regex
    /[^\x00-\x7f]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** How long `,"crc":"xxxxxxxx"}` is. */
export const CRC_TAIL = 18;

/** What follows the body of a line: its CRC, and the end of the object and of the line. */
export const tailOf = (crc: number): string => `,"crc":"${hex32(crc)}"}\n`;

/** A body as a line, with its newline. */
export const seal = (body: string): string => body + tailOf(crc32Ascii(body));

/** A record's line without its CRC. */
export const bodyOf = (
  { seq, fence, at, to, digest }: RecordHead,
  /** The event's text by {@link asciiJson}. */
  eventText: string,
): string =>
  `{"seq":${seq},"fence":${fence},"at":${at},"to":${
    isPlain(to) ? `"${to}"` : asciiJson(to)
  },"event":${eventText},"digest":"${digest}"`;

/** A record as a line, with its newline. */
export const encodeRecord = (record: RecordHead, eventText: string): string =>
  seal(bodyOf(record, eventText));

/** Whether JSON writes a text as it is: printable ASCII without quotation marks and backslashes. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c < 0x20 || c > 0x7e || c === 0x22 || c === 0x5c) return false;
  }
  return true;
}

/** A header as a line. */
export const encodeHeader = (header: Header): string => seal(asciiJson(header).slice(0, -1));

/** A checkpoint as a line. */
export const encodeCheckpoint = (checkpoint: Checkpoint): string =>
  seal(asciiJson({ checkpoint }).slice(0, -1));

/** How long `,"digest":"..."` is. */
const DIGEST_TAIL = 44;

/** The text of the event in a record's line. */
export const eventTextOf = (line: string): string =>
  line.slice(line.indexOf(',"event":') + 9, line.length - CRC_TAIL - DIGEST_TAIL);
