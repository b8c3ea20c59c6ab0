/** Lines to records. */
import { damage, type Place } from "./error.ts";
import { EventTexts } from "./event-texts.ts";
import { eventTextOf, type JournalRecord } from "./record.ts";

/** A record, and its event as it is written. */
export interface ParsedRecord {
  readonly record: JournalRecord;
  readonly eventText: string;
}

/** A line that the writer made in the usual way: everything before the event. */
const USUAL = /^\{"seq":(\d+),"fence":(\d+),"at":(\d+),"to":"([\w/.@:-]*)","event":/;
const DIGEST_MEMBER = ',"digest":"';
const DIGEST = 32;

/** Parses the lines of one journal; an event that was read before is not parsed anew. */
export class RecordParser {
  readonly #events = new EventTexts();

  /**
   * A line whose CRC is right, as a record.
   *
   * @throws JournalError `journal-damaged` when it is not one.
   */
  parse(line: Place & { readonly text: string }): ParsedRecord {
    const { text } = line;
    const usual = USUAL.exec(text);
    const eventText = eventTextOf(text);
    const digestAt = (usual?.[0].length ?? 0) + eventText.length + DIGEST_MEMBER.length;
    if (
      usual === null ||
      !text.startsWith(DIGEST_MEMBER, digestAt - DIGEST_MEMBER.length)
    ) {
      const record = parseRecord(text, line);
      return { record, eventText: JSON.stringify(record.event) };
    }
    const known = this.#events.of(eventText, () => parseRecord(text, line).event);
    const [, seq, fence, at, to] = usual as unknown as [string, string, string, string, string];
    const record: JournalRecord = {
      seq: Number(seq),
      fence: Number(fence),
      at: Number(at),
      to,
      event: known.event,
      digest: text.slice(digestAt, digestAt + DIGEST),
    };
    return { record, eventText: known.text };
  }
}

/**
 * A record's text as a record.
 *
 * @throws JournalError `journal-damaged` when it is not one.
 */
export function parseRecord(text: string, place: Place): JournalRecord {
  let record: JournalRecord;
  try {
    record = JSON.parse(text) as JournalRecord;
  } catch {
    throw damage("the line is not JSON", place);
  }
  const { seq, at, fence, to, event, digest } = record;
  if (
    !Number.isInteger(seq) || !Number.isFinite(at) || !Number.isInteger(fence) ||
    typeof to !== "string" || typeof event?.type !== "string" || typeof digest !== "string"
  ) {
    throw damage("the line is not a record", place);
  }
  return { seq, at, fence, to, event, digest };
}
