import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { check } from "../../src/checker/mod.ts";
import { upstreamPage } from "../../models/upstream/drawings.ts";
import { upstreamDefects } from "../../models/upstream/mod.ts";

const STATES: Readonly<Record<string, number>> = {
  "agreement": 20,
  "stray-frame": 10,
  "lost-ready": 72,
  "duplicate-hello": 51,
  "wedged-epoch": 5,
  "rank-0-dies": 14,
  "stale-error": 5,
  "completed-then-failed": 4,
  "late-notification": 17,
  "error-overwritten": 3,
  "wave-latch": 14,
  "publish-starvation": 4,
  "late-statistics": 10,
};

for (const { name, what, model, property, steps } of upstreamDefects) {
  test(`${name}: ${what}`, () => {
    const verdict = check(model);
    assert.equal(verdict.outcome, "violated");
    assert.deepEqual(verdict.violations.map((v) => v.property), [property]);
    assert.equal(verdict.violations[0]!.trace!.steps.length, steps);
    assert.equal(verdict.states, STATES[name]);
  });
}

test("the page of the original's defects is up to date (npm run upstream)", () => {
  assert.equal(upstreamPage(), readFileSync("models/upstream/README.md", "utf8"));
});
