/** What keeps restarts quick and the journal small: snapshots and compaction. */
import { FORMAT, type Header, type OwnedJournal, structuresOf } from "../journal/mod.ts";
import type { Kernel, KernelEvent, Typed } from "../kernel/mod.ts";
import type { SteadyTime } from "./clock.ts";
import { textOf } from "./error.ts";
import type { Logger } from "./logger.ts";
import type { Pipeline } from "./pipeline.ts";
import type { Views } from "./views.ts";

export interface UpkeepOptions {
  /** Inputs between snapshots (default 10,000; 0: none). A snapshot is a cache: it makes a restart quick, nothing else. */
  readonly snapshotEvery?: number;
  /**
   * Bytes of journal after which its past is replaced by a checkpoint (default 64 MiB; 0: never). Time travel and forks reach back to the
   * last checkpoint.
   */
  readonly compactAfterBytes?: number;
}

export interface UpkeepParts<E extends Typed, R extends Typed> {
  readonly kernel: Kernel<E, R>;
  readonly journal: OwnedJournal;
  readonly pipeline: Pipeline<E, R>;
  readonly views: Views;
  readonly time: SteadyTime;
  readonly logger: Logger;
  readonly run: string;
  readonly configuration: KernelEvent;
  /** For a fork: what its headers go on saying. */
  readonly origin: Pick<Header, "forkOf">;
  /** The record from which the present process would start again. */
  readonly from: number;
}

const WORTH_A_SNAPSHOT = 1000;

/** The header of a segment that begins now. */
export const headerOf = <E extends Typed, R extends Typed>(
  kernel: Kernel<E, R>,
  facts: Omit<Header, "journal" | "format" | "machines">,
): Header => ({ journal: "muster", format: FORMAT, ...facts, machines: structuresOf(kernel) });

export class Upkeep<E extends Typed, R extends Typed> {
  readonly #parts: UpkeepParts<E, R>;
  readonly #snapshotEvery: number;
  readonly #compactAfter: number;
  readonly #machines: Readonly<Record<string, string>>;
  #snapshotAt: number;
  #saving: Promise<void> | undefined;
  #compacting: Promise<void> | undefined;

  constructor(options: UpkeepOptions, parts: UpkeepParts<E, R>) {
    this.#parts = parts;
    this.#snapshotEvery = options.snapshotEvery || Infinity;
    this.#compactAfter = options.compactAfterBytes || Infinity;
    this.#machines = structuresOf(parts.kernel);
    this.#snapshotAt = parts.from;
  }

  /** Asked after each step forward: does what has become due. Rejects when a compaction failed. */
  async attend(): Promise<void> {
    const { journal, pipeline } = this.#parts;
    if (this.#compacting !== undefined) return;
    if (journal.bytes >= this.#compactAfter) return await this.compact();
    if (pipeline.seq - this.#snapshotAt >= this.#snapshotEvery) void this.snapshot();
  }

  /** The process is about to end: saves the state when replaying it would take noticeable time. */
  async settle(): Promise<void> {
    if (this.#parts.pipeline.seq - this.#snapshotAt >= WORTH_A_SNAPSHOT) {
      await this.snapshot();
    }
  }

  /** Saves the state as it is now. A cache that cannot be written is a warning. */
  snapshot(): Promise<void> {
    const { kernel, journal, pipeline, views, logger, run, configuration } = this.#parts;
    const { place, system } = pipeline;
    if (this.#saving !== undefined) return this.#saving;
    if (place === undefined || system.seq === this.#snapshotAt) return Promise.resolve();
    this.#snapshotAt = system.seq;
    this.#saving = journal.saveSnapshot({
      format: FORMAT,
      run,
      machines: this.#machines,
      place,
      system: kernel.save(system),
      configuration,
      views: views.save(),
    }).catch((error) => {
      logger.warn({ err: error }, `no snapshot was saved: ${textOf(error)}`);
    }).finally(() => this.#saving = undefined);
    return this.#saving;
  }

  /** Replaces the journal's past by a checkpoint. Inputs wait meanwhile. */
  compact(): Promise<void> {
    this.#compacting ??= this.#compact().finally(() => this.#compacting = undefined);
    return this.#compacting;
  }

  /** Resolves when nothing is under way. */
  async rest(): Promise<void> {
    await this.#compacting?.catch(() => {});
    await this.#saving;
  }

  async #compact(): Promise<void> {
    const { kernel, journal, pipeline, views, time, run, configuration, origin } = this.#parts;
    if (pipeline.place === undefined) return; // nothing was recorded since the last beginning
    pipeline.hold();
    await pipeline.drained();
    const { system } = pipeline;
    if (pipeline.durable < system.seq) return; // the host failed meanwhile
    await this.#saving;
    await journal.begin(
      headerOf(kernel, {
        ...origin,
        run,
        fence: journal.fence,
        first: system.seq + 1,
        at: time.now(),
      }),
      { system: kernel.save(system), configuration, views: views.save() },
    );
    pipeline.place = undefined;
    this.#snapshotAt = system.seq;
    pipeline.go();
  }
}
