import assert from "node:assert/strict";
import { test } from "node:test";
import { mutationScore, mutationText } from "../../src/checker/mod.ts";
import { judged } from "../../models/mutation.ts";

// All mutants of all machines: npm run mutants. Here those of the machines that are quick, and samples of the others.
const pinned: readonly (readonly [name: string, limit: number | undefined, mutants: number])[] = [
  ["engine", undefined, 684],
  ["startup", 12, 12],
  ["waves", undefined, 55],
  ["group-call", undefined, 5],
  ["utility", undefined, 8],
  ["calls", undefined, 1],
  ["operation", 12, 12],
  ["operations", 6, 6],
];

for (const [name, limit, mutants] of pinned) {
  test(`${mutants} mutants of ${name}: every one is caught or equivalent`, () => {
    const { models, machine } = judged[name]!;
    const score = mutationScore(models(), machine, limit === undefined ? {} : { limit });
    assert.equal(score.mutants, mutants);
    assert.deepEqual(score.survivors, [], mutationText(score));
    assert.deepEqual(score.unreached, []);
  });
}
