import assert from "node:assert/strict";
import { test } from "node:test";
import { portabilityProblems } from "../../src/kernel/mod.ts";
import { machines } from "../../src/machines/mod.ts";

for (const [name, machine] of Object.entries(machines)) {
  test(`${name} is in the portable subset`, () => {
    assert.deepEqual(portabilityProblems(machine), []);
  });
}
