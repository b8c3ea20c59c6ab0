/**
 * A real SIGKILL at every fault point that coordinators with a real journal pass: of a start-up with its processes, a wave, snapshots and
 * compaction; and of scaling, up, down and given up.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test, type TestContext } from "node:test";
import { effects } from "../../src/machines/mod.ts";
import type { Ending } from "./play.ts";
import { program } from "./program.ts";
import type { ScalingTold } from "./scaling-story.ts";
import { type ScalingLife, ScalingWorld } from "./scaling-world.ts";

/** `npm run test:crash` kills at every point; otherwise at every seventh. */
const EVERY = process.env["MUSTER_CRASH_ROUNDS"] === undefined ? 7 : 1;

const STORY = await program("story.ts");
const SCALING = await program("scaling-story.ts");

interface Run {
  readonly signal: string | null;
  readonly told: { ending: Ending; points: string[] } | undefined;
}

function story(directory: string, ...point: string[]): Promise<Run> {
  const [command, ...rest] = STORY;
  const child = spawn(command!, [...rest, directory, ...point], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let out = "";
  child.stdout.on("data", (text) => out += text);
  return new Promise((resolve) =>
    child.on(
      "close",
      (_, signal) => resolve({ signal, told: out === "" ? undefined : JSON.parse(out) }),
    )
  );
}

function fresh(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "muster-story-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Passed and killed at, by all stories. */
const passed = new Set<string>();
let killed = 0;

/** Points of one story, without those at which another one is killed. */
function chosen(t: TestContext, points: readonly string[]): string[] {
  const fresh = points.filter((point) => !passed.has(point));
  for (const point of fresh) passed.add(point);
  const picked = fresh.filter((_, i) => i % EVERY === 0);
  killed += picked.length;
  t.diagnostic(`${picked.length} of ${fresh.length} points`);
  return picked;
}

const LIMIT = { timeout: 1_800_000 };

test(
  "killed for real while it starts up, serves and stops, the next process ends the story",
  LIMIT,
  async (t) => {
    const { told: whole } = await story(fresh(t));
    assert.equal(whole!.ending.failure, null);
    // Only a life that follows another one gives the heartbeat up, to ask whether the engine goes on.
    const lives = [
      ...chosen(t, whole!.points).map((point) => [point]),
      ...chosen(t, ["release.heartbeat.before", "release.heartbeat.after"])
        .map((point) => ["effect.announce.before", point]),
    ];
    const outcomes = { same: 0, said: 0 };
    for (const points of lives) {
      const path = fresh(t);
      const point = points.join(", ");
      for (const deadly of points) {
        const dead = await story(path, deadly);
        assert.equal(dead.signal, "SIGKILL", point);
      }
      const { told } = await story(path);
      assert.ok(told !== undefined, point);
      const { ending } = told;
      assert.deepEqual(
        [ending.alive, ending.spawnedTwice, ending.keeper],
        [0, [], "dismissed"],
        point,
      );
      if (ending.failure === null) assert.deepEqual(ending, whole!.ending, point);
      // A frame that was read and not yet written is gone: the only way in which the story may end otherwise.
      else assert.match(point, /^journal\.write\.before$/, `${point}: ${ending.failure}`);
      outcomes[ending.failure === null ? "same" : "said"]++;
    }
    t.diagnostic(JSON.stringify(outcomes));
  },
);

/** Coordinators that die at these points, one after the other, and one that lives. */
async function scale(t: TestContext, ...deadly: string[]): Promise<ScalingTold> {
  const world = new ScalingWorld();
  const path = join(fresh(t), "journal");
  try {
    for (const point of deadly) {
      const { signal }: ScalingLife = await world.live(SCALING, path, point);
      assert.equal(signal, "SIGKILL", deadly.join(", "));
    }
    const { told } = await world.live(SCALING, path);
    assert.ok(told !== undefined, deadly.join(", "));
    return told;
  } finally {
    await world.close();
  }
}

test(
  "killed for real while it scales, every operation has a clear outcome, and the next one works",
  LIMIT,
  async (t) => {
    const whole = await scale(t);
    assert.deepEqual(whole.ended.slice(0, 2), [["completed", 3], ["completed", 2]]);
    // Only a life that follows another one asks for what its calls had come to.
    const lives = [
      ...chosen(t, whole.points).map((point) => [point]),
      ...chosen(t, ["effect.store.check.before", "effect.store.check.after"])
        .map((point) => ["effect.engine.call.after", point]),
    ];
    const outcomes: Record<string, number> = {};
    for (const points of lives) {
      const { ended } = await scale(t, ...points);
      const what = points.join(", ");
      const [up, down, givenUp] = ended.map(([phase, size]) => `${phase} ${size}`);
      assert.match(up!, /^(completed 3|failed 2)$/, what);
      assert.match(down!, /^(completed 2|failed 3)$/, what);
      assert.match(givenUp!, /^(completed 3|failed [23])$/, what);
      const outcome = `up ${up}, down ${down}`;
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
    t.diagnostic(JSON.stringify(outcomes));
  },
);

/** Those that hold for as long as the cluster: a process that ends gives them up, and no step does. */
const HELD_TO_THE_END = /^release\.(socket\.(bus|handshake|coordinator))\./;

test("no fault point is left out", (t) => {
  const journal = [
    "own",
    "segment",
    "write",
    "sync",
    "snapshot",
    "checkpoint",
    "compact",
    "release",
  ];
  const resources = [
    ...["socket.handshake", "socket.bus", "socket.coordinator", "keeper", "heartbeat"],
    ...["store.server", "store.facts", "store.epoch", "socket.scaleUp"],
  ];
  const named = [
    ...journal.map((what) => `journal.${what}`),
    ...Object.keys(effects).map((type) => `effect.${type}`),
    ...resources.flatMap((type) => [`hold.${type}`, `release.${type}`]),
  ].flatMap((what) => [`${what}.before`, `${what}.after`]);
  const missing = named.filter((point) => !passed.has(point) && !HELD_TO_THE_END.test(point));
  t.diagnostic(`${passed.size} named points, ${killed} of them killed at`);
  assert.deepEqual(missing, []);
});
