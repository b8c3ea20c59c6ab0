/** Peers that speak in JSON lines and take commands: `peers/engine.py` and `peers/frontend.py`. */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { missing, PYTHON } from "./python.ts";

/** What a peer said. */
export type Said = {
  readonly event: string;
  readonly rank?: number;
  readonly [key: string]: unknown;
};

/** A running peer. */
export class Peer {
  readonly said: Said[] = [];
  readonly ended: Promise<number | null>;
  #process: ChildProcess;
  #errors = "";

  constructor(file: string, args: readonly string[]) {
    if (missing !== false) throw new Error(missing);
    this.#process = spawn(PYTHON, [`test/interop/peers/${file}`, ...args], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    let line = "";
    this.#process.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (line + chunk).split("\n");
      line = lines.pop()!;
      for (const text of lines) this.said.push(JSON.parse(text) as Said);
    });
    this.#process.stderr!.setEncoding("utf8").on("data", (chunk: string) => {
      this.#errors += chunk;
    });
    this.#process.stdin!.on("error", () => {});
    this.ended = new Promise((resolve) => this.#process.on("close", resolve));
  }

  /** Tells the peer to do something. */
  tell(order: { readonly do: string; readonly [key: string]: unknown }): void {
    this.#process.stdin!.write(`${JSON.stringify(order)}\n`);
  }

  /** Everything it said of one kind. */
  heard(event: string): Said[] {
    return this.said.filter((said) => said.event === event);
  }

  /** What it wrote on standard error. */
  get errors(): string {
    return this.#errors;
  }

  /** Waits until something holds; fails with what the peer said when it takes too long. */
  async until(what: string, holds: () => boolean, limitMs = 20_000): Promise<void> {
    const deadline = Date.now() + limitMs;
    while (!holds()) {
      if (Date.now() > deadline) {
        const last = JSON.stringify(this.said.slice(-5));
        throw new Error(
          `waited in vain: ${what}; the peer said ${last} ${this.#errors.slice(-2000)}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** Ends the peer; it ends with its input too, so that nothing is left behind. */
  async stop(): Promise<void> {
    this.#process.stdin!.end();
    const timer = setTimeout(() => {
      if (this.#process.exitCode === null && this.#process.pid !== undefined) {
        process.kill(this.#process.pid, "SIGKILL");
      }
    }, 6_000);
    await this.ended;
    clearTimeout(timer);
  }
}

/** Runs a body with peers, which end with it. */
export async function withPeers(
  peers: readonly Peer[],
  body: () => Promise<void>,
): Promise<void> {
  try {
    await body();
  } finally {
    await Promise.all(peers.map((peer) => peer.stop()));
  }
}
