/** The journal: appends, replay and recovery. */
import { performance } from "node:perf_hooks";
import process from "node:process";
import { discard, Host } from "../src/host/mod.ts";
import { JournalReader, parseRecord, replay, scan, type Segment } from "../src/journal/mod.ts";
import { FileStore } from "../src/journal/stores/mod.ts";
import { clusterKernel, effects } from "../src/machines/mod.ts";
import { appends } from "./journal/appends.ts";
import { configuration, ENGINES, inDirectory, later, record } from "./journal/recorded.ts";
import type { BenchTable } from "./run.ts";

export const name = "journal";

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
  return [await appends(later), await replays(1_000_000), await recovery(100_000)];
}
