import { readdirSync, readFileSync } from "node:fs";
import { fromHex } from "../../src/protocol/mod.ts";

/**
 * What real engines said and were told, frame by frame: made by `test/interop/vllm/record.py`, which plays the head with plain pyzmq and knows
 * nothing of Muster.
 */
export interface Recorded {
  /** Seconds since the start. */
  readonly t: number;
  readonly socket: "handshake" | "input" | "output" | "backPublish" | "backOutput";
  /** `from` an engine, or `to` one; the rank where the socket knows it. */
  readonly way: "from" | "to";
  readonly rank: number | null;
  /** Without the identity. */
  readonly frames: readonly Uint8Array[];
}

export interface Recording {
  /** `0.12.0/moe` */
  readonly name: string;
  readonly version: string;
  readonly size: number;
  readonly lines: readonly Recorded[];
}

const isVersion = (folder: string): boolean => /^vllm-[\d.]+$/.test(folder);

/** All recordings of real engines. */
export function recordings(): Recording[] {
  return readdirSync("test/golden").filter(isVersion).sort().flatMap((folder) =>
    readdirSync(`test/golden/${folder}`).filter((f) => /^[\w-]+\.jsonl$/.test(f)).sort().map((
      file,
    ) => read(folder, file))
  );
}

function read(folder: string, file: string): Recording {
  const [head, ...lines] = readFileSync(`test/golden/${folder}/${file}`, "utf8").trimEnd()
    .split("\n").map((line) => JSON.parse(line));
  return {
    name: `${folder.slice("vllm-".length)}/${file.slice(0, -".jsonl".length)}`,
    version: head.vllm,
    size: head.size,
    lines: lines.filter((l) => l.frames !== undefined).map((l) => ({
      t: l.t,
      socket: l.socket,
      way: "from" in l ? "from" : "to",
      rank: l.from ?? l.to ?? null,
      frames: l.frames.map(fromHex),
    })),
  };
}

/** The journal of a run of ours with real engines: its inputs, made by `test/interop/vllm/keep-journal.ts`. */
export interface Run {
  readonly name: string;
  readonly inputs: readonly { at: number; to: string; event: { type: string; call?: string } }[];
}

export function runs(): Run[] {
  return readdirSync("test/golden").filter(isVersion).sort().flatMap((folder) =>
    readdirSync(`test/golden/${folder}`).filter((f) => f.endsWith(".run.jsonl")).sort().map(
      (file) => ({
        name: `${folder.slice("vllm-".length)}/${file.slice(0, -".run.jsonl".length)}`,
        inputs: readFileSync(`test/golden/${folder}/${file}`, "utf8").trimEnd().split("\n")
          .map((line) => JSON.parse(line)),
      }),
    )
  );
}
