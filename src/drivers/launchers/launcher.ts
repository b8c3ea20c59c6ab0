/**
 * Where engines are started: on this host by the keeper, by vLLM's own command, or as jobs of a Ray cluster. One interface for all. A launcher
 * carries out and reports; what an exit means, and whether to start again, is decided by machines (`planning/restarts`).
 */

/** One process to start: an engine, or a launcher of several ranks that live and die with it. */
export interface LaunchOrder {
  /** Unique among all attempts: the same id again never starts a second process. */
  readonly id: string;
  /** The ranks that it runs. */
  readonly ranks: readonly number[];
  readonly argv: readonly string[];
  /** What the process gets beside, and instead of, what its launcher passes on. */
  readonly env: Readonly<Record<string, string>>;
  /** Null: the launcher's own. */
  readonly cwd: string | null;
}

/** A launch that was accepted. */
export interface Launched {
  readonly id: string;
  /** Where it runs, in words: a host, a node's id. */
  readonly where: string;
  /** Null where it is not known (yet). */
  readonly pid: number | null;
}

/** How a launch ended. */
export type End =
  | { readonly kind: "exit"; readonly code: number }
  | { readonly kind: "signal"; readonly signal: string }
  /** It never ran. */
  | { readonly kind: "not-started"; readonly text: string }
  /** It is gone, and nobody can know how: its keeper or its node was lost. Never guessed. */
  | { readonly kind: "unknown"; readonly text: string };

export interface LaunchExit {
  readonly id: string;
  readonly ranks: readonly number[];
  readonly end: End;
  /** This launcher was told to stop it. */
  readonly asked: boolean;
  /** Last lines of its output. */
  readonly tail: readonly string[];
  /** Wall clock, milliseconds. */
  readonly at: number;
}

export interface Stopped {
  /** It had to be killed because it outlived the deadline. */
  readonly killed: boolean;
  /** It could not be seen to end. */
  readonly left: boolean;
}

export interface Launcher<Order extends { readonly id: string } = LaunchOrder> {
  /** `local`, `vllm`, `ray`. */
  readonly kind: string;
  /**
   * Starts a process. What cannot be started there is an exit (`not-started`); what cannot be asked for is an error.
   * @throws LauncherError
   */
  start(order: Order): Promise<Launched>;
  /** Ends a launch: politely, and by force after `deadlineMs`. Resolves when it is gone. One that has ended is no error. */
  stop(id: string, deadlineMs: number): Promise<Stopped>;
  /** Tells of every launch that ends, once, also of those that ended before anybody listened. Returns how to stop listening. */
  exited(listener: (exit: LaunchExit) => void): () => void;
  /** The last lines of a launch's output, also after its end. */
  logs(id: string, lines?: number): Promise<readonly string[]>;
  /** Ends everything that was started and gives up what is held. */
  close(deadlineMs?: number): Promise<void>;
}

export type LauncherErrorCode =
  /** The order itself is wrong. */
  | "launch-refused"
  /** A program that is needed is not installed. */
  | "program-missing"
  /** The one who would start it cannot be reached. */
  | "launcher-unreachable"
  /** There is no launch of this id. */
  | "unknown-launch";

export class LauncherError extends Error {
  readonly code: LauncherErrorCode;
  constructor(code: LauncherErrorCode, message: string) {
    super(message);
    this.name = "LauncherError";
    this.code = code;
  }
}

/** Exits on their way to listeners: nothing is lost before the first one listens. */
export class Exits {
  readonly #listeners = new Set<(exit: LaunchExit) => void>();
  #waiting: LaunchExit[] = [];

  tell(exit: LaunchExit): void {
    if (this.#listeners.size === 0) this.#waiting.push(exit);
    for (const listener of this.#listeners) listener(exit);
  }

  listen(listener: (exit: LaunchExit) => void): () => void {
    this.#listeners.add(listener);
    for (const exit of this.#waiting.splice(0)) listener(exit);
    return () => this.#listeners.delete(listener);
  }
}

/** How a launch ended, in words. */
export function endText(end: End): string {
  switch (end.kind) {
    case "exit":
      return `ended with exit code ${end.code}`;
    case "signal":
      return `was ended by ${end.signal}`;
    case "not-started":
      return `could not be started: ${end.text}`;
    case "unknown":
      return `is gone, and how it ended is not known: ${end.text}`;
  }
}
