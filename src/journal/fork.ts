/** A journal's prefix as one segment: the same inputs, times and digests under one fence. Nothing is carried out. */
import { JournalError } from "./error.ts";
import type { JournalReader } from "./read.ts";
import { bodyOf, encodeCheckpoint, encodeHeader, type Header, seal } from "./record.ts";

/**
 * The prefix up to a record as the journal of a run of its own.
 *
 * @param at the last record that is taken over
 * @param run names the new run
 * @throws JournalError `journal-missing` when the journal does not have that record; those of reading
 */
export function fork(reader: JournalReader, at: number, run: string): string[] {
  const origin = headerOf(reader);
  return oneSegment(reader, at, { ...origin, run, forkOf: { run: origin.run, seq: at } });
}

/** The whole journal in one piece, still the same run: to carry it elsewhere, or to drop it on a page. */
export function merged(reader: JournalReader): string[] {
  return oneSegment(reader, undefined, headerOf(reader));
}

function headerOf(reader: JournalReader): Header {
  if (reader.header !== undefined) return reader.header;
  throw new JournalError("journal-missing", "there is no journal: nothing was recorded");
}

function oneSegment(reader: JournalReader, at: number | undefined, header: Header): string[] {
  const { checkpoint } = reader;
  const from = checkpoint?.system.seq ?? 0;
  const lines = [encodeHeader({ ...header, fence: 1, first: from + 1 })];
  if (checkpoint !== undefined) lines.push(encodeCheckpoint(checkpoint));
  let last = from;
  for (const { record, eventText } of reader.records()) {
    if (at !== undefined && record.seq > at) break;
    lines.push(seal(bodyOf({ ...record, fence: 1 }, eventText)));
    last = record.seq;
  }
  if (at !== undefined && last !== at) {
    throw new JournalError(
      "journal-missing",
      `there is no record ${at}: the journal has records ${from + 1} to ${last}`,
    );
  }
  return lines;
}
