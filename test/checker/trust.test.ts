import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Checking,
  coverageOf,
  coverageText,
  mutantsOf,
  mutationScore,
  mutationText,
  scoreOf,
  UnfitModelError,
  witnessesOf,
} from "../../src/checker/mod.ts";
import { startup } from "../../models/startup.ts";
import { setup } from "xstate";
import { defineModel } from "../../src/checker/mod.ts";

const door = setup({ guards: { hasKey: ({ context }) => (context as { key: boolean }).key } })
  .createMachine({
    id: "door",
    context: { key: true },
    initial: "shut",
    states: {
      shut: { on: { push: [{ guard: "hasKey", target: "open" }, {}] } },
      open: { on: { pull: "shut" } },
      broken: { on: { mend: "shut" } },
    },
  });

const doorModel = defineModel({
  name: "door",
  processes: { door: { runs: door, may: [{ type: "push" }, { type: "pull" }] } },
  properties: {
    always: { whole: (w) => !w.in("door", "broken") },
    sometimes: { open: (w) => w.in("door", "open"), again: (w) => w.in("door", "shut") },
  },
});

test("coverage tells states, transitions and guards that were never met", () => {
  const checking = new Checking(doorModel);
  checking.run();
  const [chart] = coverageOf(checking).charts;
  assert.deepEqual(chart!.states.missed, ["door.broken"]);
  assert.deepEqual(chart!.transitions.missed, ["door.shut on push #2", "door.broken on mend"]);
  assert.deepEqual(chart!.guards.missed, ["hasKey no"]);
  assert.equal(chart!.pairs, 2);
  assert.match(coverageText(coverageOf(checking)), /never in door.broken/);
});

test("mutants of guards and targets are made, and those that no property notices are listed", () => {
  assert.deepEqual(mutantsOf(door).map((m) => m.what), [
    "shut on push #1 is left out",
    "shut on push #1 whether or not hasKey",
    "shut on push #1 if not hasKey",
    "shut on push #1 leads to shut instead of open",
    "shut on push #1 leads to broken instead of open",
    "open on pull is left out",
    "open on pull leads to open instead of shut",
    "open on pull leads to broken instead of shut",
    "broken on mend is left out",
    "broken on mend leads to open instead of shut",
    "broken on mend leads to broken instead of shut",
  ]);
  const score = mutationScore(doorModel, door);
  assert.equal(score.mutants, 11);
  assert.equal(score.caught, 5);
  assert.equal(score.byWitness, 3, "open is not reached any more");
  assert.deepEqual(score.survivors, [
    "open on pull is left out",
    "open on pull leads to open instead of shut",
  ]);
  assert.deepEqual(score.equivalent, ["shut on push #1 whether or not hasKey"]);
  assert.equal(score.unreached.length, 3, "what a broken door does, no model tries");
  assert.equal(scoreOf(score), 0.5);
  assert.match(mutationText(score), /^door: 5 of 10 mutants caught \(50\.0 %\)/);
});

test("a model that does not hold can judge nobody", () => {
  const wrong = defineModel({ ...doorModel, properties: { always: { shut: () => false } } });
  assert.throws(
    () => mutationScore(wrong, door),
    UnfitModelError,
  );
});

test("every state and transition that was met has a run to it, the shortest", () => {
  const checking = new Checking(doorModel);
  checking.run();
  assert.deepEqual(
    witnessesOf(checking).map(({ what, trace }) => [what, trace.steps.map((s) => s.action.label)]),
    [
      ["door", []],
      ["door.shut", []],
      ["door.shut on push #1", ["door: push"]],
      ["door.open", ["door: push"]],
      ["door.open on pull", ["door: push", "door: pull"]],
    ],
  );
});

test("faults are counted by the states in which they could strike", () => {
  const checking = new Checking(startup({ engines: 1 }));
  checking.run();
  const { faults } = coverageOf(checking);
  const crash = faults["crash engine/0"]!;
  assert.ok(crash["engine/0 loading"]! > 0);
  assert.ok(crash['startup {"starting":"forming"}']! > 0);
});
