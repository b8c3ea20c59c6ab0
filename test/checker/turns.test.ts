/** Searches that let other things happen in between, and that can be ended. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  check,
  checkAsync,
  Checking,
  mutationScore,
  mutationScoreAsync,
  simulate,
  simulateAsync,
} from "../../src/checker/mod.ts";
import { agreement } from "../../models/agreement.ts";
import { dpCoordinator } from "../../models/dp-coordinator.ts";
import { startup } from "../../models/startup.ts";
import { twoPhaseCommit } from "../../models/two-phase-commit.ts";
import { waves as wavesChart } from "../../src/machines/mod.ts";

const BIG = twoPhaseCommit(11);

for (const order of ["breadth-first", "depth-first"] as const) {
  test(`a search in turns finds what a search in one go finds, ${order}`, async () => {
    const model = startup({ engines: 3 });
    const { seconds: _, bytes: __, ...once } = check(model, { order });
    const checking = new Checking(model, { order });
    let turns = 0;
    const asked = setInterval(() => turns++);
    const { seconds: ___, bytes: ____, ...inTurns } = await checking.runAsync();
    clearInterval(asked);
    assert.deepEqual(inTurns, once);
    assert.ok(turns >= 1, "nothing else happened in between");
  });
}

test("an aborted search says what it explored, and that it says nothing about the rest", async () => {
  const abort = new AbortController();
  const verdict = await checkAsync(BIG, {
    symmetry: false,
    signal: abort.signal,
    onProgress: () => abort.abort(),
  });
  assert.deepEqual([verdict.outcome, verdict.stoppedBy], ["inconclusive", "interrupted"]);
  assert.ok(verdict.states > 1024 && verdict.frontier > 0);
  assert.deepEqual(verdict.inconclusive, ["all commit", "all abort"]);
});

test("whoever watches a search can end it before memory runs out", () => {
  const verdict = check(BIG, { symmetry: false, onProgress: () => "memory" });
  assert.deepEqual([verdict.outcome, verdict.stoppedBy], ["inconclusive", "memory"]);
});

test("what was violated before the end stays violated", async () => {
  const abort = new AbortController();
  abort.abort();
  const original = agreement({ original: [0, 1] });
  const verdict = await checkAsync(original, { signal: abort.signal });
  assert.deepEqual([verdict.outcome, verdict.stoppedBy], ["violated", "violation"]);
});

test("random runs in turns are the same runs, and can be ended", async () => {
  const model = agreement({ ranks: 3 });
  const { seconds: _, ...once } = simulate(model, { runs: 50 });
  const { seconds: __, ...inTurns } = await simulateAsync(model, { runs: 50 });
  assert.deepEqual(inTurns, once);
  const abort = new AbortController();
  abort.abort();
  assert.equal((await simulateAsync(model, { runs: 50, signal: abort.signal })).runs, 1);
});

test("mutants in turns have the same fate, and can be ended", async () => {
  const models = [dpCoordinator()];
  const options = { limit: 8 };
  const once = mutationScore(models, wavesChart, options);
  assert.deepEqual(await mutationScoreAsync(models, wavesChart, options), once);
  const abort = new AbortController();
  abort.abort();
  const ended = await mutationScoreAsync(models, wavesChart, { signal: abort.signal });
  assert.deepEqual([ended.mutants, ended.all], [0, 55]);
});
