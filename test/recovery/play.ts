/**
 * One story, played by as many coordinators as it takes: two engines are launched and form up with a third that somebody else has started, they
 * run one wave of requests, an operator stops the cluster. A coordinator may die
 * at any fault point; the world goes on, and the next one takes over.
 */
import { Host } from "../../src/host/mod.ts";
import { JournalReader, type JournalStore } from "../../src/journal/mod.ts";
import type { Typed } from "../../src/kernel/mod.ts";
import { clusterKernel, DEFAULT_LIMITS, ids } from "../../src/machines/mod.ts";
import { type ClusterStatus, StatusFold } from "../../src/view/mod.ts";
import { ManualClock, settle } from "../host/world.ts";
import { configuration } from "../machines/fixture.ts";
import { type ClusterWorld, FOREIGN, spawnedTwice, type WorldState } from "./cluster-world.ts";

const launch = (rank: number) => ({
  id: `engine-${rank}`,
  ranks: [rank],
  argv: ["engine", `--rank=${rank}`],
  env: {},
  cwd: null,
  inherit: false,
});

export const STORY: object = configuration({
  size: 3,
  ranks: [
    { rank: 0, local: true, headless: false },
    { rank: 1, local: true, headless: false },
    { rank: FOREIGN, local: false, headless: true },
  ],
  parallelConfig: { data_parallel_master_ip: "127.0.0.1" },
  drawsPorts: true,
  waves: "evidence",
  launches: [launch(0), launch(1)],
  sockets: {
    handshake: "tcp://127.0.0.1:0",
    clients: [{ input: "tcp://127.0.0.1:0", output: "tcp://127.0.0.1:0", ours: true }],
    coordinator: {
      frontPublish: "tcp://127.0.0.1:0",
      backPublish: "tcp://127.0.0.1:0",
      backOutput: "tcp://127.0.0.1:0",
    },
  },
  limits: { ...DEFAULT_LIMITS, connectMs: 60_000, readyMs: 60_000, totalMs: 600_000 },
  leaseMs: 60_000,
});

/** Thrown by a fault point: from here on this coordinator does nothing any more. */
export class Crash extends Error {}

/** What the story came to, without times and without what may differ between two tellings. */
export interface Ending {
  readonly phase: ClusterStatus["phase"];
  readonly failure: string | null;
  readonly ranks: readonly string[];
  readonly exits: readonly string[];
  readonly blocks: ClusterStatus["blocks"];
  /** The last announcement. Earlier ones are for a process that may be gone; the status says the same. */
  readonly announced: string | undefined;
  readonly keeper: WorldState["keeper"];
  readonly wave: WorldState["wave"];
  /** Of those that were launched. */
  readonly alive: number;
  readonly spawnedTwice: readonly string[];
}

export interface Life {
  readonly world: ClusterWorld;
  readonly journal: JournalStore;
  readonly clock: ManualClock;
  readonly fault: (name: string) => void;
  /** Lets everything that is under way come to its end. Promises alone, where nothing real is written. */
  readonly settled?: () => Promise<void>;
  readonly alwaysReplay?: boolean;
  readonly snapshotEvery?: number;
  readonly compactAfterBytes?: number;
}

const kernel = clusterKernel();

/**
 * Plays until the story is over.
 *
 * @returns how it ended, or undefined when this coordinator died.
 */
export async function play(life: Life): Promise<Ending | undefined> {
  const { world, journal, clock, fault, settled = settle } = life;
  const fold = new StatusFold();
  let host: Host<Typed, Typed>;
  try {
    host = await Host.open<Typed, Typed>({
      kernel: kernel as never,
      journal,
      drivers: [world.driver()],
      configuration: STORY,
      clock,
      views: { status: fold },
      fault,
      alwaysReplay: life.alwaysReplay ?? false,
      snapshotEvery: life.snapshotEvery ?? 0,
      compactAfterBytes: life.compactAfterBytes ?? 0,
    });
  } catch (error) {
    if (isCrash(error)) return undefined;
    throw error;
  }
  let idle = 0;
  let stopAsked = false;
  for (;;) {
    await settled();
    if (host.failure !== undefined) {
      if (isCrash(host.failure)) return undefined;
      throw host.failure;
    }
    const { phase } = fold.brief();
    if (world.state.announced.includes("stopped")) break;
    // Whoever asked and heard nothing asks again.
    const over = phase === "formed"
      ? world.state.wave === "complete"
      : ["failed", "stopping", "stopped"].includes(phase);
    if (over && !stopAsked) {
      stopAsked = true;
      host.submit(ids.startup, { type: "stop" }).catch(() => {});
      continue;
    }
    if (world.turn()) {
      idle = 0;
      continue;
    }
    if (++idle > 20) world.patienceEnds();
    if (idle > 200) throw new Error(`nothing happens any more: ${JSON.stringify(fold.status())}`);
    await clock.pass(1000);
  }
  world.leaseEnds();
  const ending = endingOf(fold.status(), world.state);
  try {
    await host.close();
  } catch (error) {
    if (!isCrash(error)) throw error;
    return undefined;
  }
  return host.failure === undefined ? ending : undefined;
}

/** Whether a crash is the first cause. */
function isCrash(error: unknown): boolean {
  for (let e = error; e instanceof Error; e = e.cause) if (e instanceof Crash) return true;
  return false;
}

function endingOf(status: ClusterStatus, world: WorldState): Ending {
  return {
    phase: status.phase,
    failure: status.failure?.code ?? null,
    // The foreign one goes on serving, whether it still had time to say so or not.
    ranks: status.ranks.map((r) => `${r.rank} ${r.state === "adopting" ? "ready" : r.state}`),
    exits: status.processes.map((p) => `${p.launch} ${p.state} ${p.exit?.code} ${p.exit?.signal}`),
    blocks: status.blocks,
    announced: world.announced.at(-1),
    keeper: world.keeper,
    wave: world.wave,
    alive: world.children.filter((c) => c.exit === null && !c.foreign).length,
    spawnedTwice: spawnedTwice(world),
  };
}

/** Frames that a coordinator took out of its sockets and that are in no journal: what a crash can lose. */
export function lostFrames(world: WorldState, journal: JournalStore): string[] {
  const recorded = new Map<string, number>();
  const key = (to: string, type: string) => `${to} ${type}`;
  for (const { record } of new JournalReader(journal.segments()).records()) {
    const name = key(record.to, record.event.type);
    recorded.set(name, (recorded.get(name) ?? 0) + 1);
  }
  return world.read.map((f) => key(f.to, f.event.type)).filter((name) => {
    const left = recorded.get(name) ?? 0;
    recorded.set(name, left - 1);
    return left <= 0;
  });
}
