import assert from "node:assert/strict";
import { test } from "node:test";
import { check } from "../../src/checker/mod.ts";
import { twoPhaseCommit } from "../../models/two-phase-commit.ts";

for (const [managers, states] of [[3, 288], [5, 8832], [7, 296448], [8, 1745408]] as const) {
  test(`two-phase commit with ${managers} resource managers has ${states} states`, () => {
    const verdict = check(twoPhaseCommit(managers), { symmetry: false });
    assert.equal(verdict.outcome, "ok");
    assert.equal(verdict.states, states);
    assert.equal(verdict.depth, 3 * managers + 1);
    assert.equal(verdict.frontier, 0);
  });
}

for (const [managers, orbits] of [[3, 80], [5, 314], [7, 920], [8, 1461], [10, 3300]] as const) {
  test(`two-phase commit with ${managers} resource managers has ${orbits} orbits`, () => {
    const verdict = check(twoPhaseCommit(managers), { symmetry: true });
    assert.equal(verdict.outcome, "ok");
    assert.equal(verdict.symmetric, true);
    assert.equal(verdict.states, orbits);
  });
}
