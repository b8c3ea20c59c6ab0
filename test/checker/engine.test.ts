import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "xstate";
import {
  check,
  defineModel,
  type Model,
  ModelError,
  UnsoundSymmetryError,
  verdictText,
} from "../../src/checker/mod.ts";
import { Composition } from "../../src/checker/composition.ts";
import { Walk } from "../../src/checker/trace.ts";
import { agreement } from "../../models/agreement.ts";
import { scaling } from "../../models/scaling.ts";
import { startup } from "../../models/startup.ts";
import { twoPhaseCommit } from "../../models/two-phase-commit.ts";

/** Every state and step by the plain code alone, nothing remembered, nothing packed. */
function plain(model: Model): { states: number; generated: number } {
  const space = new Composition(model);
  const key = (values: Int32Array): string => values.join().replace(/(,0)+$/, "");
  const origin = new Walk(space).values;
  const seen = new Set([key(origin)]);
  const queue = [origin];
  let generated = 0;
  for (let q = 0; q < queue.length; q++) {
    for (const { values } of new Walk(space, queue[q]!).choices()) {
      generated++;
      if (seen.has(key(values))) continue;
      seen.add(key(values));
      queue.push(values);
    }
  }
  return { states: seen.size, generated };
}

const cases: readonly (readonly [string, Model])[] = [
  ["two-phase commit", twoPhaseCommit(3)],
  ["agreement", agreement({ ranks: 3 })],
  ["start-up of remote engines", startup({ engines: 2 })],
  [
    "start-up of launched engines with a crash of the coordinator",
    startup({ engines: 1, launched: true, coordinatorCrashes: 1 }),
  ],
  ["scaling", scaling({ target: 1, crashes: 0, timeouts: 0 })],
];

for (const [name, model] of cases) {
  test(`the search finds exactly the states and steps that plain code finds: ${name}`, () => {
    const { states, generated } = check(model, { symmetry: false });
    assert.deepEqual({ states, generated }, plain(model));
  });

  test(`depth-first finds the same states: ${name}`, () => {
    const breadth = check(model, { symmetry: false });
    const depth = check(model, { symmetry: false, order: "depth-first" });
    assert.deepEqual([depth.states, depth.generated], [breadth.states, breadth.generated]);
  });
}

test("orbits by sorted tuples are the orbits by brute force", () => {
  for (const managers of [2, 3, 4]) {
    const model = twoPhaseCommit(managers);
    assert.equal(check(model, { symmetry: true }).states, bruteForceOrbits(model, managers));
  }
});

/** Counts orbits by applying every permutation of the managers to every state. */
function bruteForceOrbits(model: Model, managers: number): number {
  const space = new Composition(model);
  const split = model.symmetric!.split;
  const origin = new Walk(space).values;
  const orbits = new Set<string>();
  const seen = new Set<string>();
  const queue = [origin];
  const permutations = allPermutations(managers);
  const parts = (values: Int32Array): { shared: string; each: string[] } => {
    const shared: string[] = [];
    const each: string[] = Array(managers).fill("");
    for (const { name, kind, column, raw } of space.components.all) {
      const value = raw(values[column] ?? 0);
      if (value === undefined) continue;
      const s = split({ name, kind, value });
      if (s.shared !== undefined) shared.push(JSON.stringify([kind, s.shared]));
      for (const [r, part] of Object.entries(s.each ?? {})) {
        each[Number(r)] += `${kind} ${JSON.stringify(part)};`;
      }
    }
    return { shared: shared.sort().join(), each };
  };
  for (let q = 0; q < queue.length; q++) {
    const { shared, each } = parts(queue[q]!);
    // The least of all permuted states names the orbit.
    orbits.add(permutations.map((p) => `${shared}|${p.map((r) => each[r]).join("/")}`).sort()[0]!);
    for (const { values } of new Walk(space, queue[q]!).choices()) {
      const key = values.join().replace(/(,0)+$/, "");
      if (seen.has(key)) continue;
      seen.add(key);
      queue.push(values);
    }
  }
  return orbits.size;
}

function allPermutations(n: number): number[][] {
  if (n === 0) return [[]];
  return allPermutations(n - 1).flatMap((p) =>
    Array.from({ length: n }, (_, i) => [...p.slice(0, i), n - 1, ...p.slice(i)])
  );
}

test("a split that loses something is refused", () => {
  const model = twoPhaseCommit(3);
  const lossy = { ...model, symmetric: { size: 3, split: () => ({ shared: "all alike" }) } };
  assert.throws(() => check(lossy, { symmetry: true }), /symmetric.split loses something of/);
});

test("eventually with symmetry is refused", () => {
  const model = twoPhaseCommit(3);
  const temporal = {
    ...model,
    properties: { ...model.properties, eventually: { decided: () => false } },
  };
  assert.throws(() => check(temporal, { symmetry: true }), UnsoundSymmetryError);
});

const lamp = setup({}).createMachine({
  id: "lamp",
  initial: "off",
  states: {
    off: { on: { press: "on" } },
    on: { on: { press: "off", smash: "broken" } },
    broken: {},
  },
});

const lampModel = (properties: Model["properties"]) =>
  defineModel({
    name: "lamp",
    processes: { lamp: { runs: lamp, may: [{ type: "press" }, { type: "smash" }] } },
    properties,
  });

test("weak fairness: a lamp that can always be smashed when on may yet be switched on and off for ever", () => {
  const { violations } = check(
    lampModel({ eventually: { broken: (w) => w.in("lamp", "broken") } }),
  );
  const trace = violations[0]!.trace!;
  assert.deepEqual(trace.steps.map((s) => s.action.label), ["lamp: press", "lamp: press"]);
  assert.equal(trace.loop, 0);
});

test("what stays possible happens: a lamp that is off is pressed some day", () => {
  const verdict = check(lampModel({ eventually: { on: (w) => w.in("lamp", "on") } }));
  assert.equal(verdict.outcome, "ok");
});

test("leadsTo is judged from every state in which its first half holds", () => {
  const verdict = check(lampModel({
    leadsTo: { "off leads to on": [(w) => w.in("lamp", "off"), (w) => w.in("lamp", "on")] },
  }));
  assert.equal(verdict.outcome, "ok");
  const broken = check(lampModel({
    leadsTo: { "broken leads to off": [(w) => w.in("lamp", "broken"), (w) => w.in("lamp", "off")] },
  }));
  assert.equal(broken.violations[0]!.trace!.loop, 2, "it stays broken after two steps");
});

test("a bounded search that found nothing is inconclusive, never ok", () => {
  const verdict = check(
    lampModel({
      eventually: { on: (w) => w.in("lamp", "on") },
      sometimes: { broken: (w) => w.in("lamp", "broken") },
    }),
    { bounds: { depth: 1 } },
  );
  assert.equal(verdict.outcome, "inconclusive");
  assert.equal(verdict.stoppedBy, "depth");
  assert.equal(verdict.frontier, 1);
  assert.match(verdictText(verdict), /^inconclusive: lamp/);
});

test("a witness that is nowhere is a violation once everything was explored", () => {
  const verdict = check(lampModel({ sometimes: { green: (w) => w.in("lamp", "green") } }));
  assert.deepEqual(verdict.violations, [{ property: "green", kind: "sometimes" }]);
});

test("a run that comes to rest where it may not is a violation", () => {
  const verdict = check(lampModel({ rest: (w) => !w.in("lamp", "broken") }));
  assert.equal(verdict.violations[0]!.kind, "rest");
  assert.equal(verdict.violations[0]!.trace!.steps.length, 2);
});

test("with `all`, the first violation of every property is found", () => {
  const { violations } = check(
    lampModel({
      always: { off: (w) => w.in("lamp", "off"), whole: (w) => !w.in("lamp", "broken") },
    }),
    { all: true },
  );
  assert.deepEqual(violations.map((v) => [v.property, v.trace!.steps.length]), [["off", 1], [
    "whole",
    2,
  ]]);
});

test("a model that contradicts itself is refused with what there is", () => {
  assert.throws(
    () => defineModel({ name: "empty" }),
    (e: ModelError) => e.code === "bad-model" && /has no processes/.test(e.message),
  );
  assert.throws(
    () =>
      defineModel({
        name: "lamp",
        processes: { lamp: { runs: lamp } },
        faults: { crashes: [{ nodes: ["lantern"], budget: 1, restart: "never" }] },
      }),
    /faults.crashes names the node lantern; there are lamp/,
  );
});
