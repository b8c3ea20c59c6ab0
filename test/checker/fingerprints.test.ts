import assert from "node:assert/strict";
import { test } from "node:test";
import {
  check,
  collisions,
  type Model,
  UnsuitedFingerprintsError,
  verdictText,
} from "../../src/checker/mod.ts";
import { scaling } from "../../models/scaling.ts";
import { startup } from "../../models/startup.ts";
import { twoPhaseCommit } from "../../models/two-phase-commit.ts";
import { upstreamDefects } from "../../models/upstream/mod.ts";

const cases: readonly (readonly [string, Model])[] = [
  ["two-phase commit", twoPhaseCommit(7)],
  ["start-up", startup({ engines: 2 })],
  ["scaling with a crash", scaling({ target: 3, crashes: 1, timeouts: 0 })],
];

for (const [name, model] of cases) {
  test(`fingerprints find what exact states find: ${name}`, () => {
    const [by, exact] = [true, false].map((fingerprints) => {
      const { states, generated, stutters, depth, frontier } = check(model, {
        symmetry: false,
        fingerprints,
      });
      return { states, generated, stutters, depth, frontier };
    });
    assert.deepEqual(by, exact);
  });
}

test("a counterexample found by fingerprints is the same shortest run", () => {
  const { model } = upstreamDefects.find((d) => d.name === "agreement")!;
  const [by, exact] = [true, false].map((fingerprints) =>
    check(model, { fingerprints }).violations[0]!.trace!.steps.map((s) => s.action.label)
  );
  assert.deepEqual(by, exact);
  assert.equal(by!.length, 4);
});

test("the verdict prints how many collisions are to be expected, and what that does not say", () => {
  const text = verdictText(check(twoPhaseCommit(5), { fingerprints: true }));
  assert.match(text, /8,832 distinct states, breadth-first, remembered by 64 bits each/);
  assert.match(text, /collisions {2}2\.1e-12 expected/);
  assert.match(text, /a state that was taken for another one was not explored/);
});

test("a billion states may be expected to collide 0.03 times", () => {
  assert.equal(collisions(1e9).toFixed(2), "0.03");
});

test("eventually is not judged by fingerprints, and said to be inconclusive", () => {
  const verdict = check({
    ...twoPhaseCommit(3),
    properties: { eventually: { decided: () => true } },
  }, { fingerprints: true });
  assert.equal(verdict.outcome, "inconclusive");
  assert.deepEqual(verdict.inconclusive, ["decided"]);
});

test("fingerprints with depth-first search or with symmetry are refused", () => {
  const model = twoPhaseCommit(3);
  for (const options of [{ order: "depth-first" }, { symmetry: true }] as const) {
    assert.throws(
      () => check(model, { ...options, fingerprints: true }),
      UnsuitedFingerprintsError,
    );
  }
});
