import assert from "node:assert/strict";
import { test } from "node:test";
import { FAILURES, StatusFold, statusOf } from "../../src/view/mod.ts";
import { duration, rankList } from "../../src/view/words.ts";
import { Run } from "../machines/fixture.ts";

test("a formed cluster in numbers", () => {
  const run = new Run();
  run.hello(0);
  run.hello(1);
  run.ready(0, { blocks: 10_000 });
  run.ready(1, { blocks: 7_000 });
  const status = statusOf(run.steps);
  assert.equal(status.phase, "formed");
  assert.deepEqual(status.blocks, { sum: 17_000, min: 7_000, max: 10_000 });
  assert.deepEqual(status.ranks.map((r) => [r.rank, r.state, r.since, r.blocks]), [
    [0, "ready", 500, 10_000],
    [1, "ready", 600, 7_000],
  ]);
  assert.equal(status.failure, null);
});

test("a rank killed while loading: one sentence says which, how, when and in what phase", () => {
  const launches = [{ id: "e1", ranks: [1], argv: ["x"], env: {}, cwd: null, inherit: true }];
  const run = new Run({ launches });
  run.say("launcher", { type: "keeperPlaced", place: { mark: "m", directory: "/k" }, call: "2.1" });
  run.say("launcher", { type: "keeperUp", identity: { pid: 1, startTicks: 1, boot: "b" } });
  run.say("process/e1", { type: "spawned", pid: 4711, call: "4.1" });
  run.hello(1);
  run.say("process/e1", { type: "exited", code: null, signal: "SIGKILL", tail: ["loading"] });
  const { failure } = statusOf(run.steps);
  assert.equal(
    failure?.sentence,
    "Rank 1 (process e1, pid 4711) was killed by SIGKILL while loading, after its HELLO and before its READY, 600 ms after the start.",
  );
  assert.equal(failure?.waitedMs, 100);
  assert.deepEqual(failure?.tail, ["loading"]);
  assert.equal(
    failure?.remedy,
    "Find out who killed it (the kernel's out-of-memory killer writes to dmesg), then start again.",
  );
});

test("what to do about an engine that ended: its last lines, or a look by hand where it wrote nothing", () => {
  const remedyAfter = (exit: { code: number | null; signal: string | null; tail: string[] }) => {
    const launches = [{ id: "e1", ranks: [1], argv: ["x"], env: {}, cwd: null, inherit: true }];
    const run = new Run({ launches });
    run.say("launcher", {
      type: "keeperPlaced",
      place: { mark: "m", directory: "/k" },
      call: "2.1",
    });
    run.say("launcher", { type: "keeperUp", identity: { pid: 1, startTicks: 1, boot: "b" } });
    run.say("process/e1", { type: "spawned", pid: 4711, call: "4.1" });
    run.say("process/e1", { type: "exited", ...exit });
    return statusOf(run.steps).failure?.remedy;
  };
  assert.equal(
    remedyAfter({ code: 3, signal: null, tail: ["no GPU"] }),
    FAILURES["engine-exited"].remedy,
  );
  assert.equal(
    remedyAfter({ code: 3, signal: null, tail: [] }),
    "It wrote nothing; start it by hand to see why it ends, then start again.",
  );
});

test("whoever is missing at the deadline is listed", () => {
  const run = new Run();
  run.hello(0);
  run.fire("rank/1/engine", "connectDeadline");
  const { failure } = statusOf(run.steps);
  assert.equal(
    failure?.sentence,
    "Rank 1 never said HELLO within 10 min; not ready: ranks 0 and 1.",
  );
  assert.deepEqual(failure?.missing, [{ rank: 0, state: "connected" }, { rank: 1, state: "late" }]);
});

test("strangers, takeovers and refusals are counted, and events nobody took", () => {
  const run = new Run({
    ranks: [{ rank: 0, local: false, headless: true }, { rank: 1, local: true, headless: false }],
  });
  run.say("startup", { type: "strangers", kind: "http", count: 3, sample: "GET /" });
  run.say("startup", { type: "strangers", kind: "http", count: 2, sample: "GET /x" });
  run.hello(0, false, false);
  run.hello(0, false, true);
  run.hello(0, false, true);
  run.say("rank/0/engine", { type: "nonsense" });
  const status = statusOf(run.steps);
  assert.deepEqual(status.strangers, [{ kind: "http", count: 5, sample: "GET /x" }]);
  assert.equal(status.ranks[0]?.takeovers, 1);
  assert.deepEqual(status.ranks[0]?.refused, {
    reason: "must-be-headless",
    count: 1,
    last:
      "its HELLO is without --headless, and load balancing is internal here: add --headless to its command",
  });
  assert.deepEqual(status.notes, [{ kind: "unexpected", what: "nonsense", count: 1 }]);
});

test("with strict upstream the record has the original's own words", () => {
  const said = (happens: (run: Run) => unknown, overrides = {}) => {
    const run = new Run({ strict: "upstream", ...overrides });
    happens(run);
    return statusOf(run.steps).failure?.upstream;
  };
  const remote = {
    ranks: [{ rank: 0, local: true, headless: false }, { rank: 1, local: false, headless: false }],
    mode: "external" as const,
  };
  assert.equal(
    said((r) => r.hello(1, true, true), remote),
    "HELLO message from local engine 1, expected it to be remote",
  );
  assert.equal(
    said((r) => r.hello(1, false, true), remote),
    "Remote engine 1 must not use --headless in external or hybrid dp lb mode",
  );
  assert.equal(
    said((r) => r.ready(0)),
    "Unexpected READY message for local engine 0 in CoreEngineState.NEW state.",
  );
  assert.equal(
    said((r) => [r.hello(0), r.hello(0)]),
    "Unexpected HELLO message for local engine 0 in CoreEngineState.CONNECTED state.",
  );
  assert.equal(
    said((r) =>
      r.say("rank/0/engine", { type: "malformed", reason: "no such status", status: "BYE" })
    ),
    "Unexpected BYE message for local engine 0 in CoreEngineState.NEW state.",
  );
  assert.equal(
    said((r) =>
      r.say("startup", {
        type: "strangers",
        kind: "rank",
        count: 1,
        sample: "rank 7, which is not awaited here",
      })
    ),
    "Message from engine with unexpected data parallel rank: 7",
  );
  assert.match(
    said((r) => [r.hello(0), r.ready(0, { hash: "X" })], {
      comparesHashes: true,
      parallelConfigHash: "H",
    }) ?? "",
    /^Configuration mismatch detected for engine 0\..* Worker hash: X, Expected hash: H\. Please/,
  );
});

test("durations and lists in words", () => {
  assert.deepEqual([850, 3200, 125_000, 3_840_000].map(duration), [
    "850 ms",
    "3.2 s",
    "2 min 5 s",
    "1 h 4 min",
  ]);
  assert.deepEqual([[3], [0, 2, 5], Array.from({ length: 20 }, (_, i) => i)].map(rankList), [
    "rank 3",
    "ranks 0, 2 and 5",
    "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 10 more",
  ]);
});

test("a copy of a fold goes its own way", () => {
  const run = new Run();
  const fold = new StatusFold();
  for (const step of run.steps) fold.apply(step);
  const copy = fold.clone();
  const before = fold.status();
  assert.deepEqual(copy.status(), before);
  copy.apply(run.hello(0));
  assert.equal(copy.status().ranks[0]?.state, "connected");
  assert.deepEqual(fold.status(), before);
});
