/**
 * From inputs to safe results: queue, step, append, write, sync. A group of inputs shares one write, and one sync serves everything
 * that was written before it began.
 */
import { digestOf, EventTexts, type OwnedJournal, type Place } from "../journal/mod.ts";
import type {
  Applied,
  Fold,
  InstanceId,
  Kernel,
  KernelEvent,
  System,
  Typed,
} from "../kernel/mod.ts";
import type { SteadyTime } from "./clock.ts";
import { HostError, textOf } from "./error.ts";

/** An input that waits for its turn. */
export interface Waiting<E extends Typed, R extends Typed> {
  readonly to: InstanceId;
  readonly event: KernelEvent;
  /** Called when the input is durable. */
  readonly safe?: ((result: Applied<E, R>) => void) | undefined;
  /** Called instead when it will never be: somebody waits for an answer, and a step that cannot be computed is his error alone. */
  readonly refused?: ((error: unknown) => void) | undefined;
}

/** What the pipeline tells its host. */
export interface PipelineHooks<E extends Typed, R extends Typed> {
  /** An input was stepped and written. */
  applied(result: Applied<E, R>): void;
  /** More is in the journal, or safe: effects may leave. */
  moved(appended: number, durable: number): void;
  /** Nothing more is done. */
  failed(error: unknown): void;
}

export interface PipelineParts<E extends Typed, R extends Typed> {
  readonly kernel: Kernel<E, R>;
  readonly journal: OwnedJournal;
  readonly time: SteadyTime;
  readonly redact: ((to: InstanceId, event: KernelEvent) => KernelEvent) | undefined;
  /** After every input: the system as the journal has it, instead of the one in hand. */
  readonly rebuild: (() => System) | undefined;
  readonly hooks: PipelineHooks<E, R>;
}

/** Inputs that are stepped before they are written together. */
const GROUP = 1024;

export class Pipeline<E extends Typed, R extends Typed> {
  /** Sequence numbers: up to here inputs are in the journal, up to there safe. */
  appended: number;
  durable: number;
  /** Where the last record stands. */
  place: Place | undefined;

  readonly #parts: PipelineParts<E, R>;
  readonly #events = new EventTexts();
  #fold: Fold;
  #queue: Waiting<E, R>[] = [];
  /** Written, not yet safe, and somebody waits. */
  #unsafe: { readonly result: Applied<E, R>; readonly waiting: Waiting<E, R> }[] = [];
  #pumping = false;
  #asked = false;
  #held = true;
  #over: Error | undefined;
  #committing: Promise<void> | undefined;

  constructor(system: System, parts: PipelineParts<E, R>) {
    this.#parts = parts;
    this.#fold = parts.kernel.fold(system);
    this.appended = this.durable = system.seq;
  }

  /** The system after the last input. */
  get system(): System {
    return this.#fold.system();
  }

  /** Sequence number of the last input. */
  get seq(): number {
    return this.#fold.seq;
  }

  /** Takes an input; it is stepped before the next turn of the event loop, together with what arrives at the same moment. */
  put(waiting: Waiting<E, R>): void {
    if (this.#over !== undefined) return waiting.refused?.(this.#over);
    this.#queue.push(waiting);
    if (this.#asked || this.#held) return;
    this.#asked = true;
    queueMicrotask(() => {
      this.#asked = false;
      this.pump();
    });
  }

  /** Takes an input before all others that wait. */
  putFirst(waiting: Waiting<E, R>): void {
    this.#queue.unshift(waiting);
  }

  /** Inputs wait from now on. The pipeline begins like this. */
  hold(): void {
    this.#held = true;
  }

  /** Inputs are stepped again. */
  go(): void {
    this.#held = false;
    this.pump();
  }

  /** Steps everything that waits. */
  pump(): void {
    if (this.#pumping || this.#held || this.#over !== undefined) return;
    this.#pumping = true;
    try {
      while (this.#queue.length > 0 && !this.#held) this.#group();
      this.#commit();
    } catch (error) {
      this.#parts.hooks.failed(error);
    } finally {
      this.#pumping = false;
    }
  }

  /** Resolves when everything that was written is safe, or nothing more will be. */
  async drained(): Promise<void> {
    while (this.#committing !== undefined) await this.#committing;
  }

  /** Nothing is taken or answered any more but with this error. */
  end(error: Error): void {
    if (this.#over !== undefined) return;
    this.#over = error;
    const told = [...this.#unsafe.map((u) => u.waiting), ...this.#queue];
    this.#unsafe = [];
    this.#queue = [];
    for (const { refused } of told) refused?.(error);
  }

  #group(): void {
    const results: Applied<E, R>[] = [];
    const { kernel, journal, hooks, rebuild } = this.#parts;
    const base = this.#fold.system();
    const most = rebuild === undefined ? GROUP : 1;
    const group = this.#queue.slice(0, most);
    let taken = 0;
    try {
      for (const waiting of group) {
        const result = this.#step(waiting, base, results);
        taken++;
        if (result === undefined) continue;
        results.push(result);
        if (waiting.safe !== undefined || waiting.refused !== undefined) {
          this.#unsafe.push({ result, waiting });
        }
      }
    } finally {
      this.#queue.splice(0, taken);
    }
    journal.write();
    this.appended = this.seq;
    if (rebuild !== undefined) this.#fold = kernel.fold(rebuild());
    for (const result of results) hooks.applied(result);
    hooks.moved(this.appended, this.durable);
  }

  /** One input; `base` and `before` are where the group began and what it has come to so far. */
  #step(
    { to, event, refused }: Waiting<E, R>,
    base: System,
    before: readonly Applied<E, R>[],
  ): Applied<E, R> | undefined {
    const { kernel, journal, time, redact } = this.#parts;
    let text: string;
    let result: Applied<E, R>;
    try {
      // What is stepped is what is kept, also where JSON changes a value.
      const said = this.#events.saidBy(redact?.(to, event) ?? event);
      text = said.text;
      const input = { seq: this.seq + 1, at: time.now(), to, event: said.event };
      result = this.#fold.apply(input, text) as unknown as Applied<E, R>;
    } catch (cause) {
      // It may have been left half-way.
      this.#fold = kernel.fold(base);
      for (const { input } of before) this.#fold.apply(input);
      const error = new HostError(
        "host-step",
        `${event.type} to ${to} cannot be stepped: ${textOf(cause)}`,
        cause,
      );
      if (refused === undefined) throw error;
      refused(error);
      return undefined;
    }
    const { seq, at } = result.input;
    const digest = digestOf(this.#fold, result.effects);
    this.place = journal.append({ seq, fence: journal.fence, at, to, digest }, text);
    return result;
  }

  #commit(): void {
    if (this.#committing !== undefined || this.durable >= this.appended) return;
    const seq = this.appended;
    this.#committing = this.#parts.journal.commit().then(
      () => {
        this.#committing = undefined;
        if (this.#over !== undefined) return;
        this.durable = seq;
        this.#parts.hooks.moved(this.appended, seq);
        while (this.#unsafe.length > 0 && this.#unsafe[0]!.result.input.seq <= seq) {
          const { waiting, result } = this.#unsafe.shift()!;
          waiting.safe?.(result);
        }
        this.#commit();
      },
    ).catch((error) => {
      this.#committing = undefined;
      this.#parts.hooks.failed(error);
    });
  }
}
