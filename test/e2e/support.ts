/** Runs the command `muster` as people do: as a process, on the runtime that runs the test. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { selfCommand } from "../../src/drivers/keeper/mod.ts";

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly err: string;
}

export class Muster {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  #out = "";
  #err = "";
  #look = new Set<() => void>();

  constructor(args: readonly string[], env: Record<string, string> = {}) {
    const [program, ...rest] = selfCommand();
    this.child = spawn(program!, [...rest, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NO_COLOR: "1", ...env },
    });
    this.child.stdout!.on("data", (d) => this.#heard(() => this.#out += d));
    this.child.stderr!.on("data", (d) => this.#heard(() => this.#err += d));
    this.ended = new Promise((resolve) => {
      this.child.on("close", (code, signal) => {
        this.#heard(() => {});
        resolve({ code, signal, out: this.#out, err: this.#err });
      });
    });
  }

  get out(): string {
    return this.#out;
  }

  /** Resolves with the match once the output has it. Fails with the whole output when the process ends before. */
  said(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const match = pattern.exec(this.#out);
        if (match === null) return;
        this.#look.delete(look);
        resolve(match);
      };
      this.#look.add(look);
      look();
      void this.ended.then(({ out, err }) =>
        reject(new Error(`ended without saying ${pattern}:\n${out}\n${err}`))
      );
    });
  }

  kill(signal: "SIGKILL" | "SIGTERM" | "SIGINT" = "SIGKILL"): void {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      process.kill(this.child.pid!, signal);
    }
  }

  #heard(take: () => void): void {
    take();
    for (const look of [...this.#look]) look();
  }
}

/** `muster` run to its end. */
export const muster = (...args: string[]): Promise<Ended> => new Muster(args).ended;

/** Is the process there, and no zombie? */
export function alive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^[ZX]$/.test(stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3));
  } catch {
    return false;
  }
}

/** The process ids that the output names, by launch. */
export const pidsIn = (out: string): Map<string, number> =>
  new Map([...out.matchAll(/process (\S+) runs, pid (\d+)/g)].map((m) => [m[1]!, Number(m[2])]));

/** Process ids of children of a process, and theirs. */
export function descendants(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return children === ""
      ? []
      : children.split(" ").flatMap((c) => [Number(c), ...descendants(Number(c))]);
  } catch {
    return [];
  }
}
