/** The journal: appends, replay and recovery. */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { discard, Host } from "../src/host/mod.ts";
import {
  asciiJson,
  bodyOf,
  digestOf,
  type Durability,
  FORMAT,
  JournalReader,
  type OwnedJournal,
  parseRecord,
  replay,
  scan,
  seal,
  type Segment,
  structuresOf,
} from "../src/journal/mod.ts";
import { FileStore } from "../src/journal/stores/mod.ts";
import { type Fold, type KernelEvent, SYSTEM } from "../src/kernel/mod.ts";
import {
  clusterKernel,
  DEFAULT_LIMITS,
  effects,
  type RunConfiguration,
} from "../src/machines/mod.ts";
import type { BenchTable } from "./run.ts";

export const name = "journal";

const ENGINES = 64;

const configuration: RunConfiguration = {
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
function later(n: number): [to: string, event: KernelEvent] {
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
      journal.append(bodyOf({ seq, fence: 1, at, to, digest }, text));
      if (seq % 1000 === 0) journal.write();
    }
  });
}

async function owned(
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

async function inDirectory<T>(action: (path: string) => Promise<T>): Promise<T> {
  const path = mkdtempSync(join(tmpdir(), "muster-bench-"));
  try {
    return await action(path);
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

// ---- appends ------------------------------------------------------------------------------------------------------

const DIGEST = "0123456789abcdef0123456789abcdef";
const AT = 1_800_000_000_000;

interface Append {
  readonly to: string;
  readonly text: string;
  /** The finished line, for the writer that only writes. */
  readonly line: string;
  /** What it says, for the writer that makes the line itself. */
  readonly record: object;
}

/** What is appended, made before the clock starts. */
function appendsOf(count: number): Append[] {
  const made: Append[] = [];
  for (let n = 0; n < count; n++) {
    const [to, event] = later(n);
    const text = asciiJson(event);
    const record = { seq: made.length + 1, fence: 1, at: AT, to, digest: DIGEST };
    const line = seal(bodyOf(record, text));
    made.push({ to, text, line, record: JSON.parse(line) });
  }
  return made;
}

/** The simplest writer of the same bytes: write a group, sync, again. */
class PlainWriter {
  readonly #file: number;
  readonly #lineOf: (item: Append) => string;
  constructor(path: string, lineOf: (item: Append) => string) {
    this.#file = openSync(path, "ax");
    this.#lineOf = lineOf;
  }
  append(items: Append[], group: number): Promise<void> {
    for (let i = 0; i < items.length; i += group) {
      writeSync(this.#file, items.slice(i, i + group).map(this.#lineOf).join(""));
      fdatasyncSync(this.#file);
    }
    return Promise.resolve();
  }
  close(): void {
    closeSync(this.#file);
  }
}

/** Ours, as the host uses it: a group is written at once, and one sync serves all groups that were written before it began. */
class OurWriter {
  readonly #journal: OwnedJournal;
  #seq = 0;
  #written = 0;
  #safe = 0;
  #syncing: Promise<void> | undefined;
  constructor(journal: OwnedJournal) {
    this.#journal = journal;
  }
  /** Resolves when everything is safe. */
  async append(items: Append[], group: number): Promise<void> {
    for (let i = 0; i < items.length;) {
      for (const end = Math.min(i + group, items.length); i < end; i++) {
        const { to, text } = items[i]!;
        const record = { seq: ++this.#seq, fence: 1, at: AT, to, digest: DIGEST };
        this.#journal.append(bodyOf(record, text));
      }
      this.#journal.write();
      this.#written = this.#seq;
      this.#sync();
      // Whoever waits for each is told before the next; otherwise others have their turn.
      if (group === 1) await this.#syncing;
      else await new Promise((resolve) => setImmediate(resolve));
    }
    while (this.#safe < this.#written) await this.#syncing;
  }
  #sync(): void {
    if (this.#syncing !== undefined || this.#safe === this.#written) return;
    const upTo = this.#written;
    this.#syncing = this.#journal.commit().then(() => {
      this.#safe = upTo;
      this.#syncing = undefined;
      this.#sync();
    });
  }
}

async function appends(): Promise<BenchTable> {
  const rows: (string | number)[][] = [];
  for (const [group, count] of [[1, 1000], [10, 8_000], [100, 40_000], [1000, 400_000]] as const) {
    const items = appendsOf(count);
    const took = [0, 0, 0];
    await inDirectory(async (path) => {
      const finished = new PlainWriter(join(path, "finished"), (item) => item.line);
      const making = new PlainWriter(
        join(path, "making"),
        ({ record }) => `${JSON.stringify(record)}\n`,
      );
      await owned(join(path, "ours"), "sync", async (journal) => {
        const writers = [finished, making, new OurWriter(journal)];
        // Disks have moods: they take turns, and the first one changes.
        const turn = Math.max(20 * group, count / 40);
        for (let i = 0; i < items.length; i += turn) {
          const slice = items.slice(i, i + turn);
          for (let w = 0; w < 3; w++) {
            const which = (w + i / turn) % 3;
            took[which]! += await timed(() => writers[which]!.append(slice, group));
          }
        }
      });
      finished.close();
      making.close();
    });
    const [a, b, c] = took.map((ms) => count / ms * 1000) as [number, number, number];
    rows.push([group === 1 ? "one at a time" : `groups of ${group}`, a, b, c, c / a, c / b]);
  }
  return {
    title: "Appends a second at durability sync, all of them safe in the end",
    columns: ["", "finished lines", "plain JSON", "journal", "of finished", "of plain"],
    rows,
    notes: [
      "Three writers of the same bytes, in turns. Finished lines: made before the clock starts, joined; one write and one blocking fdatasync a group.",
      "Plain JSON: the same, but each line is made by JSON.stringify. Journal: encoding, CRC, ownership check, one write a group, and one fdatasync for",
      "what was written while the last one ran.",
    ],
  };
}

async function timed(action: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await action();
  return performance.now() - began;
}

// ---- replay -------------------------------------------------------------------------------------------------------

function megabytes(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

export function bare(segments: readonly Segment[]): number {
  let events = 0;
  const began = performance.now();
  for (const segment of segments) {
    for (const line of scan(segment.chunks(), { file: segment.name, line: 1, offset: 0 })) {
      if (line.fault !== undefined) throw new Error(line.fault);
      if (line.line === 1) continue;
      const record = parseRecord(line.text, line);
      if (record.event.type !== "") events++;
    }
  }
  return events / (performance.now() - began) * 1000;
}

export function ours(
  segments: readonly Segment[],
  check: boolean,
): { rate: number; heap: number[] } {
  const heap: number[] = [];
  let paused = 0;
  const began = performance.now();
  const { records } = replay(clusterKernel(), new JournalReader(segments), {
    check,
    each: (_, record) => {
      if (record.seq % 250_000 !== 0) return;
      const from = performance.now();
      heap.push(megabytes());
      paused += performance.now() - from;
    },
  });
  return { rate: records / (performance.now() - began - paused) * 1000, heap };
}

function replays(inputs: number): Promise<BenchTable> {
  return inDirectory(async (path) => {
    await record(path, inputs);
    const segments = new FileStore(path).segments();
    const rounds = [1, 2, 3].map(() => ({ bare: bare(segments), ours: ours(segments, false) }));
    rounds.sort((a, b) => a.ours.rate / a.bare - b.ours.rate / b.bare);
    const median = rounds[1]!;
    const checked = ours(segments, true);
    const heap = median.ours.heap.map((mb) => mb.toFixed(1)).join(", ");
    return {
      title: `Replay of ${inputs.toLocaleString("en-US")} inputs (${ENGINES} engines)`,
      columns: ["", "inputs a second", "of bare"],
      rows: [
        ["bare: parse and CRC of every line", median.bare, 1],
        ["replay", median.ours.rate, median.ours.rate / median.bare],
        ["replay --check (digests computed)", checked.rate, checked.rate / median.bare],
      ],
      notes: [
        `Median of three rounds. Heap in MB after each quarter${
          (globalThis as { gc?: unknown }).gc === undefined ? " (run with --expose-gc)" : ""
        }: ${heap}.`,
      ],
    };
  });
}

// ---- recovery -----------------------------------------------------------------------------------------------------

const RESOURCES = ["socket.handshake", "socket.bus", "socket.coordinator", "heartbeat", "keeper"];

function recovery(inputs: number): Promise<BenchTable> {
  return inDirectory(async (path) => {
    await record(path, inputs);
    const open = () =>
      Host.open({
        kernel: clusterKernel(),
        journal: new FileStore(path),
        drivers: [
          discard(Object.keys(effects), RESOURCES),
        ] as never,
        configuration,
        graceMs: 0,
      });
    const rows: (string | number)[][] = [];
    for (const what of ["without a snapshot", "with a snapshot"]) {
      const began = performance.now();
      const host = await open();
      rows.push([what, host.report.replayed, host.report.tookMs, performance.now() - began]);
      await host.snapshot();
      await host.close();
    }
    return {
      title: `Recovery with ${inputs.toLocaleString("en-US")} inputs in the journal`,
      columns: ["", "inputs replayed", "fold, ms", "open to resumed, ms"],
      rows,
    };
  });
}

/** All tables. */
export async function run(): Promise<BenchTable[]> {
  return [await appends(), await replays(1_000_000), await recovery(100_000)];
}
