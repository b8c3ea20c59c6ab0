import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { performance } from "node:perf_hooks";
import { findMarked, type NodeSignal, readEntry, sendSignal } from "../process-table.ts";
import { findProgram, guarded, type NotStartable } from "./guardian.ts";
import {
  type ChildStatus,
  type ExitEvent,
  type Launch,
  LAUNCH_MARK,
  Refused,
  type StopReport,
} from "./protocol.ts";
import { rotate, sizeOf, tailOf } from "./tail.ts";

/** How many lines of a log an exit brings along. */
const EXIT_TAIL_LINES = 20;
/** A killed process that does not end within this time hangs in the kernel: reported, not awaited. */
const STUCK_AFTER_MS = 5000;
/** Between two looks at the process table while a launch's strays are being ended. */
const SWEEP_EVERY_MS = 10;
const SWEEP_ROUNDS = 20;
/** Between two looks at the sizes of logs. */
const ROTATE_EVERY_MS = 2000;
const MAX_LOG_BYTES = 64 * 1024 * 1024;
/** Exited and acknowledged launches that are still listed, at most. */
const REMEMBERED = 4096;

interface Child {
  readonly launch: Launch;
  readonly process: ChildProcess | null;
  readonly pid: number | null;
  readonly startTicks: number | null;
  exit: ExitEvent | null;
  readonly exited: Promise<void>;
}

/** The processes of one keeper: each launch a session and process group of its own, with a guardian in it. */
export class Children {
  readonly #mark: string;
  readonly #onExit: (exit: ExitEvent) => void;
  readonly #children = new Map<string, Child>();
  readonly #unacknowledged: ExitEvent[] = [];
  #exits = 0;
  #sweeping: Promise<void> | null = null;
  readonly #toSweep = new Map<string, number>();
  #strays: number | null = 0;

  constructor(mark: string, onExit: (exit: ExitEvent) => void) {
    this.#mark = mark;
    this.#onExit = onExit;
    setInterval(() => this.#rotateLogs(), ROTATE_EVERY_MS);
  }

  /** Starts a launch, or answers with the one of this id. What cannot be started is reported as an exit with an error. */
  spawn(launch: Launch): ChildStatus {
    const known = this.#children.get(launch.id);
    if (known !== undefined) return this.#statusOf(known);
    const mark = `${this.#mark}/${launch.id}`;
    const env = { ...launch.env, [LAUNCH_MARK]: mark, SPT_NOENV: "1" };
    const found = findProgram(launch.argv[0]!, launch.env.PATH, launch.cwd);
    let process: ChildProcess | null = null;
    let failed: NotStartable | { code: string; message: string } | null = "code" in found
      ? found
      : null;
    if (failed === null) {
      try {
        process = this.#start(launch, env);
      } catch (error) {
        const { code, message } = error as { code?: string; message: string };
        failed = { code: code ?? "spawn", message };
      }
    }
    let settle = (): void => {};
    const exited = new Promise<void>((resolve) => settle = resolve);
    const pid = process?.pid ?? null;
    const child: Child = {
      launch,
      process,
      pid,
      startTicks: pid === null ? null : readEntry(pid)?.startTicks ?? null,
      exit: null,
      exited,
    };
    this.#children.set(launch.id, child);
    const done = (
      code: number | null,
      signal: string | null,
      error?: { code: string; message: string },
    ): void => {
      if (child.exit !== null) return;
      this.#ended(child, code, signal, error);
      settle();
    };
    if (process === null) {
      // After the reply: a controller learns of the launch before it learns of its end.
      setTimeout(() => done(null, null, failed ?? undefined), 0);
    } else {
      process.on("exit", (code, signal) => done(code, signal));
      process.on("error", (error: Error & { code?: string }) => {
        if (child.pid === null) {
          done(null, null, { code: error.code ?? "spawn", message: error.message });
        }
      });
    }
    return this.#statusOf(child);
  }

  #start(launch: Launch, env: Record<string, string>): ChildProcess {
    mkdirSync(dirname(launch.log), { recursive: true, mode: 0o700 });
    const log = openSync(launch.log, "a", 0o600);
    try {
      const [file, args] = guarded(launch.argv);
      // Descriptor 3 is what the guardian waits on: held here, never written to, closed by the system when the keeper ends.
      return spawn(file, args, {
        cwd: launch.cwd,
        env,
        detached: true,
        stdio: ["ignore", log, log, "pipe"],
      });
    } finally {
      closeSync(log);
    }
  }

  #ended(
    child: Child,
    code: number | null,
    signal: string | null,
    error: { code: string; message: string } | undefined,
  ): void {
    const exit: ExitEvent = {
      seq: ++this.#exits,
      id: child.launch.id,
      pid: child.pid,
      code,
      signal,
      ...(error === undefined ? {} : { error }),
      tail: tailOf(child.launch.log, EXIT_TAIL_LINES),
      at: Date.now(),
    };
    child.exit = exit;
    if (child.pid !== null) {
      // The guardian, and whatever the leader left in its group. The group exists as long as they do, so its number is still ours.
      sendSignal(-child.pid, "SIGKILL");
      (child.process?.stdio[3] as { destroy?(): void } | null)?.destroy?.();
      this.#toSweep.set(`${this.#mark}/${child.launch.id}`, child.pid);
      this.#sweeping ??= this.#sweep();
    }
    this.#unacknowledged.push(exit);
    this.#onExit(exit);
  }

  /** Kills what ended launches left outside their groups: one look at the table for all of them, until nothing is left. */
  async #sweep(): Promise<void> {
    for (let round = 0; round < SWEEP_ROUNDS && this.#toSweep.size > 0; round++) {
      await pause(SWEEP_EVERY_MS);
      const sweep = new Map(this.#toSweep);
      const found = findMarked(LAUNCH_MARK, (mark) => sweep.has(mark));
      if (found === null) {
        this.#strays = null;
        this.#toSweep.clear();
        break;
      }
      for (const { pid, group, mark } of found) {
        if (sendSignal(pid, "SIGKILL") && group !== sweep.get(mark)) this.#strays! += 1;
      }
      const left = new Set(found.map((p) => p.mark));
      for (const mark of sweep.keys()) if (!left.has(mark)) this.#toSweep.delete(mark);
    }
    this.#toSweep.clear();
    this.#sweeping = null;
  }

  #rotateLogs(): void {
    for (const { launch, exit, pid } of this.#children.values()) {
      if (exit !== null || pid === null) continue;
      if (sizeOf(launch.log) > (launch.maxLogBytes ?? MAX_LOG_BYTES)) rotate(launch.log);
    }
  }

  /** @throws Refused `unknown-launch` */
  signal(id: string, signal: NodeSignal, scope: "group" | "leader"): boolean {
    const child = this.#get(id);
    // Whoever has not seen the exit of its own child may signal it: its pid cannot have been given away.
    if (child.pid === null || child.exit !== null) return false;
    return sendSignal(scope === "group" ? -child.pid : child.pid, signal);
  }

  /** @throws Refused `unknown-launch` */
  tail(id: string, lines: number): string[] {
    return tailOf(this.#get(id).launch.log, lines);
  }

  list(): ChildStatus[] {
    return [...this.#children.values()].map((child) => this.#statusOf(child));
  }

  /** Exits that no controller has acknowledged, oldest first. */
  unacknowledged(): ExitEvent[] {
    return [...this.#unacknowledged];
  }

  acknowledge(seq: number): void {
    while (this.#unacknowledged.length > 0 && this.#unacknowledged[0]!.seq <= seq) {
      this.#unacknowledged.shift();
    }
    if (this.#children.size <= REMEMBERED) return;
    for (const [id, child] of this.#children) {
      if (child.exit !== null && child.exit.seq <= seq) this.#children.delete(id);
      if (this.#children.size <= REMEMBERED) return;
    }
  }

  /** Terminates one launch or all, waits, kills the trees of those that outlive the deadline, and sweeps. @throws Refused `unknown-launch` */
  async stop(id: string | "all", deadlineMs: number): Promise<StopReport> {
    const began = performance.now();
    const chosen = id === "all" ? [...this.#children.values()] : [this.#get(id)];
    const running = (): Child[] => chosen.filter((c) => c.exit === null && c.pid !== null);
    const straysBefore = this.#strays;
    const all = (): Promise<unknown> => Promise.all(chosen.map((c) => c.exited));
    for (const child of running()) sendSignal(-child.pid!, "SIGTERM");
    await within(all(), deadlineMs);
    const killed = running();
    for (const child of killed) sendSignal(-child.pid!, "SIGKILL");
    await within(all(), STUCK_AFTER_MS);
    while (this.#sweeping !== null) await this.#sweeping;
    return {
      ms: Math.round(performance.now() - began),
      killed: killed.map((c) => c.launch.id),
      strays: this.#strays === null || straysBefore === null ? null : this.#strays - straysBefore,
      stuck: running().map((c) => c.launch.id),
    };
  }

  #get(id: string): Child {
    const child = this.#children.get(id);
    if (child === undefined) throw new Refused("unknown-launch", `no launch "${id}" here`);
    return child;
  }

  #statusOf(child: Child): ChildStatus {
    return {
      id: child.launch.id,
      pid: child.pid,
      startTicks: child.startTicks,
      alive: child.pid !== null && child.exit === null,
      code: child.exit?.code ?? null,
      signal: child.exit?.signal ?? null,
      log: child.launch.log,
      logBytes: sizeOf(child.launch.log),
      note: child.launch.note ?? null,
    };
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for a promise, but not longer than `ms`. */
async function within(wanted: Promise<unknown>, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  await Promise.race([wanted, new Promise((resolve) => timer = setTimeout(resolve, ms))]);
  clearTimeout(timer);
}
