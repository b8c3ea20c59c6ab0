import assert from "node:assert/strict";
import { test } from "node:test";
import process from "node:process";
import fc from "fast-check";
import { twice } from "../../src/checker/mod.ts";
import { play, scenarios, told, verdict } from "./scaling/schedule.ts";

const RUNS = Number(process.env["RUNS"] ?? 120);

test("whatever happens, all ranks ours: nobody commits without every vote, nobody diverges, nobody waits for ever, and the next operation completes", () => {
  fc.assert(
    fc.property(scenarios(), (scenario) => {
      const world = twice("scaling", () => play(scenario), told);
      const wrong = verdict(world);
      assert.deepEqual(wrong, [], `\n${wrong.join("\n")}\n${world.trace.join("\n")}`);
    }),
    { numRuns: RUNS, seed: 7 },
  );
});
