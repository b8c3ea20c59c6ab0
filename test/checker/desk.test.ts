import assert from "node:assert/strict";
import { test } from "node:test";
import { check, verdictText } from "../../src/checker/mod.ts";
import { desk } from "../../models/desk.ts";

for (const [policy, states] of [["restart", 333], ["hold", 247]] as const) {
  test(`${desk({ policy }).name}: whoever asks is answered by how things stand, in ${states} states`, () => {
    const verdict = check(desk({ policy }));
    assert.equal(verdict.outcome, "ok", verdictText(verdict));
    assert.equal(verdict.states, states);
    assert.equal(verdict.frontier, 0);
  });
}
