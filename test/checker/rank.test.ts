import assert from "node:assert/strict";
import { test } from "node:test";
import { check, verdictText } from "../../src/checker/mod.ts";
import { rank, type RankOptions } from "../../models/rank.ts";

const cases: readonly (readonly [RankOptions, number])[] = [
  [{}, 82],
  [{ launched: true }, 85],
  [{ strict: true }, 74],
  [{ joined: true, scales: true }, 152],
  [{ launched: true, callable: false }, 38],
];

for (const [options, states] of cases) {
  test(`${rank(options).name}: whatever is said in its name, it is where its history leads, in ${states} states`, () => {
    const verdict = check(rank(options));
    assert.equal(verdict.outcome, "ok", verdictText(verdict));
    assert.equal(verdict.states, states);
    assert.equal(verdict.frontier, 0);
  });
}
