/** Inputs that real deployments reported, by their numbers, at the level of machines and views: what an operator is told. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type FailureRecord, statusOf } from "../../src/view/mod.ts";
import { type Overrides, Run } from "../machines/fixture.ts";

const REMOTE = { local: false, headless: true };
/** Rank 0 here, the others on other nodes. */
const mixed = (size: number): Overrides => ({
  size,
  ranks: Array.from(
    { length: size },
    (_, rank) => rank === 0 ? { rank, local: true, headless: false } : { rank, ...REMOTE },
  ),
});
const failureOf = (run: Run): FailureRecord => {
  const { failure } = statusOf(run.steps);
  assert.ok(failure !== null, "nothing failed");
  return failure;
};

test("case 1: HELLO and READY of four ranks in any order, remote before local: the same result", () => {
  const both = [0, 1, 2, 3].flatMap((rank) => [rank, rank]);
  fc.assert(
    fc.property(fc.shuffledSubarray(both, { minLength: 8 }), (order) => {
      const run = new Run(mixed(4));
      const greeted = new Set<number>();
      for (const rank of order) {
        const remote = rank > 0;
        if (!greeted.has(rank)) run.hello(rank, !remote, remote);
        else run.ready(rank, remote ? REMOTE : {});
        greeted.add(rank);
      }
      const { phase, ready, blocks } = statusOf(run.steps);
      assert.deepEqual([phase, ready, blocks], ["formed", 4, { sum: 40, min: 10, max: 10 }]);
    }),
    { numRuns: 300, seed: 1 },
  );
});

test("case 2: no HELLO of rank 3 before the deadline: it is named, with everybody who is not ready", () => {
  const run = new Run(mixed(4));
  for (const rank of [1, 2]) {
    run.hello(rank, false, true);
    run.ready(rank, REMOTE);
  }
  run.fire("rank/3/engine", "connectDeadline");
  const failure = failureOf(run);
  assert.equal(failure.code, "engine-late");
  assert.match(
    failure.sentence,
    /^Rank 3 never said HELLO within 10 min; not ready: ranks 0 and 3\.$/,
  );
  assert.deepEqual(failure.missing?.map(({ rank }) => rank), [0, 3]);
});

test("cases 3 and 10: HELLO, INIT, and then nothing of a rank elsewhere: connected, not ready, and for how long", () => {
  const run = new Run(mixed(2));
  run.hello(1, false, true);
  run.fire("rank/1/engine", "readyDeadline");
  const failure = failureOf(run);
  assert.equal(failure.phase, "load");
  assert.match(failure.sentence, /Rank 1/);
  assert.match(failure.sentence, /READY/);
  assert.ok(failure.waitedMs !== null && failure.waitedMs >= 100);
});

test("case 5: an engine that exits 1 before HELLO fails the start-up at once, by rank, phase and code", () => {
  const run = new Run();
  run.say("rank/1/engine", { type: "exited", code: 1, signal: null });
  const failure = failureOf(run);
  assert.deepEqual([failure.code, failure.phase], ["engine-exited", "connect"]);
  assert.match(failure.sentence, /Rank 1 .*code 1/);
});

test("case 7: an exit whose code nobody knows is said to be unknown, never empty", () => {
  const run = new Run();
  run.say("rank/1/engine", { type: "exited", code: null, signal: null });
  assert.match(
    failureOf(run).sentence,
    /^Rank 1 ended with a status that nobody knows any more before its HELLO/,
  );
});

test("case 20: a rank that restarts says HELLO twice: one connection, counted as a takeover", () => {
  const run = new Run(mixed(2));
  run.hello(1, false, true);
  run.hello(1, false, true);
  const rank = statusOf(run.steps).ranks.find((r) => r.rank === 1)!;
  assert.deepEqual([rank.state, rank.takeovers], ["connected", 1]);
  assert.equal(statusOf(run.steps).connected, 1);
});

test("case 22: READY twice is no second count of blocks", () => {
  const run = new Run(mixed(2));
  run.hello(1, false, true);
  run.ready(1, REMOTE);
  run.ready(1, REMOTE);
  assert.deepEqual(statusOf(run.steps).blocks, { sum: 10, min: 10, max: 10 });
});

test("case 23: HELLO has no run id, so that an engine of an earlier run is known only by what its rank has done in this one", () => {
  const run = new Run(mixed(2));
  run.hello(1, false, true);
  run.ready(1, REMOTE);
  run.hello(1, false, true);
  assert.equal(failureOf(run).code, "engine-restarted");
});

test("cases 24 and 25: a hash that differs is shown with the one that was expected; hashes are opaque, so that no field can be named", () => {
  const run = new Run({ comparesHashes: true });
  run.hello(0);
  run.hello(1);
  run.ready(0, { hash: "aaaa" });
  run.ready(1, { hash: "bbbb" });
  const failure = failureOf(run);
  assert.equal(failure.code, "configuration-mismatch");
  assert.match(failure.sentence, /bbbb/);
  assert.match(failure.sentence, /aaaa/);
});

test("case 26: 10,000 and 7,000 blocks are accepted, and the spread is reported", () => {
  const run = new Run();
  run.hello(0);
  run.hello(1);
  run.ready(0, { blocks: 10_000 });
  run.ready(1, { blocks: 7_000 });
  assert.deepEqual(statusOf(run.steps).blocks, { sum: 17_000, min: 7_000, max: 10_000 });
});
