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
import { scaling } from "../../models/scaling.ts";
import { startup } from "../../models/startup.ts";
import { assign, raise, setup } from "xstate";
import { Composition } from "../../src/checker/composition.ts";
import { Walk } from "../../src/checker/trace.ts";
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
  assert.deepEqual(chart!.pairs.seen, [
    "door.shut on push #1 then door.open on pull",
    "door.open on pull then door.shut on push #1",
  ]);
  assert.deepEqual(chart!.pairs.missed, [
    "door.shut on push #2 then door.shut on push #1",
    "door.shut on push #2 then door.shut on push #2",
    "door.open on pull then door.shut on push #2",
    "door.broken on mend then door.shut on push #1",
    "door.broken on mend then door.shut on push #2",
  ]);
  assert.match(coverageText(coverageOf(checking)), /never in door.broken/);
});

const relay = setup({
  types: {} as { context: { n: number } },
  guards: { isLarge: ({ context }) => context.n > 1 },
  actions: { add: assign({ n: ({ context }) => context.n + 1 }) },
}).createMachine({
  id: "relay",
  context: { n: 0 },
  initial: "choosing",
  states: {
    choosing: {
      always: [
        { guard: "isLarge", target: "large" },
        { guard: ({ context }) => context.n === 1, target: "one" },
        { target: "none" },
      ],
    },
    none: { on: { go: { target: "choosing", actions: ["add", raise({ type: "heard" })] } } },
    one: { after: { 100: { target: "choosing", actions: "add" } }, on: { heard: {} } },
    large: {},
  },
});
const relayModel = defineModel({
  name: "relay",
  processes: { it: { runs: relay, may: [{ type: "go" }] } },
});

test("transitions without an event, of raised events and of delays, and inline guards, are covered where XState takes them", () => {
  const checking = new Checking(relayModel);
  checking.run();
  const [chart] = coverageOf(checking).charts;
  assert.deepEqual(chart!.transitions, {
    seen: [
      "relay.choosing always #1",
      "relay.choosing always #2",
      "relay.choosing always #3",
      "relay.none on go",
      "relay.one on heard",
      "relay.one after 100",
    ],
    missed: [],
  });
  assert.deepEqual(chart!.guards, {
    seen: [
      "isLarge yes",
      "isLarge no",
      "the guard of relay.choosing always #2 yes",
      "the guard of relay.choosing always #2 no",
    ],
    missed: [],
  });
  assert.deepEqual(chart!.pairs.seen, [
    "relay.choosing always #2 then relay.one on heard",
    "relay.choosing always #3 then relay.none on go",
    "relay.none on go then relay.choosing always #2",
    "relay.one on heard then relay.one after 100",
    "relay.one after 100 then relay.choosing always #1",
  ]);
  assert.deepEqual(
    witnessesOf(checking).map(({ what, trace }) => [what, trace.steps.map((s) => s.action.label)]),
    [
      ["relay", []],
      ["relay.none", []],
      ["relay.choosing always #3", []],
      ["relay.one", ["it: go"]],
      ["relay.none on go", ["it: go"]],
      ["relay.choosing always #2", ["it: go"]],
      ["relay.one on heard", ["it: go"]],
      ["relay.large", ["it: go", "it: 100 passes"]],
      ["relay.one after 100", ["it: go", "it: 100 passes"]],
      ["relay.choosing always #1", ["it: go", "it: 100 passes"]],
    ],
  );
});

test("what one instance causes in another within a step has a run to it too", () => {
  const checking = new Checking(startup({ engines: 1, launched: true }));
  checking.run();
  const seen = coverageOf(checking).charts.flatMap(({ transitions }) => transitions.seen);
  const found = new Set(witnessesOf(checking).map(({ what }) => what));
  assert.deepEqual(seen.filter((name) => !found.has(name)), []);
});

test("nothing that did not happen is told of a step", () => {
  const space = new Composition(doorModel);
  const walk = new Walk(space);
  walk.take(0);
  const { happened } = walk.take(0)!;
  assert.deepEqual(happened.map((h) => h.kind === "took" && h.event.type), ["pull"]);
});

test("coverage and witnesses need the states", () => {
  const checking = new Checking(doorModel, { fingerprints: true });
  checking.run();
  for (const look of [coverageOf, witnessesOf]) {
    assert.throws(() => look(checking), /which fingerprints do not keep/);
  }
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
      ["door.open", ["door: push"]],
      ["door.shut on push #1", ["door: push"]],
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

test("only states with names are counted: what a model's own program keeps is no class of states", () => {
  const checking = new Checking(scaling({ timeouts: 0 }));
  checking.run();
  const crash = coverageOf(checking).faults["crash coordinator/0"]!;
  assert.ok(crash["rank/1/topology scaling"]! > 0);
  assert.deepEqual(Object.keys(crash).filter((state) => state.startsWith("engines")), []);
});
