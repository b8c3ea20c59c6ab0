/**
 * The crash matrix: the same story, with the coordinator dead at every fault point that it passes. The durable prefix stays, the world goes on,
 * the next coordinator takes over. Where no unrepeatable frame was in the dead one's hand, the story must end as if nothing had happened.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryStore } from "../../src/journal/mod.ts";
import { ManualClock } from "../host/world.ts";
import { ClusterWorld } from "./cluster-world.ts";
import { Crash, type Ending, type Life, lostFrames, play } from "./play.ts";

interface Told {
  readonly ending: Ending;
  readonly points: readonly string[];
  readonly lost: readonly string[];
  readonly lives: number;
}

/** Plays the story with crashes at these fault points, counted over all lives. */
async function tell(
  crashes: readonly number[],
  loses: "process" | "power",
  upkeep: Pick<Life, "snapshotEvery" | "compactAfterBytes"> = {},
): Promise<Told> {
  const world = new ClusterWorld();
  const journal = new MemoryStore();
  const clock = new ManualClock();
  const points: string[] = [];
  for (let lives = 1; lives <= crashes.length + 1; lives++) {
    let dead = false;
    const fault = (name: string) => {
      if (dead) throw new Crash(name);
      points.push(name);
      if (crashes.includes(points.length)) {
        dead = true;
        throw new Crash(name);
      }
    };
    const ending = await play({ world, journal, clock, fault, ...upkeep });
    if (ending !== undefined) {
      return { ending, points, lost: lostFrames(world.state, journal), lives };
    }
    journal.crash(loses);
    clock.set(clock.now() + 500);
  }
  throw new Error("it died more often than it was killed");
}

/** How a story must end in which `lost` was lost. */
function assertEnding({ ending, lost }: Told, whole: Ending, what: string): "same" | "said" {
  assert.equal(ending.alive, 0, `${what}: a process is left`);
  assert.deepEqual(ending.spawnedTwice, [], `${what}: started twice`);
  assert.equal(ending.keeper, whole.keeper, what);
  if (ending.failure === null) {
    assert.deepEqual(ending, whole, what);
    return "same";
  }
  assert.ok(lost.length > 0, `${what}: failed with ${ending.failure} although nothing was lost`);
  return "said";
}

for (const loses of ["process", "power"] as const) {
  const kept = loses === "process" ? "what was written stays" : "only what was synced stays";
  test(`a crash at every fault point (${kept}): the story ends as if nothing had happened`, async (t) => {
    const whole = await tell([], loses);
    const outcomes = { same: 0, said: 0 };
    for (let at = 1; at <= whole.points.length; at++) {
      const what = `crash ${at} at ${whole.points[at - 1]}`;
      const told = await tell([at], loses);
      outcomes[assertEnding(told, whole.ending, what)]++;
    }
    const names = new Set(whole.points);
    t.diagnostic(
      `${names.size} named points, ${whole.points.length} crashes: ${outcomes.same} ended the same, ` +
        `${outcomes.said} lost a frame and said so`,
    );
    assert.equal(whole.ending.failure, null);
    assert.ok(outcomes.same > 0.8 * whole.points.length);
  });
}

test("a crash at every fault point of a story whose journal is compacted meanwhile", async (t) => {
  const upkeep = { snapshotEvery: 6, compactAfterBytes: 4000 };
  const whole = await tell([], "process", upkeep);
  const compactions = whole.points.filter((p) => p === "journal.compact.after").length;
  assert.ok(compactions > 1 && whole.points.includes("journal.snapshot.after"));
  const outcomes = { same: 0, said: 0 };
  for (let at = 1; at <= whole.points.length; at++) {
    const { ending } = await tell([at], "process", upkeep);
    const what = `crash ${at} at ${whole.points[at - 1]}`;
    if (ending.failure === null) assert.deepEqual(ending, whole.ending, what);
    // Read and not yet written: of the records that are gone nobody can tell which frames were among them.
    else assert.equal(whole.points[at - 1], "journal.write.before", what);
    outcomes[ending.failure === null ? "same" : "said"]++;
  }
  t.diagnostic(
    `${whole.points.length} crashes, ${compactions} compactions: ${JSON.stringify(outcomes)}`,
  );
});

test("a second crash while the first is recovered from", async (t) => {
  const { points, ending } = await tell([], "process");
  const outcomes = { same: 0, said: 0 };
  let crashes = 0;
  for (let first = 3; first <= points.length; first += 4) {
    for (const second of [1, 3, 6, 10, 15]) {
      const told = await tell([first, first + second], "process");
      if (told.lives < 3) continue; // the story was over before
      crashes++;
      outcomes[assertEnding(told, ending, `crashes ${first} and ${first + second}`)]++;
    }
  }
  t.diagnostic(`${crashes} pairs: ${JSON.stringify(outcomes)}`);
  assert.ok(crashes > 50);
});
