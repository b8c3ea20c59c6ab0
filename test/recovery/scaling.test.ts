/**
 * The crash matrix of scaling: the coordinator of all ranks dies at a fault point of an operation and comes back from its journal; engines live
 * on, and so do the stores, which somebody else hosts. Every rank ends with a clear outcome, the same one, and the cluster can scale again.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { OwnStores, type StoreHost } from "../../src/drivers/scaling-store.ts";
import { MemoryStore } from "../../src/journal/mod.ts";
import { MemoryEngines } from "../../src/testing/memory-engines.ts";
import { ScalingGroup } from "../../src/testing/scaling-group.ts";
import type { OperationRecord } from "../../src/view/scaling.ts";

class Crash extends Error {}

const LIMITS = {
  prepareMs: 30_000,
  voteMs: 5_000,
  outcomeMs: 10_000,
  utilityMs: 1_000,
  retryMs: 20,
};

interface Story {
  readonly size: number;
  readonly target: number;
  /** The fault point at which the first coordinator dies, counted from the request; 0: it lives. */
  readonly dieAt: number;
}

interface Told {
  readonly points: readonly string[];
  readonly record: OperationRecord;
  readonly again: string;
  readonly epochs: readonly string[];
}

async function tell({ size, target, dieAt }: Story): Promise<Told> {
  const servers = new OwnStores();
  // Closing a coordinator leaves them alone.
  const stores: StoreHost = {
    serve: (name) => servers.serve(name),
    stop: (port) => servers.stop(port),
    close: () => Promise.resolve(),
  };
  const engines = new MemoryEngines(size);
  const world = { engines, stores, controlPort: await servers.serve("control") };
  const journal = new MemoryStore();
  const points: string[] = [];
  let counting = false;
  let dead = false;
  const fault = (name: string) => {
    if (dead) throw new Crash(name);
    if (!counting) return;
    points.push(name);
    if (points.length !== dieAt) return;
    dead = true;
    throw new Crash(name);
  };
  const options = { size, journal, world, limits: LIMITS, settleMs: 500, graceMs: 20 };
  let group = await ScalingGroup.start({ ...options, fault });
  try {
    counting = true;
    const asked = group.scaler.scale(target, { operation: "first", deadlineMs: 60_000 });
    const died = new Promise<boolean>((resolve) => group.host.onFailure(() => resolve(true)));
    const ended = asked.then((operation) => operation.completed()).then(() => false, () => false);
    await Promise.race([died, ended]);
    if (dead) {
      await died;
      await group.close().catch(() => {});
      journal.crash("process");
      group = await ScalingGroup.start(options);
      await group.host.recovered;
    }
    counting = false;
    // A caller that was lost asks again, with the same name.
    const operation = await group.scaler.scale(target, { operation: "first", deadlineMs: 60_000 });
    await operation.completed().catch(() => {});
    await group.scaler.until(() =>
      group.scaler.status().running === null && !parts(group) ? true : undefined
    );
    const record = operation.record();
    const serving = group.scaler.size;
    for (const rank of record.enginesToRestart) {
      if (rank < serving) engines.restart(rank, serving);
    }
    // New ranks that had nothing to join were dismissed, those that left are gone.
    for (const rank of [...engines.engines.keys()]) {
      if (rank >= serving) engines.engines.delete(rank);
    }
    const next = await group.scaler.scale(serving === 2 ? 3 : 2, { deadlineMs: 60_000 });
    const again = await next.completed().then((r) => r.phase, (e: Error) => e.message);
    return { points, record, again, epochs: [] };
  } finally {
    await group.close().catch(() => {});
    await engines.close();
    await servers.close();
  }
}

const parts = (group: ScalingGroup): boolean =>
  [...group.host.system.instances].some((i) => i.chart === "scaling");

/** `npm run test:crash` crashes at every point; otherwise at every 25th. */
const EVERY = process.env["MUSTER_CRASH_ROUNDS"] === undefined ? 25 : 1;

for (const [size, target] of [[3, 2], [2, 3]] as const) {
  test(`${size} to ${target} ranks, the coordinator dead at fault points: a clear outcome, and it scales again`, async (t) => {
    const whole = await tell({ size, target, dieAt: 0 });
    assert.equal(whole.record.phase, "completed");
    assert.equal(whole.again, "completed");
    const outcomes = new Map<string, number>();
    const deaths: number[] = [];
    for (let dieAt = 1; dieAt <= whole.points.length; dieAt += EVERY) deaths.push(dieAt);
    // Most of a story is waiting, so several are told at once.
    const tellers = Array.from({ length: 6 }, async () => {
      for (let dieAt = deaths.pop(); dieAt !== undefined; dieAt = deaths.pop()) {
        const { record, again, points } = await tell({ size, target, dieAt });
        const what = `dead at ${dieAt}, ${points[dieAt - 1]}`;
        assert.ok(["completed", "failed"].includes(record.phase), `${what}: ${record.phase}`);
        assert.equal(
          again,
          "completed",
          `${what}: then ${again} (first ${record.phase}: ${record.firstError?.text})`,
        );
        outcomes.set(record.phase, (outcomes.get(record.phase) ?? 0) + 1);
      }
    });
    await Promise.all(tellers);
    const told = [...outcomes.values()].reduce((sum, count) => sum + count, 0);
    t.diagnostic(
      `${whole.points.length} fault points, ${told} crashes: ${JSON.stringify([...outcomes])}`,
    );
  });
}

test("rank 0 takes its stores with it after the votes: nobody claims an outcome, and no further operation begins", async () => {
  const servers = new OwnStores();
  const engines = new MemoryEngines(3);
  engines.faults.set("1 pause_scheduler", "silent");
  const group = await ScalingGroup.start({
    size: 3,
    limits: { ...LIMITS, outcomeMs: 20_000, utilityMs: 20_000 },
    settleMs: 200,
    store: { lostMs: 200 },
    world: { engines, stores: servers, controlPort: await servers.serve("control") },
  });
  try {
    const operation = await group.scaler.scale(2);
    await group.scaler.until(() =>
      operation.record().participants.every((p) => p.state.includes("pausing")) || undefined
    );
    await servers.close();
    await assert.rejects(
      operation.completed(),
      /Nobody can say whether the cluster serves in 2 ranks/,
    );
    const { phase, effectiveSize, enginesToRestart } = operation.record();
    assert.deepEqual([phase, effectiveSize, enginesToRestart], ["inDoubt", null, [0, 1, 2]]);
    const next = await group.scaler.scale(2);
    await assert.rejects(next.completed(), /does not know in which topology it serves/);
  } finally {
    await group.close();
    await engines.close();
  }
});
