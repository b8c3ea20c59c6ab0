/** A search under somebody's eyes: how far it is, Ctrl-C, and an end before memory runs out. */
import { freemem } from "node:os";
import process from "node:process";
import { getHeapStatistics } from "node:v8";
import type { Progress, StopReason } from "../../checker/mod.ts";
import { LiveBlock, terminal } from "../terminal.ts";

/** Where nobody sees a screen, a line is written after so long, and then so often. */
const FIRST_LINE_S = 2;
const LINE_EVERY_S = 10;

export interface WatchOptions {
  /** How many states there may be. */
  readonly limit?: number | undefined;
  /** Where progress goes. Default standard error, live if it is a terminal. */
  readonly screen?: { readonly live: boolean; readonly write: (text: string) => void };
}

/** Shows how far a search is, and says when it has to end. */
export class Watch {
  readonly #name: string;
  readonly #limit: number | undefined;
  readonly #block: LiveBlock;
  readonly #lines: ((text: string) => void) | undefined;
  readonly #abort = new AbortController();
  readonly #onSignal = (): void => this.#abort.abort();
  readonly #estimate = new Estimate();
  #nextLineAt = FIRST_LINE_S;

  constructor(name: string, { limit, screen }: WatchOptions = {}) {
    this.#name = name;
    this.#limit = limit;
    const { live, write } = screen ?? {
      live: process.stderr.isTTY === true,
      write: (text: string) => void process.stderr.write(text),
    };
    this.#lines = live ? undefined : write;
    this.#block = new LiveBlock({
      ...terminal(),
      columns: live ? process.stderr.columns || 100 : Infinity,
      rows: process.stderr.rows || 40,
      live,
      write,
    });
    // The second one ends the process as ever.
    process.once("SIGINT", this.#onSignal);
    process.once("SIGTERM", this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  readonly onProgress = (progress: Progress): void | StopReason => {
    this.draw(progressLine(progress, this.#limit, this.#estimate), progress.seconds);
    if (memoryEnds()) return "memory";
  };

  /** Shows how far it is, in one line. */
  draw(line: string, seconds: number): void {
    this.#block.draw([this.#name, `  ${line}`]);
    if (this.#lines !== undefined && seconds >= this.#nextLineAt) {
      this.#nextLineAt = seconds + LINE_EVERY_S;
      this.#lines(`${this.#name}: ${line}\n`);
    }
  }

  /** Takes what is on the screen away. */
  clear(): void {
    this.#block.draw([]);
  }

  /** Shows nothing any more, and lets signals be. */
  end(): void {
    this.clear();
    process.off("SIGINT", this.#onSignal);
    process.off("SIGTERM", this.#onSignal);
  }
}

/** Whether a table that doubles could be too much. */
function memoryEnds(): boolean {
  const { used_heap_size, heap_size_limit } = getHeapStatistics();
  // Deno has no such limit to tell.
  if (heap_size_limit > 0 && used_heap_size > 0.9 * heap_size_limit) return true;
  return freemem() < Math.max(256 * 2 ** 20, 0.1 * process.memoryUsage().rss);
}

/** How long a search may still take, from how many new states the states of late led to. */
export class Estimate {
  readonly #past: Progress[] = [];

  /** In seconds: the states that are known now; and with those that they lead to. Undefined while there are more and more. */
  of(now: Progress): { readonly least: number; readonly about: number } | undefined {
    this.#past.push(now);
    if (this.#past.length > 10) this.#past.shift();
    const [then] = this.#past as [Progress];
    const left = (now.states - now.frontier) - (then.states - then.frontier);
    const seconds = now.seconds - then.seconds;
    if (left <= 0 || seconds <= 0) return undefined;
    // So many new ones for each one that was left.
    const growth = (now.states - then.states) / left;
    const least = now.frontier / (left / seconds);
    return growth < 1 ? { least, about: least / (1 - growth) } : undefined;
  }
}

const grouped = (n: number): string => Math.round(n).toLocaleString("en-US");

/** How far a search is, in one line. */
export function progressLine(
  progress: Progress,
  limit: number | undefined,
  estimate: Estimate,
): string {
  const { states, depth, frontier, seconds } = progress;
  const rate = states / Math.max(seconds, 0.001);
  const left = estimate.of(progress);
  const parts = [
    `${grouped(states)} states`,
    `depth ${depth}`,
    `frontier ${grouped(frontier)}`,
    `${grouped(rate)} states a second`,
    `${seconds.toFixed(1)} s`,
  ];
  if (limit !== undefined) parts.push(`at most ${((limit - states) / rate).toFixed(0)} s more`);
  else if (left === undefined) parts.push("still growing");
  else parts.push(`about ${left.about.toFixed(0)} s more (${left.least.toFixed(0)} at least)`);
  return parts.join(", ");
}
