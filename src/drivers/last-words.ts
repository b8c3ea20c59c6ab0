/**
 * `ENGINE_CORE_DEAD` says that some engine of a bus is dying, and not which. So everybody is asked for a sign of life, until one
 * cannot be reached any more: that one it was. An engine that is connected and says nothing (its peers wait for the dead one in
 * a collective) is left to the heartbeat.
 */
import { utilities, type WireRank } from "../protocol/mod.ts";
import type { EngineBus } from "./zmq/engine-bus.ts";

/** Ids of calls that neither effects nor heartbeats have. */
const FIRST_CALL_ID = 3n << 62n;

export interface LastWordsOptions {
  readonly bus: EngineBus;
  /** Everybody who has ever spoken on the bus. */
  readonly ranks: () => readonly WireRank[];
  /** This rank is not there any more. */
  readonly gone: (rank: WireRank) => void;
  /** From one question to the next. */
  readonly everyMs?: number;
  /** How often, before it is given up: a dying engine keeps its sockets for up to four seconds. */
  readonly times?: number;
}

export class LastWords {
  readonly #options: LastWordsOptions;
  #asking = false;
  #closed = false;
  #calls = 0n;

  constructor(options: LastWordsOptions) {
    this.#options = options;
  }

  /** Somebody said that it dies. While one is looked for, further words change nothing. */
  async heard(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    const { ranks, gone, times = 10 } = this.#options;
    let suspects = [...ranks()];
    for (let i = 0; i < times && suspects.length > 0 && !this.#closed; i++) {
      const answers = await Promise.all(suspects.map((rank) => this.#ask(rank)));
      if (this.#closed) return;
      const missing = suspects.filter((_, s) => answers[s] === "unreachable");
      for (const rank of missing) gone(rank);
      if (missing.length > 0) break;
      suspects = suspects.filter((_, s) => answers[s] === "silent");
      if (suspects.length === 0) suspects = [...ranks()]; // it answered, and dies all the same
    }
    this.#asking = false;
  }

  close(): void {
    this.#closed = true;
  }

  async #ask(rank: WireRank): Promise<"alive" | "silent" | "unreachable"> {
    const { bus, everyMs = 1_000 } = this.#options;
    const began = performance.now();
    const outcome = await bus.call({
      rank,
      callId: String(FIRST_CALL_ID | this.#calls++),
      utility: utilities.isSchedulerPaused(),
      deadlineMs: everyMs,
    });
    if (outcome.type === "late") return outcome.delivered ? "silent" : "unreachable";
    await new Promise((resolve) => setTimeout(resolve, began + everyMs - performance.now()));
    return "alive";
  }
}
