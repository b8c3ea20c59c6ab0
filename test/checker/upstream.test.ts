import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { breaks, check, defineModel, regressionTest } from "../../src/checker/mod.ts";
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

test("each counterexample, also one that goes round for ever, prints a test that fails while it is a run of the model", () => {
  for (const { name, model, property } of upstreamDefects) {
    const { trace } = check(model).violations[0]!;
    const labels = trace!.steps.map((s) => s.action.label);
    const again = breaks(model, property, labels, trace!.loop);
    assert.deepEqual(again?.steps.map((s) => s.choice), trace!.steps.map((s) => s.choice), name);
    const text = regressionTest({ property, trace: trace! }, { from: "./m.ts", model: "m" });
    const asked = trace!.loop === undefined ? "run" : `run, ${trace!.loop}`;
    assert.ok(text.includes(`breaks(m, ${JSON.stringify(property)}, ${asked}), undefined)`), text);
  }
});

test("a run that goes round for ever breaks a property only when it comes back, never meets the goal, and is fair", () => {
  const { model, property } = upstreamDefects.find((d) => d.name === "publish-starvation")!;
  const run = ["engine: step", "coordinator receives stats from engine"];
  assert.equal(breaks(model, property, run, 0)?.loop, 0);
  assert.equal(breaks(model, property, run.slice(0, 1), 0), undefined, "it does not come back");
  assert.equal(breaks(model, property, run, 2), undefined, "it does not come to rest there");
  assert.throws(() => breaks(model, "another", run, 0), /no eventually and no leadsTo/);
  const clock = (finishes: (n: number) => boolean) =>
    defineModel({
      name: "clock",
      processes: {
        clock: {
          runs: {
            id: "clock",
            initial: () => ({ state: 0 }),
            step: (n, { type }) => type === "tick" ? { state: 1 - (n as number) } : { state: 2 },
          },
          may: (w) =>
            w.at("clock")!.value === 2 ? [] : [
              { type: "tick" },
              ...(finishes(w.at("clock")!.value as number) ? [{ type: "finish" }] : []),
            ],
        },
      },
      properties: { eventually: { finished: (w) => w.at("clock")!.value === 2 } },
    });
  const ticks = ["clock: tick", "clock: tick"];
  assert.equal(breaks(clock(() => true), "finished", ticks, 0), undefined, "finish stays possible");
  assert.equal(breaks(clock((n) => n === 1), "finished", ticks, 0)?.steps.length, 2);
});

test("the page of the original's defects is up to date (npm run upstream)", () => {
  assert.equal(upstreamPage(), readFileSync("models/upstream/README.md", "utf8"));
});
