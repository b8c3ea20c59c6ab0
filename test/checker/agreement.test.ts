import assert from "node:assert/strict";
import { test } from "node:test";
import { check } from "../../src/checker/mod.ts";
import { agreement } from "../../models/agreement.ts";

for (const [ranks, states] of [[2, 24], [3, 80], [4, 288]] as const) {
  test(`${ranks} ranks that decide by one write-once key agree in all of their ${states} states`, () => {
    const verdict = check(agreement({ ranks }));
    assert.equal(verdict.outcome, "ok");
    assert.equal(verdict.states, states);
    assert.equal(verdict.frontier, 0);
  });
}

test("two original ranks diverge, and four steps are enough", () => {
  const { outcome, violations } = check(agreement({ ranks: 2, original: [0, 1] }));
  assert.equal(outcome, "violated");
  assert.equal(violations[0]!.property, "no rank commits while another aborts");
  assert.deepEqual(violations[0]!.trace!.steps.map((s) => s.action.label), [
    "rank/0: drained",
    "rank/1: drained",
    "rank/0: allVoted",
    "rank/1: givenUp",
  ]);
});

test("one original rank among ours is enough to diverge", () => {
  const { outcome, violations } = check(agreement({ ranks: 2, original: [1] }));
  assert.equal(outcome, "violated");
  assert.deepEqual(violations[0]!.trace!.steps.map((s) => s.action.label), [
    "rank/0: drained",
    "rank/0: givenUp",
    "rank/1: drained",
    "rank/1: allVoted",
    'rank/0: decisionSeen {"decision":"abort"}',
  ]);
});
