import assert from "node:assert/strict";
import { test } from "node:test";
import { check, verdictText } from "../../src/checker/mod.ts";
import { rank, type RankOptions } from "../../models/rank.ts";

const cases: readonly (readonly [RankOptions, number])[] = [
  [{}, 114],
  [{ launched: true }, 115],
  [{ strict: true }, 98],
  [{ joined: true, scales: true }, 432],
  [{ launched: true, callable: false }, 50],
  [{ launched: true, learnsStore: true }, 115],
];

for (const [options, states] of cases) {
  test(`${rank(options).name}: whatever is said in its name, it is where its history leads, in ${states} states`, () => {
    const verdict = check(rank(options));
    assert.equal(verdict.outcome, "ok", verdictText(verdict));
    assert.equal(verdict.states, states);
    assert.equal(verdict.frontier, 0);
  });
}
