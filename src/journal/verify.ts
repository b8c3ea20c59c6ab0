/** A journal looked at as a whole: everything that is wrong with it, not only the first thing. */
import { JournalError, type Place } from "./error.ts";
import { JournalReader, type LeftOut, type Segment } from "./read.ts";
import { beginningOf, scan } from "./scan.ts";

/** One thing that is wrong. */
export interface Problem {
  readonly place: Place | undefined;
  readonly text: string;
}

export interface Verdict {
  /** The run's name, where a header could be read. */
  readonly run: string | undefined;
  /** Records that can be believed: from the beginning (or the checkpoint) to the first problem. */
  readonly records: number;
  /** Sequence number of the last of them. */
  readonly seq: number;
  readonly segments: number;
  readonly bytes: number;
  readonly leftOut: readonly LeftOut[];
  /** The first says where belief ends; the others were found in lines after it. */
  readonly problems: readonly Problem[];
}

/** Reads every byte. Never throws for what it finds. */
export function verify(segments: readonly Segment[]): Verdict {
  const problems: Problem[] = [];
  let records = 0;
  let reader: JournalReader | undefined;
  try {
    reader = new JournalReader(segments);
    for (const _ of reader.records()) records++;
  } catch (error) {
    if (!(error instanceof JournalError)) throw error;
    problems.push({ place: error.place, text: textOf(error) });
    problems.push(...laterProblems(segments, error.place));
  }
  return {
    run: reader?.header?.run,
    records,
    seq: reader?.seq ?? 0,
    segments: segments.length,
    bytes: segments.reduce((sum, s) => sum + s.bytes, 0),
    leftOut: reader?.leftOut ?? [],
    problems,
  };
}

/** Lines whose CRC is wrong, after the first problem. */
function laterProblems(segments: readonly Segment[], first: Place | undefined): Problem[] {
  const found: Problem[] = [];
  if (first === undefined) return found;
  for (const segment of segments) {
    if (segment.name < first.file) continue;
    for (const line of scan(segment.chunks(), beginningOf(segment.name))) {
      if (line.fault !== "mismatch") continue;
      if (segment.name === first.file && line.offset <= first.offset) continue;
      const place = { file: line.file, line: line.line, offset: line.offset };
      found.push({ place, text: "the line is not what was written: its CRC does not match" });
    }
  }
  return found;
}

/** The message without the place, which is told beside it. */
const textOf = (error: JournalError): string =>
  error.place === undefined ? error.message : error.message.replace(/ \([^()]*\)$/, "");
