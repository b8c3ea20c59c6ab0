import { JournalReader, type JournalStore, type Place } from "../journal/mod.ts";
import type { Checkpoint, Header } from "../journal/mod.ts";

/** What a run says of itself before its records. */
export interface RunHead {
  readonly header: Header;
  readonly checkpoint?: Checkpoint;
}

/** Values that are no inputs: load of engines, freshness. The latest of each kind is enough. */
export interface Observation {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** Where the console gets a run from. Records are lines of the journal, as they are in the file. */
export interface ConsoleSource {
  /** For people: a directory, a URL. */
  readonly name: string;
  readonly live: boolean;
  /** Undefined as long as nothing is recorded. */
  head(): Promise<RunHead | undefined>;
  /** Sequence number of the last record there is; 0 when there is none. */
  last(): number;
  /** The lines that there are, from a sequence number on. */
  lines(from: number): AsyncIterable<SourceLine>;
  /** Calls back whenever there may be more lines. Returns how to stop. */
  watch(more: () => void): () => void;
  /** Latest observations, where the source is a running coordinator. */
  observations?(): readonly Observation[];
}

export interface SourceLine {
  readonly seq: number;
  readonly text: string;
}

export interface StoreSourceOptions {
  /** How often to look for new records (milliseconds). */
  readonly pollMs?: number;
  /** False for a journal that nobody writes any more. */
  readonly live?: boolean;
  /** A coordinator in this process calls back after each step, so that nothing waits for a poll. */
  readonly onStep?: (more: () => void) => () => void;
  readonly observations?: () => readonly Observation[];
}

/**
 * A journal in a store, read while its owner may be writing it: records are kept as lines, and only what is new is read again.
 * Throws what reading a journal throws (`JournalError`).
 */
export function storeSource(store: JournalStore, options: StoreSourceOptions = {}): ConsoleSource {
  const { pollMs = 250, live = true } = options;
  let run: string | undefined;
  let first = 1;
  let texts: string[] = [];
  let place: Place | undefined;
  let head: RunHead | undefined;

  const refresh = (): boolean => {
    const reader = new JournalReader(store.segments());
    const { header, checkpoint } = reader;
    if (header === undefined) return false;
    const began = (checkpoint?.system.seq ?? 0) + 1;
    if (header.run !== run || began > first + texts.length) {
      [run, first, texts, place] = [header.run, began, [], undefined];
    }
    head = { header, ...(checkpoint ? { checkpoint } : {}) };
    const before = texts.length;
    const resume = place !== undefined && reader.heads.some((h) => h.segment.name === place!.file);
    if (!resume) [first, texts] = [began, []];
    for (const found of reader.records(resume ? place : undefined)) {
      if (found.record.seq < first + texts.length) continue;
      texts.push(found.place.text);
      place = found.place;
    }
    return texts.length !== before;
  };

  return {
    name: store.name,
    live,
    head: () => {
      refresh();
      return Promise.resolve(head);
    },
    last: () => first + texts.length - 1,
    async *lines(from) {
      for (let i = Math.max(0, from - first); i < texts.length; i++) {
        yield { seq: first + i, text: texts[i]! };
      }
    },
    watch: (more) => {
      const look = (): void => {
        if (refreshQuietly(refresh)) more();
      };
      const stop = options.onStep?.(look);
      const timer = live && options.onStep === undefined ? setInterval(look, pollMs) : undefined;
      return () => {
        stop?.();
        clearInterval(timer);
      };
    },
    ...(options.observations ? { observations: options.observations } : {}),
  };
}

/** While a segment is being changed by its owner a read may find it half done: the next look finds it whole. */
function refreshQuietly(refresh: () => boolean): boolean {
  try {
    return refresh();
  } catch {
    return false;
  }
}

/** No run: the page waits for a file that is dropped onto it. */
export const emptySource: ConsoleSource = {
  name: "nothing yet",
  live: false,
  head: () => Promise.resolve(undefined),
  last: () => 0,
  async *lines() {},
  watch: () => () => {},
};
