/** What can be wrong with a journal, or with the place where it lives. */
export type JournalErrorCode =
  /** A record is not what was written, or one is missing: nothing after it can be believed. */
  | "journal-damaged"
  /** Written in a format that this version does not know. */
  | "journal-format"
  /** Another process holds it, or may. */
  | "journal-locked"
  /** It was taken over by an owner with a higher fence. */
  | "journal-lost"
  /** The store failed: disk full, read-only, gone. */
  | "journal-store"
  /** The run was configured differently. */
  | "configuration-changed"
  /** Today's charts compute something else from the same inputs. */
  | "journal-incompatible"
  /** A prefix of another run, to be looked at: its effects belong to that run. */
  | "journal-fork"
  /** There is no journal, or not that record. */
  | "journal-missing";

/** A place in a segment. */
export interface Place {
  readonly file: string;
  /** Counts from 1; 0 when the whole file is meant. */
  readonly line: number;
  /** Byte offset of the line. */
  readonly offset: number;
}

/** A journal error: what was wrong, where, and what to do. */
export class JournalError extends Error {
  readonly code: JournalErrorCode;
  readonly place: Place | undefined;

  constructor(
    code: JournalErrorCode,
    text: string,
    options: { place?: Place; cause?: unknown } = {},
  ) {
    const { place } = options;
    const where = place === undefined
      ? ""
      : ` (${place.file}, line ${place.line}, byte ${place.offset})`;
    super(`${text}${where}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "JournalError";
    this.code = code;
    this.place = place;
  }
}

/** Something in a segment is not what was written. */
export const damage = (text: string, { file, line, offset }: Place): JournalError =>
  new JournalError("journal-damaged", text, { place: { file, line, offset } });
