import assert from "node:assert/strict";
import { test } from "node:test";
import { check, verdictText } from "../../src/checker/mod.ts";
import { waves, type WavesOptions } from "../../models/waves.ts";

const cases: readonly (readonly [WavesOptions, number])[] = [
  [{ engines: 3, requests: 1 }, 15868],
  [{ engines: 3, requests: 1, overtakes: 0, pauses: 1 }, 32225],
  [{ engines: 3, requests: 1, overtakes: 0, crashes: 1 }, 26954],
  // Whenever it crashes: what engines still hold is enough.
  [{ engines: 2, requests: 1, crashes: 1, kept: true }, 15946],
  [{ engines: 3, requests: 1, crashes: 1, kept: true }, 107125],
  [{ engines: 2, requests: 1, overtakes: 0, pauses: 1, rule: "optimistic" }, 2139],
];

for (const [options, states] of cases) {
  test(`${waves(options).name}: every request is served, in ${states} states`, () => {
    const verdict = check(waves(options));
    assert.equal(verdict.outcome, "ok", verdictText(verdict));
    assert.equal(verdict.states, states);
  });
}

test("a crash that loses both the end of a wave and the start of the next, read but not recorded, leaves a request waiting: a known limit", () => {
  const { outcome, violations } = check(waves({ engines: 2, requests: 1, crashes: 1 }));
  assert.equal(outcome, "violated");
  assert.deepEqual(violations.map((v) => v.property), ["every request is served"]);
  const { steps } = violations[0]!.trace!;
  const crash = steps.find((s) => s.action.label === "waves crashes")!;
  const lost = crash.changes.find((c) => c.component === "channel output: engines to waves")!;
  assert.deepEqual(
    (lost.before as { type: string; wave: number }[]).map(({ type, wave }) => [type, wave]),
    [["waveComplete", 0], ["startWave", 1]],
  );
});
