import assert from "node:assert/strict";
import { test } from "node:test";
import { twoPhaseCommit } from "../../models/two-phase-commit.ts";
import { upstreamDefects } from "../../models/upstream/mod.ts";
import { check } from "../../src/checker/mod.ts";
import { modelExplorer } from "../../src/console/mod.ts";

test("a model is walked: states in words, choices by index, a wrong choice is refused", () => {
  const model = twoPhaseCommit(3);
  const explorer = modelExplorer(model, check(model, { symmetry: false }));
  assert.match(explorer.summary, /^288 states, \d properties hold in every run$/);
  const start = explorer.at([]);
  assert.deepEqual(start.parties.slice(0, 2), [
    { id: "tm", state: "init", detail: '{"managers":3,"prepared":[]}' },
    { id: "rm/0", state: "working" },
  ]);
  assert.deepEqual(start.violated, []);
  const giveUp = start.enabled.findIndex((choice) => choice.label === "tm: GiveUp");
  const after = explorer.at([giveUp]);
  assert.equal(after.parties[0]?.state, "aborted");
  assert.equal(after.steps.length > 0, true);
  assert.throws(() => explorer.at([99]), RangeError);
});

test("every trace that a check found leads, choice by choice, to where its property is broken", () => {
  const { model, property } = upstreamDefects.find((d) => d.name === "agreement") ??
    upstreamDefects[0]!;
  const explorer = modelExplorer(model, check(model));
  const broken = explorer.traces.find((trace) => trace.property === property)!;
  assert.match(broken.text, /^broken/);
  const end = explorer.at(broken.path);
  if (broken.text.includes("always")) assert.deepEqual(end.violated, [property]);
  assert.equal(end.steps.length >= broken.path.length, true);
});
