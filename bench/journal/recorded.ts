/** The run that is measured, and where it is written. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  asciiJson,
  digestOf,
  type Durability,
  FORMAT,
  type OwnedJournal,
  structuresOf,
} from "../../src/journal/mod.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { type Fold, type KernelEvent, SYSTEM } from "../../src/kernel/mod.ts";
import { clusterKernel, DEFAULT_LIMITS, type RunConfiguration } from "../../src/machines/mod.ts";

export const ENGINES = 64;

export const configuration: RunConfiguration = {
  type: "configured",
  size: ENGINES,
  mode: "internal",
  ranks: Array.from({ length: ENGINES }, (_, rank) => ({ rank, local: true, headless: false })),
  launches: Array.from({ length: ENGINES }, (_, rank) => ({
    id: `engine-${rank}`,
    ranks: [rank],
    argv: ["engine"],
    env: {},
    cwd: null,
    inherit: false,
  })),
  sockets: {
    handshake: "tcp://127.0.0.1:0",
    clients: [{ input: "tcp://127.0.0.1:0", output: "tcp://127.0.0.1:0", ours: true }],
    coordinator: null,
  },
  parallelConfig: null,
  parallelConfigHash: null,
  comparesHashes: false,
  strict: "muster",
  onFailure: "hold",
  waves: "off",
  leaseMs: 0,
  limits: { ...DEFAULT_LIMITS, progressMs: 60_000 },
};

/** A run: 64 engines start, then their processes are heard of for a long time, with a word out of line now and then. */
function* aRun(inputs: number, fold: Fold): Generator<[to: string, event: KernelEvent]> {
  const call = (id: string) => fold.get(id)!.calls[0]!.id;
  yield [SYSTEM, configuration as never];
  yield ["startup", {
    type: "bound",
    socket: "handshake",
    endpoints: { bind: "tcp://127.0.0.1:1" },
  }];
  yield ["startup", {
    type: "bound",
    socket: "bus0",
    endpoints: { input: "tcp://127.0.0.1:2", output: "tcp://127.0.0.1:3" },
  }];
  yield ["launcher", {
    type: "keeperPlaced",
    socket: "/tmp/k",
    token: "t",
    call: call("launcher"),
  }];
  yield ["launcher", { type: "keeperUp" }];
  for (let r = 0; r < ENGINES; r++) {
    const id = `process/engine-${r}`;
    yield [id, { type: "spawned", pid: 1000 + r, call: call(id) }];
  }
  for (let r = 0; r < ENGINES; r++) {
    yield [`rank/${r}/engine`, { type: "hello", local: true, headless: false }];
  }
  for (let r = 0; r < ENGINES; r++) {
    yield [`rank/${r}/engine`, {
      type: "ready",
      local: true,
      headless: false,
      blocks: 20_000 + r,
      statsAddress: null,
      hash: null,
    }];
  }
  for (let n = 5 + 3 * ENGINES; n < inputs; n++) yield later(n);
}

/** What is heard while they serve. */
export function later(n: number): [to: string, event: KernelEvent] {
  const r = (n * 31) % ENGINES;
  return n % 100 === 0
    ? [`rank/${r}/engine`, { type: "malformed", reason: "not msgpack" }]
    : [`process/engine-${r}`, { type: "progressed" }];
}

/** Writes a run as a journal. */
export function record(directory: string, inputs: number): Promise<void> {
  return owned(directory, "os", (journal) => {
    const fold = clusterKernel().fold();
    let seq = 0;
    for (const [to, event] of aRun(inputs, fold)) {
      const text = asciiJson(event);
      const at = 1_800_000_000_000 + seq * 10;
      const { effects } = fold.apply({ seq: ++seq, at, to, event }, text);
      const digest = digestOf(fold, effects);
      journal.append({ seq, fence: 1, at, to, digest }, text);
      if (seq % 1000 === 0) journal.write();
    }
  });
}

export async function owned(
  directory: string,
  durability: Durability,
  action: (journal: OwnedJournal) => void | Promise<void>,
): Promise<void> {
  const journal = await new FileStore(directory, { durability }).own();
  await journal.begin({
    journal: "muster",
    format: FORMAT,
    run: "bench",
    fence: 1,
    first: 1,
    at: 0,
    machines: structuresOf(clusterKernel()),
  });
  await action(journal);
  await journal.close();
}

export async function inDirectory<T>(action: (path: string) => Promise<T>): Promise<T> {
  const path = mkdtempSync(join(tmpdir(), "muster-bench-"));
  try {
    return await action(path);
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}
