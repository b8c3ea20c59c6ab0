import assert from "node:assert/strict";
import { test } from "node:test";
import { check, verdictText } from "../../src/checker/mod.ts";
import { formation, type FormationOptions } from "../../models/formation.ts";

const cases: readonly (readonly [FormationOptions, number])[] = [
  [{}, 28465],
  [{ strict: true, comparesHashes: true, regroups: false }, 17006],
  [{ ranks: 1, scales: true, stopOnFailure: true }, 5134],
];

for (const [options, states] of cases) {
  test(`${formation(options).name}: its phase, what it counts and what it tells are what its history says, in ${states} states`, () => {
    const verdict = check(formation(options));
    assert.equal(verdict.outcome, "ok", verdictText(verdict));
    assert.equal(verdict.states, states);
    assert.equal(verdict.frontier, 0);
  });
}
