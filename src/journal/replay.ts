/** Records through a kernel: what recovery, replay, checking and time travel share. */
import {
  type Applied,
  effectsDigest,
  type Fold,
  hashText,
  hex,
  type Kernel,
  type System,
  type Typed,
} from "../kernel/mod.ts";
import { JournalError, type Place } from "./error.ts";
import type { JournalReader, PlacedRecord } from "./read.ts";
import type { JournalRecord } from "./record.ts";

export type { Applied };

/** The first record whose result is not the recorded one. */
export interface Difference {
  readonly place: Place;
  readonly record: JournalRecord;
  /** What differs: the state after the record, or what it asked of the world. */
  readonly what: "state" | "effects";
  readonly recorded: string;
  readonly computed: string;
  /** What the record leads to today. */
  readonly applied: Applied;
}

export interface ReplayOptions {
  /** Stop after this record (time travel). */
  readonly at?: number;
  /** Compare every digest, and stop at the first that differs. */
  readonly check?: boolean;
  /** Start with this system instead of the beginning: then `from` is where its record stands. */
  readonly system?: System;
  readonly from?: Place;
  /** Called after each record. */
  readonly each?: (applied: Applied, record: JournalRecord, fold: Fold) => void;
}

export interface Replay {
  readonly fold: Fold;
  /** How many records were applied. */
  readonly records: number;
  /** The last record applied, with where it stands. */
  readonly last: PlacedRecord | undefined;
  /** Only with `check`. */
  readonly difference: Difference | undefined;
}

/**
 * Applies the records of a journal, from its beginning (or its checkpoint, or a given system) on.
 *
 * @throws JournalError `journal-damaged`, `journal-incompatible`
 */
export function replay<E extends Typed, R extends Typed>(
  kernel: Kernel<E, R>,
  reader: JournalReader,
  options: ReplayOptions = {},
): Replay {
  const { at = Infinity, check = false, each } = options;
  const fold = kernel.fold(options.system ?? firstSystem(kernel, reader), check);
  let records = 0;
  let last: PlacedRecord | undefined;
  for (const placed of reader.records(options.from)) {
    const { record, eventText, place } = placed;
    if (options.from !== undefined && record.seq <= fold.seq) continue; // the snapshot's own record
    if (record.seq > at) break;
    const applied = applyTo(fold, record, eventText, place);
    records++;
    last = placed;
    each?.(applied, record, fold);
    if (check) {
      const difference = compare(fold, applied, record, place);
      if (difference !== undefined) return { fold, records, last, difference };
    }
  }
  return { fold, records, last, difference: undefined };
}

/** The system with which a journal begins: nothing, or its checkpoint. */
function firstSystem<E extends Typed, R extends Typed>(
  kernel: Kernel<E, R>,
  reader: JournalReader,
): System {
  const { checkpoint } = reader;
  if (checkpoint === undefined) return kernel.empty;
  try {
    return kernel.load(checkpoint.system);
  } catch (cause) {
    throw new JournalError(
      "journal-incompatible",
      `the checkpoint does not fit today's charts: ${(cause as Error).message}`,
      { cause, place: { file: reader.heads[0]!.segment.name, line: 2, offset: 0 } },
    );
  }
}

function applyTo(fold: Fold, record: JournalRecord, eventText: string, place: Place): Applied {
  try {
    return fold.apply(record, eventText);
  } catch (cause) {
    throw new JournalError(
      "journal-incompatible",
      `record ${record.seq} cannot be applied by today's charts: ${(cause as Error).message}`,
      { place, cause },
    );
  }
}

function compare(
  fold: Fold,
  applied: Applied,
  record: JournalRecord,
  place: Place,
): Difference | undefined {
  const state = record.digest.slice(0, 16);
  if (fold.digest() !== state) {
    return { place, record, what: "state", recorded: state, computed: fold.digest(), applied };
  }
  const recorded = record.digest.slice(16);
  const computed = effectsDigest(applied.effects);
  if (computed === recorded) return undefined;
  return { place, record, what: "effects", recorded, computed, applied };
}

/** A difference in one sentence. */
export const differenceText = ({ record, what, place }: Difference): string =>
  `record ${record.seq} (${record.event.type} to ${record.to}; ${place.file}, line ${place.line}, byte ${place.offset}) ` +
  (what === "state"
    ? "leads to another state than when it was recorded"
    : "asks something else of the world than when it was recorded");

/** The structural hash of every chart of a kernel: changes when a state, a transition or a name in it does. */
export function structuresOf<E extends Typed, R extends Typed>(
  kernel: Kernel<E, R>,
): Record<string, string> {
  return Object.fromEntries(
    [...kernel.locals].map(([name, { machine }]) => {
      return [name, hex(hashText(JSON.stringify(machine.config)))];
    }),
  );
}
