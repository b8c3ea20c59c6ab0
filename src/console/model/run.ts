import { ChartTracker, TrackedCharts } from "../../charts/mod.ts";
import { type Applied, type Checkpoint, digestOf, type JournalRecord } from "../../journal/mod.ts";
import type { Fold, Kernel, System } from "../../kernel/mod.ts";
import { type Effect, machines, type Resource } from "../../machines/mod.ts";
import { type ClusterStatus, StatusFold } from "../../view/mod.ts";

/** What is known of a record without folding again: one byte each, for the table and the marks on the slider. */
export const MARK = { note: 1, failure: 2, moved: 4 } as const;

/** Everything that the page shows of one moment: after the record with this sequence number. */
export interface Moment {
  readonly seq: number;
  readonly at: number;
  readonly system: System;
  readonly status: ClusterStatus;
  readonly tracker: ChartTracker;
  /** What the record at this moment led to; absent before the first. */
  readonly applied: Applied | undefined;
}

/** A record that today's charts cannot apply (the fold ends there), or answer differently than when it was written. */
export interface Divergence {
  readonly seq: number;
  readonly text: string;
  readonly ends: boolean;
}

interface Cached {
  readonly index: number;
  readonly system: System;
  readonly status: StatusFold;
  readonly tracker: ChartTracker;
}

/** Records between two cached moments: a jump costs at most so many steps. */
const SPACING = 500;

/**
 * A run and every moment of it: records are folded once as they come, a moment every few hundred records is kept, and any other
 * is a short fold from the nearest. Nothing is a second truth: throw it away, and the records give it again.
 */
export class RunHistory {
  readonly records: JournalRecord[] = [];
  /** Marks of each record, by its index. */
  readonly marks: number[] = [];
  /** The first record that does not fit. */
  divergence: Divergence | undefined;
  readonly #kernel: Kernel<Effect, Resource>;
  readonly #fold: Fold;
  readonly #status = new StatusFold();
  readonly #tracker: ChartTracker;
  readonly #cached: Cached[] = [];
  /** How many records were folded: all, unless one diverged. */
  #folded = 0;
  #lastApplied: Applied | undefined;

  constructor(kernel: Kernel<Effect, Resource>, charts?: TrackedCharts, checkpoint?: Checkpoint) {
    this.#kernel = kernel;
    this.#tracker = new ChartTracker(charts ?? new TrackedCharts(machines));
    this.#fold = kernel.fold(checkpoint ? kernel.load(checkpoint.system) : kernel.empty);
    this.#keep();
  }

  /** Sequence number of the first record; 1 unless the journal was compacted. */
  get first(): number {
    return this.records[0]?.seq ?? 1;
  }

  get last(): number {
    return this.records.at(-1)?.seq ?? this.first - 1;
  }

  /** Takes records that follow those there are; earlier ones (sent again after a reconnect) are skipped. */
  append(records: Iterable<JournalRecord>): void {
    for (const record of records) {
      if (record.seq <= this.last && this.records.length > 0) continue;
      this.records.push(record);
      this.marks.push(this.divergence?.ends ? 0 : this.#apply(record));
    }
  }

  /** The moment after the record with this sequence number; clamped to what there is. */
  at(seq: number): Moment {
    const index = Math.min(Math.max(seq - this.first + 1, 0), this.#folded);
    if (index === this.#folded) {
      return this.#moment(
        index,
        this.#fold.system(),
        this.#status,
        this.#tracker,
        this.#lastApplied,
      );
    }
    const start = this.#nearest(index);
    const fold = this.#kernel.fold(start.system);
    const status = start.status.clone();
    const tracker = start.tracker.clone();
    let applied: Applied | undefined;
    for (let i = start.index; i < index; i++) {
      applied = fold.apply(this.records[i]!);
      status.apply(applied);
      tracker.apply(applied.transitions);
    }
    if (index > 0 && applied === undefined) applied = this.#again(index - 1);
    return this.#moment(index, fold.system(), status, tracker, applied);
  }

  /** What the records of a stretch led to, for diagrams; both ends included. */
  between(from: number, to: number): readonly Applied[] {
    const begin = Math.max(0, from - this.first);
    const end = Math.min(this.#folded, to - this.first + 1);
    const start = this.#nearest(begin);
    const fold = this.#kernel.fold(start.system);
    const found: Applied[] = [];
    for (let i = start.index; i < end; i++) {
      const applied = fold.apply(this.records[i]!);
      if (i >= begin) found.push(applied);
    }
    return found;
  }

  /** The next (or previous) record with one of these marks, from a sequence number on. */
  seek(from: number, mark: number, direction: 1 | -1): number | undefined {
    for (let i = from - this.first + direction; i >= 0 && i < this.marks.length; i += direction) {
      if (this.marks[i]! & mark) return i + this.first;
    }
    return undefined;
  }

  #apply(record: JournalRecord): number {
    const failedBefore = this.#status.failed;
    let applied: Applied;
    try {
      applied = this.#fold.apply(record);
    } catch (error) {
      const text = `record ${record.seq} cannot be applied by today's charts: ${
        (error as Error).message
      }`;
      this.divergence = { seq: record.seq, text, ends: true };
      return 0;
    }
    if (!this.divergence && record.digest !== "" && this.#differs(record, applied)) {
      this.divergence = {
        seq: record.seq,
        text:
          "today's charts lead to something else than was recorded: another version wrote this journal, or it was altered",
        ends: false,
      };
    }
    this.#folded++;
    this.#lastApplied = applied;
    this.#status.apply(applied);
    this.#tracker.apply(applied.transitions);
    if (this.#folded % SPACING === 0) this.#keep();
    return (applied.notes.length > 0 ? MARK.note : 0) |
      (!failedBefore && this.#status.failed ? MARK.failure : 0) |
      (applied.transitions.some((t) => t.before !== t.after) ? MARK.moved : 0);
  }

  #differs(record: JournalRecord, applied: Applied): boolean {
    if (record.digest.slice(0, 16) !== this.#fold.digest()) return true;
    if (applied.effects.length === 0) return false;
    return digestOf(this.#fold.system(), applied.effects) !== record.digest;
  }

  #keep(): void {
    this.#cached.push({
      index: this.#folded,
      system: this.#fold.system(),
      status: this.#status.clone(),
      tracker: this.#tracker.clone(),
    });
  }

  #nearest(index: number): Cached {
    return this.#cached[Math.min(Math.floor(index / SPACING), this.#cached.length - 1)]!;
  }

  /** What a record led to, when the moment itself was cached. */
  #again(index: number): Applied | undefined {
    return this.between(this.records[index]!.seq, this.records[index]!.seq)[0];
  }

  #moment(
    index: number,
    system: System,
    status: StatusFold,
    tracker: ChartTracker,
    applied: Applied | undefined,
  ): Moment {
    const record = this.records[index - 1];
    return {
      seq: record?.seq ?? this.first - 1,
      at: record?.at ?? this.records[0]?.at ?? 0,
      system,
      status: status.status(),
      tracker,
      applied,
    };
  }
}
