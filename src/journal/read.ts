/**
 * Segments to records: which of them count, in order, and what is wrong with the rest. Pure: a directory, memory or a file
 * dropped on a page all come as {@link Segment}s.
 *
 * - A segment counts up to where the next one begins: what an owner wrote after it had lost the journal is left out.
 * - An unterminated end of the last segment was being written when its owner died: it is cut, and said so.
 * - Anything else that is not what was written is damage, with file, line and byte offset.
 */
import { damage, JournalError, type Place } from "./error.ts";
import { type ParsedRecord, RecordParser } from "./parse.ts";
import { type Checkpoint, FORMAT, type Header, type JournalRecord } from "./record.ts";
import { beginningOf, type Line, scan } from "./scan.ts";

/** One file of a journal. */
export interface Segment {
  readonly name: string;
  readonly bytes: number;
  chunks(from?: number): Iterable<Uint8Array>;
}

/** A record with its line, which says where it stands. */
export interface PlacedRecord extends ParsedRecord {
  readonly place: Line;
}

/** Part of a segment that is left out of the journal. */
export interface LeftOut {
  readonly place: Place;
  readonly bytes: number;
  readonly why: "torn" | "lower-fence";
}

/** A segment whose beginning was read. */
export interface Head {
  readonly segment: Segment;
  readonly header: Header;
  readonly checkpoint: Checkpoint | undefined;
  readonly records: Place;
  /** Its records count below this sequence number. */
  readonly until: number;
}

/** A journal as read: iterate over {@link records} once, then the other members are complete. */
export class JournalReader {
  /** The segments that count, from the one with the beginning (or the last checkpoint). */
  readonly heads: readonly Head[];
  /** What was left out so far, and why. */
  readonly leftOut: LeftOut[] = [];
  /** Sequence number of the last record read. */
  seq: number;
  /** Its wall-clock milliseconds. */
  at: number;
  readonly #parser = new RecordParser();

  /**
   * Reads the beginnings of all segments.
   *
   * @throws JournalError `journal-format`, `journal-damaged`
   */
  constructor(segments: Iterable<Segment>) {
    this.heads = this.#arrange([...segments]);
    const checkpoint = this.heads[0]?.checkpoint;
    this.seq = checkpoint?.system.seq ?? 0;
    this.at = checkpoint?.system.at ?? 0;
  }

  /** Nothing was ever recorded. */
  get empty(): boolean {
    return this.heads.length === 0;
  }

  /** Header of the newest segment. */
  get header(): Header | undefined {
    return this.heads.at(-1)?.header;
  }

  /** The compacted past with which the journal begins, if it was compacted. */
  get checkpoint(): Checkpoint | undefined {
    return this.heads[0]?.checkpoint;
  }

  /**
   * Every record that counts, in order.
   *
   * @param from where a snapshot stands: that record is the first that is yielded.
   * @throws JournalError `journal-damaged` at the first line that is not what was written, or that is missing.
   */
  *records(from?: Place): Generator<PlacedRecord> {
    let heads = this.heads;
    if (from !== undefined) {
      heads = heads.slice(heads.findIndex((h) => h.segment.name === from.file));
      this.seq = -1;
    }
    for (const head of heads) {
      const { segment, header, until } = head;
      const last = head === this.heads.at(-1);
      const start = head === heads[0] && from !== undefined ? from : head.records;
      if (this.seq >= 0 && header.first !== this.seq + 1) {
        throw damage(
          `records ${this.seq + 1} to ${header.first - 1} are missing before this segment`,
          beginningOf(segment.name),
        );
      }
      for (const line of scan(segment.chunks(start.offset), start)) {
        if (!last && this.seq + 1 >= until) {
          this.#leaveOut(segment, line, "lower-fence");
          break;
        }
        if (line.fault !== undefined) {
          if (!last || line.fault !== "unterminated") throw damage(faultText(line), line);
          this.#leaveOut(segment, line, "torn");
          break;
        }
        const { record, eventText } = this.#parser.parse(line);
        if (this.seq >= 0 && record.seq !== this.seq + 1) {
          throw damage(`record ${record.seq} follows record ${this.seq}`, line);
        }
        if (record.fence !== header.fence) {
          throw damage(
            `a record of fence ${record.fence} in a segment of fence ${header.fence}`,
            line,
          );
        }
        this.seq = record.seq;
        this.at = record.at;
        yield { record, eventText, place: line };
      }
    }
  }

  /** The record that stands there, or undefined when there is none that counts. */
  recordAt(place: Place): JournalRecord | undefined {
    const head = this.heads.find((h) => h.segment.name === place.file);
    if (head === undefined || place.offset < head.records.offset) return undefined;
    const lines = scan(head.segment.chunks(place.offset), place);
    const line = lines.next();
    lines.return(undefined); // the file is closed
    if (line.done || line.value.fault !== undefined) return undefined;
    const { record } = this.#parser.parse(line.value);
    return record.seq < head.until ? record : undefined;
  }

  #arrange(segments: Segment[]): Head[] {
    const found: Omit<Head, "until">[] = [];
    for (const segment of segments) {
      const head = this.#headOf(segment);
      if (head !== undefined) found.push(head);
    }
    found.sort((a, b) => a.header.fence - b.header.fence || a.header.first - b.header.first);
    let heads: Head[] = [];
    let until = Infinity;
    for (const head of found.reverse()) {
      // A checkpoint counts also when its owner died before the first record after it.
      const begins = head.checkpoint !== undefined && head.header.first === until;
      if (head.header.first < until || begins) {
        heads.unshift({ ...head, until });
        until = head.header.first;
      } else {
        this.#leaveOut(head.segment, beginningOf(head.segment.name), "lower-fence");
      }
    }
    const beginning = heads.findLastIndex((h) => h.checkpoint !== undefined);
    if (beginning > 0) heads = heads.slice(beginning);
    const first = heads[0];
    if (first === undefined) return heads;
    if (first.checkpoint === undefined && first.header.first !== 1) {
      throw damage(
        `the journal begins with record ${first.header.first} and no checkpoint: older segments are missing`,
        beginningOf(first.segment.name),
      );
    }
    const stranger = heads.find((h) => h.header.run !== first.header.run);
    if (stranger !== undefined) {
      throw damage(
        `this segment belongs to run ${stranger.header.run}, the others to ${first.header.run}`,
        beginningOf(stranger.segment.name),
      );
    }
    return heads;
  }

  /** A segment's beginning, or undefined when its owner died before the header was complete. */
  #headOf(segment: Segment): Omit<Head, "until"> | undefined {
    const beginning = beginningOf(segment.name);
    const lines = scan(segment.chunks(), beginning);
    const [first, second] = [lines.next(), lines.next()];
    lines.return(undefined); // the file is closed
    if (first.done || first.value.fault === "unterminated") {
      this.#leaveOut(segment, beginning, "torn");
      return undefined;
    }
    const header = parseHeader(first.value);
    if (second.done || !second.value.text.startsWith('{"checkpoint":')) {
      const records = { ...beginning, line: 2, offset: first.value.end };
      return { segment, header, checkpoint: undefined, records };
    }
    const line = second.value;
    if (line.fault === "unterminated") {
      // Its writer died before it was complete, and therefore before anything older was removed.
      this.#leaveOut(segment, beginning, "torn");
      return undefined;
    }
    if (line.fault !== undefined) throw damage(faultText(line), line);
    const { checkpoint } = JSON.parse(line.text) as { checkpoint: Checkpoint };
    return { segment, header, checkpoint, records: { ...beginning, line: 3, offset: line.end } };
  }

  #leaveOut(segment: Segment, { file, line, offset }: Place, why: LeftOut["why"]): void {
    this.leftOut.push({ place: { file, line, offset }, bytes: segment.bytes - offset, why });
  }
}

const faultText = (line: Line): string =>
  line.fault === "unterminated"
    ? "the line has no end although the journal goes on after it"
    : "the line is not what was written: its CRC does not match";

/** A segment's header alone, or undefined when its owner died before it was complete. @throws JournalError as {@link JournalReader} does */
export function headerOf(segment: Segment): Header | undefined {
  const lines = scan(segment.chunks(), beginningOf(segment.name));
  const first = lines.next();
  lines.return(undefined); // the file is closed
  return first.done || first.value.fault === "unterminated" ? undefined : parseHeader(first.value);
}

function parseHeader(line: Line): Header {
  let header: Header | undefined;
  try {
    header = JSON.parse(line.text) as Header;
  } catch {
    // told below
  }
  // A later format may seal its lines differently: its number is read before the CRC is believed.
  if (
    header?.journal === "muster" && Number.isInteger(header.format) && header.format !== FORMAT
  ) {
    const { file, offset } = line;
    throw new JournalError(
      "journal-format",
      `the journal has format ${header.format}, this version reads ${FORMAT}: use the version that wrote it`,
      { place: { file, line: 1, offset } },
    );
  }
  if (line.fault !== undefined) throw damage(faultText(line), line);
  if (header?.journal !== "muster" || !Number.isInteger(header.first)) {
    throw damage("this is not a journal's header", line);
  }
  return header;
}
