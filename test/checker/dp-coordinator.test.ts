import assert from "node:assert/strict";
import { test } from "node:test";
import { check, verdictText } from "../../src/checker/mod.ts";
import { dpCoordinator, type DpCoordinatorOptions } from "../../models/dp-coordinator.ts";

const cases: readonly (readonly [DpCoordinatorOptions, number])[] = [
  [{}, 53],
  [{ rule: "optimistic" }, 65],
  [{ coordinates: false }, 5],
  [{ engines: 3, waves: 4 }, 105],
];

for (const [options, states] of cases) {
  test(`${dpCoordinator(options).name}: it believes what engines told last, and passes on what it must, in ${states} states`, () => {
    const verdict = check(dpCoordinator(options));
    assert.equal(verdict.outcome, "ok", verdictText(verdict));
    assert.equal(verdict.states, states);
    assert.equal(verdict.frontier, 0);
  });
}
