import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { backOffMs, mayRestart, NO_RESTARTS, type RestartPolicy } from "../../src/planning/mod.ts";

const policy: RestartPolicy = {
  budget: 3,
  calmMs: 1000,
  backOff: { firstMs: 10, factor: 3, maxMs: 50 },
};

test("three restarts in a row, after 10, 30 and 50 ms, and no fourth", () => {
  assert.deepEqual([0, 1, 2].map((n) => backOffMs(policy, n)), [10, 30, 50]);
  assert.deepEqual([0, 2, 3].map((n) => mayRestart(policy, n)), [true, true, false]);
  assert.equal(mayRestart(NO_RESTARTS, 0), false);
});

test("a back-off never shrinks and never exceeds its limit", () => {
  fc.assert(
    fc.property(
      fc.record({
        firstMs: fc.integer({ min: 0, max: 10_000 }),
        factor: fc.double({ min: 1, max: 10, noNaN: true }),
        maxMs: fc.integer({ min: 0, max: 100_000 }),
      }),
      fc.nat(200),
      (backOff, n) => {
        const wait = (k: number) => backOffMs({ ...policy, backOff }, k);
        assert.ok(wait(n) <= backOff.maxMs);
        assert.ok(wait(n + 1) >= wait(n));
      },
    ),
  );
});
