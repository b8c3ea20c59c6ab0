/** Signs of life of ranks that serve: asked for all the time, and reported only when they stop. */
import { utilities, type WireRank } from "../protocol/mod.ts";
import type { EngineBus } from "./zmq/engine-bus.ts";

export interface Pulse {
  /** Who wants to know. */
  readonly holder: string;
  readonly rank: WireRank;
  /** From one answer to the next question. */
  readonly everyMs: number;
  /** An answer that takes longer is none. */
  readonly withinMs: number;
}

export interface PulsesOptions {
  /** Where to ask, at the moment. */
  readonly bus: () => Promise<EngineBus | undefined>;
  /** Called once for a pulse, when an answer stays away. */
  readonly unresponsive: (holder: string, afterMs: number, why: string | null) => void;
}

/** Ids of calls that no effect has: those are below 2^63. */
const FIRST_CALL_ID = 1n << 63n;

/** A rank that is watched: it rests until the timer, or is being asked. */
interface Watched {
  readonly pulse: Pulse;
  timer?: ReturnType<typeof setTimeout>;
  abandon?: (() => void) | undefined;
  dropped: boolean;
}

export class Pulses {
  readonly #options: PulsesOptions;
  readonly #watched = new Map<string, Watched>();
  #calls = 0n;

  constructor(options: PulsesOptions) {
    this.#options = options;
  }

  watch(name: string, pulse: Pulse): void {
    if (this.#watched.has(name)) return;
    const watched: Watched = { pulse, dropped: false };
    this.#watched.set(name, watched);
    this.#rest(watched);
  }

  drop(name: string): void {
    const watched = this.#watched.get(name);
    if (watched === undefined) return;
    this.#watched.delete(name);
    watched.dropped = true;
    clearTimeout(watched.timer);
    watched.abandon?.();
  }

  close(): void {
    for (const name of [...this.#watched.keys()]) this.drop(name);
  }

  #rest(watched: Watched): void {
    watched.timer = setTimeout(() => void this.#ask(watched), watched.pulse.everyMs);
  }

  async #ask(watched: Watched): Promise<void> {
    const { holder, rank, withinMs } = watched.pulse;
    const engines = await this.#options.bus();
    if (watched.dropped || engines === undefined) return;
    const callId = String(FIRST_CALL_ID | this.#calls++);
    watched.abandon = () => engines.abandon(callId);
    const outcome = await engines.call({
      rank,
      callId,
      utility: utilities.isSchedulerPaused(),
      deadlineMs: withinMs,
    });
    watched.abandon = undefined;
    if (watched.dropped) return;
    // Releases that do not know the method say so, which is as good a sign as any.
    if (outcome.type === "replied" || outcome.type === "failed") this.#rest(watched);
    else if (outcome.type === "late") {
      this.#options.unresponsive(holder, outcome.afterMs, outcome.why);
    }
  }
}
