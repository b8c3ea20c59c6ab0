import type { JournalRecord } from "../../journal/mod.ts";
import { duration } from "../../view/mod.ts";
import { MARK } from "./run.ts";

/** What the journal's table is narrowed to. */
export interface RowFilter {
  /** Words that must all occur in the receiver, the event's type or its JSON. */
  readonly text: string;
  /** Only records that led to a refusal, an unexpected event or a failure. */
  readonly problems: boolean;
  /** Only records that changed a state. */
  readonly moved: boolean;
  /** Draw a pause instead of leaving it out. */
  readonly gaps: boolean;
}

export const ALL_ROWS: RowFilter = { text: "", problems: false, moved: false, gaps: true };

/** A line of the table: a record by its index, or a pause before it. */
export type Row = { readonly index: number } | { readonly gap: string; readonly before: number };

/** Pauses from this long on are drawn as one line. */
const GAP_MS = 5000;

/** The lines of the table for a filter. Linear in the records: 100,000 take some ten milliseconds. */
export function rowsOf(
  records: readonly JournalRecord[],
  marks: readonly number[],
  filter: RowFilter,
): readonly Row[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const rows: Row[] = [];
  let before: JournalRecord | undefined;
  records.forEach((record, index) => {
    const mark = marks[index] ?? 0;
    if (filter.problems && !(mark & (MARK.note | MARK.failure))) return;
    if (filter.moved && !(mark & MARK.moved)) return;
    if (words.length > 0 && !matches(record, words)) return;
    const pause = before === undefined ? 0 : record.at - before.at;
    if (filter.gaps && pause >= GAP_MS) {
      rows.push({ gap: `${duration(pause)} later`, before: record.seq });
    }
    rows.push({ index });
    before = record;
  });
  return rows;
}

function matches(record: JournalRecord, words: readonly string[]): boolean {
  const head = `${record.seq} ${record.to} ${record.event.type}`.toLowerCase();
  let rest: string | undefined;
  return words.every((word) => {
    if (head.includes(word)) return true;
    rest ??= JSON.stringify(record.event).toLowerCase();
    return rest.includes(word);
  });
}

/** `hello local=true headless=false`: the event on one line. */
export function eventLine(event: JournalRecord["event"]): string {
  const parts = Object.entries(event).filter(([key]) => key !== "type").map(([key, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
    return `${key}=${text.length > 40 ? `${text.slice(0, 37)}…` : text}`;
  });
  return parts.slice(0, 5).join("  ");
}
