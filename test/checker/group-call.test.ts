import assert from "node:assert/strict";
import { test } from "node:test";
import { check, verdictText } from "../../src/checker/mod.ts";
import { groupCalls } from "../../models/group-call.ts";

for (
  const [ranks, crashes, states] of [[2, 0, 21], [2, 1, 72], [3, 1, 460], [3, 2, 791]] as const
) {
  test(`a utility of ${ranks} ranks with ${crashes} crashes: whoever asked hears once, of every rank, in ${states} states`, () => {
    const verdict = check(groupCalls({ ranks, crashes }));
    assert.equal(verdict.outcome, "ok", verdictText(verdict));
    assert.equal(verdict.states, states);
    assert.equal(verdict.frontier, 0);
  });
}
