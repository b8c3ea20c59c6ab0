/**
 * The crash matrix of a cluster behind an external load balancer: each rank's front-end is a coordinator of its own, with its own journal. One
 * of them dies at a fault point of an operation that all take part in, and comes back. Engines live on, and so do the stores, which
 * somebody else hosts. All front-ends end with a clear outcome, the same one, and the cluster can scale again.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import type { EngineAnswer } from "../../src/drivers/scaling-engines.ts";
import { OwnStores, type StoreHost } from "../../src/drivers/scaling-store.ts";
import { MemoryStore } from "../../src/journal/mod.ts";
import type { Bootstrap } from "../../src/machines/effects/scaling.ts";
import type { Utility } from "../../src/protocol/mod.ts";
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

/** The engine of one rank, as its front-end sees it: new ranks come where rank 0 greets them. */
class OwnEngine extends MemoryEngines {
  readonly #all: MemoryEngines;
  readonly #rank: number;

  constructor(all: MemoryEngines, rank: number) {
    super(0);
    this.#all = all;
    this.#rank = rank;
  }
  override call(rank: number, utility: Utility, call: string): Promise<EngineAnswer> {
    return this.#all.call(rank, utility, call);
  }
  override greet(bootstrap: Bootstrap): Promise<readonly number[]> {
    return this.#all.greet(bootstrap);
  }
  override onNotification(listener: Parameters<MemoryEngines["onNotification"]>[0]): void {
    this.#all.onNotification((rank, said) => rank === this.#rank && listener(rank, said));
  }
}

/** The front-ends of a cluster, each of which can die and come back. */
class FrontEnds {
  readonly engines: MemoryEngines;
  readonly #servers = new OwnStores();
  readonly #stores: StoreHost = {
    serve: (name) => this.#servers.serve(name),
    stop: (port) => this.#servers.stop(port),
    close: () => Promise.resolve(),
  };
  readonly #journals = new Map<number, MemoryStore>();
  readonly groups = new Map<number, ScalingGroup>();

  constructor(size: number) {
    this.engines = new MemoryEngines(size);
  }

  serve(): Promise<number> {
    return this.#servers.serve("control");
  }

  /** A rank's front-end, also again after it died. */
  async open(
    rank: number,
    size: number,
    controlPort: number,
    fault?: (name: string) => void,
  ): Promise<ScalingGroup> {
    const journal = this.#journals.get(rank) ?? new MemoryStore();
    this.#journals.set(rank, journal);
    const group = await ScalingGroup.start({
      size,
      ranks: [rank],
      journal,
      world: {
        engines: new OwnEngine(this.engines, rank),
        stores: this.#stores,
        controlPort,
      },
      limits: LIMITS,
      settleMs: 500,
      graceMs: 20,
      ...(fault === undefined ? {} : { fault }),
    });
    this.groups.set(rank, group);
    return group;
  }

  async bury(rank: number): Promise<void> {
    await this.groups.get(rank)!.close().catch(() => {});
    this.#journals.get(rank)!.crash("process");
  }

  /** Somebody else starts what has to be started anew, and whoever left or had nothing to join is gone. */
  mend(restart: ReadonlySet<number>, size: number): void {
    for (const rank of restart) if (rank < size) this.engines.restart(rank, size);
    for (const rank of [...this.engines.engines.keys()]) {
      if (rank >= size) this.engines.engines.delete(rank);
    }
  }

  async close(): Promise<void> {
    for (const group of this.groups.values()) await group.close().catch(() => {});
    await this.engines.close();
    await this.#servers.close();
  }
}

/** An operation as its orchestrator asks for it at one front-end, and how it ended there. */
async function ask(group: ScalingGroup, target: number, name: string): Promise<OperationRecord> {
  const operation = await group.scaler.scale(target, { operation: name, deadlineMs: 60_000 });
  await operation.completed().catch(() => {});
  await group.scaler.until(() =>
    group.scaler.status().running === null && !isBusy(group) || undefined
  );
  return operation.record();
}

const isBusy = (group: ScalingGroup): boolean =>
  [...group.host.system.instances].some((i) => i.chart === "scaling");

interface Story {
  readonly size: number;
  readonly target: number;
  /** Whose front-end dies. */
  readonly who: number;
  /** At which of its fault points, counted from the request; 0: it lives. */
  readonly dieAt: number;
}

interface Told {
  readonly points: readonly string[];
  /** How each front-end says that it ended, in the order of the ranks. */
  readonly phases: readonly string[];
  readonly sizes: readonly (number | null)[];
  readonly errors: readonly string[];
  readonly again: readonly string[];
}

async function tell({ size, target, who, dieAt }: Story): Promise<Told> {
  const cluster = new FrontEnds(size);
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
  try {
    const control = await cluster.serve();
    const old = Array.from({ length: size }, (_, rank) => rank);
    for (const rank of old) {
      await cluster.open(rank, size, control, rank === who ? fault : undefined);
    }
    counting = true;
    const mortal = cluster.groups.get(who)!;
    const died = new Promise<void>((resolve) => mortal.host.onFailure(() => resolve()));
    const records = await Promise.all(old.map(async (rank) => {
      const asked = ask(cluster.groups.get(rank)!, target, "first");
      if (rank !== who) return await asked;
      const first = await Promise.race([asked.catch(() => undefined), died]);
      if (!dead) return first as OperationRecord;
      await died;
      await cluster.bury(rank);
      const back = await cluster.open(rank, size, control);
      await back.host.recovered;
      // The orchestrator lost the connection: it asks again, with the same name.
      return await ask(back, target, "first");
    }));
    counting = false;
    const serving = cluster.groups.get(0)!.scaler.size;
    cluster.mend(new Set(records.flatMap((r) => r.enginesToRestart)), serving);
    const again = await scaleAgain(cluster, serving, size);
    return {
      points,
      phases: records.map((r) => r.phase),
      sizes: records.map((r) => r.effectiveSize),
      errors: records.flatMap((r) => r.firstError === null ? [] : [r.firstError.text]),
      again,
    };
  } finally {
    await cluster.close();
  }
}

/** Another operation, with the front-ends of ranks that joined and without those that left. */
async function scaleAgain(
  cluster: FrontEnds,
  size: number,
  before: number,
): Promise<readonly string[]> {
  const { host } = cluster.groups.get(0)!;
  const { control } = host.system.instances.get("rank/0/topology")!.state.snapshot
    .context as unknown as { control: { port: number } };
  for (let rank = before; rank < size; rank++) await cluster.open(rank, size, control.port);
  const records = await Promise.all(
    Array.from(
      { length: size },
      (_, rank) => ask(cluster.groups.get(rank)!, size === 2 ? 3 : 2, "second"),
    ),
  );
  return records.map((r) => r.phase === "completed" ? r.phase : `${r.firstError?.text}`);
}

/** `npm run test:crash` crashes at every point; otherwise at every 40th. */
const EVERY = process.env["MUSTER_CRASH_ROUNDS"] === undefined ? 40 : 1;

for (
  const [size, target, who] of [[3, 2, 0], [3, 2, 1], [3, 2, 2], [2, 3, 0], [2, 3, 1]] as const
) {
  test(`${size} to ${target} ranks, a front-end for each, that of rank ${who} dead at fault points: all end alike, and scale again`, async (t) => {
    const whole = await tell({ size, target, who, dieAt: 0 });
    assert.deepEqual(new Set(whole.phases), new Set(["completed"]));
    assert.deepEqual(new Set(whole.again), new Set(["completed"]));
    const outcomes = new Map<string, number>();
    const deaths: number[] = [];
    for (let dieAt = 1; dieAt <= whole.points.length; dieAt += EVERY) deaths.push(dieAt);
    const crashes = deaths.length;
    // Most of a story is waiting, so several are told at once.
    const tellers = Array.from({ length: 6 }, async () => {
      for (let dieAt = deaths.pop(); dieAt !== undefined; dieAt = deaths.pop()) {
        const { points, phases, sizes, errors, again } = await tell({ size, target, who, dieAt });
        const what = `dead at ${dieAt}, ${points[dieAt - 1]} (${errors.join("; ")})`;
        const phase = phases[0]!;
        assert.ok(["completed", "failed"].includes(phase), `${what}: ${phases}`);
        assert.deepEqual(phases, phases.map(() => phase), what);
        assert.deepEqual(sizes, sizes.map(() => phase === "completed" ? target : size), what);
        assert.deepEqual(again, again.map(() => "completed"), what);
        outcomes.set(phase, (outcomes.get(phase) ?? 0) + 1);
      }
    });
    await Promise.all(tellers);
    t.diagnostic(
      `${whole.points.length} fault points, ${crashes} crashes: ${JSON.stringify([...outcomes])}`,
    );
  });
}
