/**
 * The load of every engine as the DP coordinator relays it (wire spec, 5.3 and rules E1 to E4): a table beside the system,
 * because each report is superseded by the next one.
 *
 * Engines of one wave step together. When the first report of a new step arrives, the rows of the step before are
 * complete and kept as a snapshot, so that what is published belongs to one step.
 */

/** One engine's row. */
export interface EngineLoad {
  readonly waiting: number;
  readonly running: number;
  /** A fraction; absent in reports of older releases. */
  readonly kvCacheUsage?: number;
}

export interface LoadReport extends EngineLoad {
  readonly wave: number;
  readonly step: number;
}

/** What became of a report. `late`: an engine that is behind the others, or has restarted; its row counts all the same. */
export type Recorded = "taken" | "late" | "no-such-engine";

export class LoadTable {
  #rows: EngineLoad[];
  /** When each row was written; wall-clock milliseconds, 0 for never. */
  #writtenAt: number[];
  #last: readonly [wave: number, step: number] = [-1, -1];
  #snapshot: readonly EngineLoad[] | null = null;
  #changed = false;
  /** Reports of engines that are not (or no longer) in the table. */
  dropped = 0;
  /** Reports behind the last step. */
  late = 0;
  /** Reports that were taken, late ones too. */
  recorded = 0;
  /** Are reports ordered by step? Only where waves are coordinated. */
  readonly #ordered: boolean;

  constructor(engines: number, ordered: boolean) {
    this.#rows = Array.from({ length: engines }, empty);
    this.#writtenAt = new Array(engines).fill(0);
    this.#ordered = ordered;
  }

  get size(): number {
    return this.#rows.length;
  }

  /** Is there something that was not published? */
  get changed(): boolean {
    return this.#changed || this.#snapshot !== null;
  }

  /** Is a complete step waiting to be published? */
  get stepComplete(): boolean {
    return this.#snapshot !== null;
  }

  record(engine: number, report: LoadReport, at: number): Recorded {
    if (!Number.isInteger(engine) || engine < 0 || engine >= this.#rows.length) {
      this.dropped++;
      return "no-such-engine";
    }
    this.recorded++;
    let recorded: Recorded = "taken";
    if (this.#ordered) {
      const order = compare([report.wave, report.step], this.#last);
      if (order > 0) {
        if (this.#changed) this.#snapshot = [...this.#rows];
        this.#last = [report.wave, report.step];
      } else if (order < 0) {
        this.late++;
        recorded = "late";
      }
    }
    const { waiting, running, kvCacheUsage } = report;
    this.#rows[engine] = kvCacheUsage === undefined
      ? { waiting, running }
      : { waiting, running, kvCacheUsage };
    this.#writtenAt[engine] = at;
    this.#changed = true;
    return recorded;
  }

  /** Another number of engines: new rows are empty, surplus ones go. */
  resize(engines: number): void {
    while (this.#rows.length < engines) {
      this.#rows.push(empty());
      this.#writtenAt.push(0);
    }
    this.#rows.length = engines;
    this.#writtenAt.length = engines;
    if (this.#snapshot !== null && this.#snapshot.length !== engines) this.#snapshot = null;
  }

  /** What is to be published now: the complete step if there is one, else what is known. */
  take(): readonly EngineLoad[] {
    if (this.#snapshot !== null) {
      const snapshot = this.#snapshot;
      this.#snapshot = null;
      return snapshot;
    }
    this.#changed = false;
    return [...this.#rows];
  }

  /** Rows with their age in milliseconds; null for an engine that never reported. */
  rows(now: number): (EngineLoad & { readonly ageMs: number | null })[] {
    return this.#rows.map((row, i) => {
      const at = this.#writtenAt[i]!;
      return { ...row, ageMs: at === 0 ? null : now - at };
    });
  }
}

const empty = (): EngineLoad => ({ waiting: 0, running: 0 });

const compare = (a: readonly [number, number], b: readonly [number, number]): number =>
  a[0] - b[0] || a[1] - b[1];
