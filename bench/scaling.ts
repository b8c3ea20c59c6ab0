/**
 * From `scale()` to completed, with engines that answer at once: what the control plane itself takes. Real stores over TCP on this machine,
 * all ranks in one process, beside a model of the original's back-off on the same store.
 */
import { performance } from "node:perf_hooks";
import process from "node:process";
import { OwnStores } from "../src/drivers/scaling-store.ts";
import { TcpStoreClient } from "../src/drivers/tcpstore/mod.ts";
import { BACK_OFF_MS } from "../src/drivers/scaling-watch.ts";
import { ScalingGroup } from "../src/testing/scaling-group.ts";
import type { BenchTable } from "./run.ts";

export const name = "scaling";

const SIZES = [2, 8, 32, 128] as const;

export async function run(): Promise<BenchTable[]> {
  const rows: (string | number)[][] = [];
  // A coordinator has run for a while when it scales: its code is warm.
  for (let i = 0; i < 20; i++) await ours(8, 4, "events");
  for (const size of SIZES) {
    const repeats = size <= 8 ? 30 : size <= 32 ? 10 : 4;
    const events = await best(repeats, () => ours(size, size / 2, "events"));
    const up = await best(repeats, () => ours(size / 2, size, "events"));
    const polls = await best(1, () => ours(size, size / 2, "polls"));
    const original = await best(1, () => backOff(size));
    rows.push([
      size,
      events.ms,
      up.ms,
      events.cpuMs,
      polls.ms,
      original.ms,
      original.ms / events.ms,
    ]);
  }
  return [{
    title: "Scaling, from the request to completed (ms)",
    columns: [
      "ranks",
      "to half, events",
      "from half, events",
      "CPU of it",
      "to half, polls",
      "original's back-off",
      "back-off / events",
    ],
    rows,
    notes: [
      "events: blocking waits on the store; polls: the original's 0.1, 0.2, 0.4, 0.8 s after each failed look",
      "original's back-off: its sequence of waits (epoch, engines, votes, own finish, all finishes) by every rank on the same kind of store, engines that answer at once",
      "best of several runs in one warm process; every rank's machine, the store servers and the engines share it",
    ],
  }];
}

interface Took {
  readonly ms: number;
  readonly cpuMs: number;
}

async function best(repeats: number, once: () => Promise<Took>): Promise<Took> {
  let least: Took = { ms: Infinity, cpuMs: Infinity };
  for (let i = 0; i < repeats; i++) {
    const took = await once();
    if (took.ms < least.ms) least = took;
  }
  return least;
}

async function ours(from: number, to: number, waiting: "events" | "polls"): Promise<Took> {
  const group = await ScalingGroup.start({ size: from, store: { waiting } });
  try {
    return await timed(async () => {
      await (await group.scaler.scale(to)).completed();
    });
  } finally {
    await group.close();
  }
}

async function timed(act: () => Promise<void>): Promise<Took> {
  const began = performance.now();
  const cpu = process.cpuUsage();
  await act();
  const { user, system } = process.cpuUsage(cpu);
  return { ms: performance.now() - began, cpuMs: (user + system) / 1000 };
}

/** The original's waits and nothing else, in the order of its prepare and commit (wire spec, 7.5 and 7.7). */
async function backOff(size: number): Promise<Took> {
  const stores = new OwnStores();
  const port = await stores.serve("control");
  const ranks = await Promise.all(
    Array.from({ length: size }, () => TcpStoreClient.connect({ host: "127.0.0.1", port })),
  );
  const all = (key: string) => ranks.map((_, rank) => `${key}/${rank}`);
  const poll = async (store: TcpStoreClient, keys: string[]) => {
    for (let attempt = 0; !await store.check(keys); attempt++) {
      const ms = BACK_OFF_MS[Math.min(attempt, BACK_OFF_MS.length - 1)]!;
      await new Promise((resolve) => setTimeout(resolve, ms));
    }
  };
  try {
    return await timed(async () => {
      await Promise.all(ranks.map(async (store, rank) => {
        if (rank === 0) {
          await store.multiSet([["bootstrap", "b"], ["phase", "p"], ["prepared", "1"]]);
        } else await poll(store, ["prepared"]);
        await store.set(`eep_ready/${rank}`, "1");
        await poll(store, all("eep_ready"));
        await store.set(`commit_ready/${rank}`, "1");
        await poll(store, all("commit_ready"));
        await store.set("phase", "committing");
        // The engine's notification comes when the switch is over; here it is at once.
        await store.set(`finished/${rank}`, "1");
        await poll(store, [`finished/${rank}`]);
        if (rank === 0) {
          await poll(store, all("finished"));
          await store.set("completed", "1", { confirm: true });
        }
      }));
    });
  } finally {
    for (const store of ranks) store.close();
    await stores.close();
  }
}
