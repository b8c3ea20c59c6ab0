import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  breaks,
  BrokenPropertyError,
  check,
  defineModel,
  Exploration,
  NotDeterministicError,
  play,
  randomOf,
  regressionTest,
  replay,
  ReplayError,
  Runner,
  scheduleProperty,
  schedules,
  simulate,
  toItf,
  twice,
} from "../../src/checker/mod.ts";
import { agreement } from "../../models/agreement.ts";
import { scaling } from "../../models/scaling.ts";
import { duplicateHello } from "../../models/upstream/startup.ts";

const original = agreement({ ranks: 3, original: [0, 1, 2] });
const DIVERGED = "no rank commits while another aborts";

for (const chooser of ["uniform", "pct"] as const) {
  test(`random runs (${chooser}) find the divergence, and it is shrunk to the five steps of the shortest`, () => {
    const { violation } = simulate(original, { chooser, seed: 7 });
    assert.equal(violation?.property, DIVERGED);
    assert.equal(violation.trace.steps.length, 5);
    assert.equal(violation.shrunk.arguments, 5);
    assert.equal(violation.shrunk.search, 5);
  });
}

test("the same seed gives the same runs", () => {
  const once = simulate(original, { seed: 3 }).violation!;
  const again = simulate(original, { seed: 3 }).violation!;
  assert.deepEqual([again.run, again.found], [once.run, once.found]);
  assert.deepEqual(again.trace, once.trace);
});

test("faults that a broken property does not need are shrunk away", () => {
  const model = {
    ...duplicateHello.model,
    faults: {
      ...duplicateHello.model.faults,
      drops: { channels: ["handshake"], budget: 3 },
    },
  };
  const { violation } = simulate(model, { runs: 5000, seed: 2, searchStates: 0 });
  const faults = violation!.trace.steps.filter((s) => s.action.fault);
  assert.deepEqual(faults.map((s) => s.action.label), ["engine/0 crashes"]);
});

test("a run of our ranks breaks nothing, whatever the seed", () => {
  const { violation, runs } = simulate(agreement({ ranks: 3 }), { runs: 300, steps: 40 });
  assert.equal(violation, undefined);
  assert.equal(runs, 300);
});

test("fast-check shrinks a schedule to the shortest divergence and tells the run", () => {
  const result = fc.check(scheduleProperty(agreement({ ranks: 2, original: [0, 1] })), {
    seed: 1,
    numRuns: 500,
  });
  assert.equal(result.failed, true);
  const error = result.errorInstance as BrokenPropertyError;
  assert.ok(error instanceof BrokenPropertyError);
  assert.equal(error.property, DIVERGED);
  assert.ok(error.run.actions.length <= 5, `${error.run.actions.length} steps`);
});

test("schedules over our ranks hold: each run is made twice and comes out the same", () => {
  fc.assert(scheduleProperty(agreement({ ranks: 3 })), { seed: 1, numRuns: 200 });
});

test("a model whose steps depend on more than its state is found out: its runs are hashed and compared", () => {
  let asked = 0;
  const moody = defineModel({
    name: "moody",
    processes: {
      it: {
        runs: {
          id: "it",
          initial: () => ({ state: 0 }),
          // The same words, and another state each time.
          step: () => ({ state: ++asked }),
        },
        may: [{ type: "go" }],
      },
    },
  });
  const result = fc.check(scheduleProperty(moody), { seed: 1, numRuns: 20 });
  assert.equal(result.failed, true);
  assert.ok(result.errorInstance instanceof NotDeterministicError);
  assert.match(
    (result.errorInstance as Error).message,
    /^model moody: the same schedule led to two runs; line \d+ is/,
  );
});

test("a world that is no model follows the same schedules: steps, stretches, and faults of its own", () => {
  const did: string[] = [];
  const world = {
    possible: () => did.length < 6 ? 3 : 0,
    happen: (nth: number) => void did.push(`${nth}`),
    fails: (fault: string) => void did.push(fault),
  };
  play([{ step: 4 }, { fault: "power" }, { stretch: 9, salt: 1 }, { fault: "disk" }], world);
  assert.deepEqual(did, ["1", "power", "1", "0", "2", "0", "disk"]);
  const some = fc.sample(schedules({ faults: fc.constant("power"), stretch: 5, steps: 9 }), {
    seed: 1,
    numRuns: 50,
  }).flat();
  assert.deepEqual(
    [...new Set(some.map((s) => Object.keys(s).sort().join()))].sort(),
    ["fault", "salt,stretch", "step"],
  );
});

test("whoever makes a run twice is told the first line that differs", () => {
  let n = 0;
  assert.equal(twice("it", () => 7, String), 7);
  assert.throws(
    () => twice("it", () => ++n, (k) => `same\n${k}`),
    /it: the same schedule led to two runs; line 2 is\n {2}1\nand\n {2}2/,
  );
});

test("a trace file is ITF, replays to the same trace, and is refused by a model that does something else", () => {
  const trace = check(original).violations[0]!.trace!;
  const itf = toItf(trace, DIVERGED);
  assert.equal(itf["#meta"].format, "ITF");
  assert.equal(itf.states.length, trace.steps.length + 1);
  for (const state of itf.states) {
    assert.deepEqual(Object.keys(state).sort(), ["#meta", ...itf.vars].sort());
  }
  const read = JSON.parse(JSON.stringify(itf));
  assert.deepEqual(
    JSON.parse(JSON.stringify(replay(original, read))),
    JSON.parse(JSON.stringify(trace)),
  );
  assert.throws(() => replay(agreement({ ranks: 3 }), read), ReplayError);
  assert.throws(() => replay(original, { states: [] } as never), /not an ITF trace/);
});

test("the run as a list of words breaks the original and not ours", () => {
  const labels = check(original).violations[0]!.trace!.steps.map((s) => s.action.label);
  assert.equal(breaks(original, DIVERGED, labels)?.steps.length, 5);
  assert.equal(breaks(agreement({ ranks: 3 }), DIVERGED, labels), undefined);
});

test("two outcomes of one action have different words, so that a run in words is one run", () => {
  const model = scaling({ crashes: 0, timeouts: 0, storeFaults: 1 });
  const runner = new Runner(model);
  const twice = new Set<string>();
  for (let seed = 0; seed < 20; seed++) {
    const random = randomOf(seed);
    const run = runner.run((choices, step) => {
      const labels = choices.map((c) => c.action.label);
      assert.equal(new Set(labels).size, labels.length, labels.join("\n"));
      for (const label of labels) if (/ #2$/.test(label)) twice.add(label.split("{")[0]!);
      return step < 60 ? random(choices.length) : undefined;
    });
    const again = runner.follow(run.actions.map((a) => a.label));
    assert.equal(again.digest, run.digest);
  }
  assert.ok(twice.has("rank/0/scaling/op: store.lookUp answers epochRead "), [...twice].join());
});

test("a counterexample prints a test for node:test", () => {
  const violation = check(agreement({ original: [0, 1] })).violations[0]!;
  const text = regressionTest(violation, {
    from: "../models/agreement.ts",
    model: "agreement({ ranks: 2, original: [0, 1] })",
  });
  assert.equal(
    text,
    `import assert from "node:assert/strict";
import { test } from "node:test";
import { breaks } from "muster/checker";
import { agreement } from "../models/agreement.ts";

test("no rank commits while another aborts: the run of 4 steps that broke it", () => {
  const run = [
    "rank/0: drained",
    "rank/1: drained",
    "rank/0: allVoted",
    "rank/1: givenUp",
  ];
  assert.equal(breaks(agreement({ ranks: 2, original: [0, 1] }), "no rank commits while another aborts", run), undefined);
});
`,
  );
});

test("a model can be explored one state at a time", () => {
  const exploration = new Exploration(agreement({ original: [0, 1] }));
  const first = exploration.at([]);
  assert.deepEqual(first.choices.map((c) => c.label), [
    "rank/0: drained",
    "rank/0: givenUp",
    "rank/1: drained",
    "rank/1: givenUp",
  ]);
  const diverged = exploration.at([0, 1, 1, 0]);
  assert.equal(diverged.conditions[DIVERGED], false);
  assert.equal(diverged.trail.length, 4);
  assert.deepEqual(exploration.handle({ path: [99] }), {
    error: "model agreement among 2 ranks, all original: step 1 of the path has no choice 99",
  });
  assert.deepEqual(exploration.handle({ path: "x" } as never), {
    error: "path must be a list of choices (numbers from 0)",
  });
});
