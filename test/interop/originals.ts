/** Ranks that behave as the original's front-ends: `peers/original_rank.py`, one process that forks a rank for each connection. */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Peer, peer } from "./python.ts";

/** So long an original rank waits for anything, in seconds. The original: minutes. */
export const LIMIT_S = 8;

export interface OriginalRank {
  readonly rank: number;
  readonly from: number;
  readonly to: number;
  /** 0: it hosts the control store itself. */
  readonly controlPort: number;
  readonly fault?: string;
  /** Default {@link LIMIT_S}. */
  readonly limitS?: number;
}

/** One original rank. */
export class Original {
  readonly #socket: Socket;
  readonly #limitS: number;
  readonly #lines: string[] = [];
  #closed = false;
  #look: () => void = () => {};

  constructor(path: string, original: OriginalRank) {
    const { rank, from, to, controlPort, fault, limitS = LIMIT_S } = original;
    this.#limitS = limitS;
    this.#socket = connect(path);
    let text = "";
    this.#socket.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (text + chunk).split("\n");
      text = lines.pop()!;
      this.#lines.push(...lines);
      this.#look();
    });
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      this.#closed = true;
      this.#look();
    });
    const words = [rank, from, to, controlPort, limitS, ...(fault === undefined ? [] : [fault])];
    this.#socket.write(`${words.join(" ")}\n`);
  }

  /** Resolves with the port of the control store, once it has its connection to it. */
  async ready(): Promise<number> {
    return Number(await this.#next(60_000));
  }

  /** Asks it to scale, and resolves with how that ended: `completed`, `failed`, `silent`, or `died`. */
  async scale(): Promise<string> {
    this.#socket.write("go\n");
    const line = await this.#next((this.#limitS + 6) * 1000);
    if (line === undefined) return this.#closed ? "died" : "silent";
    return (JSON.parse(line) as { outcome: string }).outcome;
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Its next line; undefined when it says nothing for so long, or never will. */
  #next(withinMs: number): Promise<string | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), withinMs);
      this.#look = () => {
        if (this.#lines.length === 0 && !this.#closed) return;
        clearTimeout(timer);
        resolve(this.#lines.shift());
      };
      this.#look();
    });
  }
}

/** Where they are forked. */
export class Originals {
  readonly #peer: Peer;
  readonly #directory: string;

  private constructor(peer: Peer, directory: string) {
    this.#peer = peer;
    this.#directory = directory;
  }

  static async start(): Promise<Originals> {
    const directory = mkdtempSync(join(tmpdir(), "mo-"));
    const originals = new Originals(peer("original_rank.py", join(directory, "s")), directory);
    await originals.#peer.firstLine;
    return originals;
  }

  rank(rank: OriginalRank): Original {
    return new Original(join(this.#directory, "s"), rank);
  }

  async stop(): Promise<void> {
    await this.#peer.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
