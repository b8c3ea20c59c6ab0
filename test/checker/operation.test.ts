import assert from "node:assert/strict";
import { test } from "node:test";
import { check, verdictText } from "../../src/checker/mod.ts";
import { operationModel, type OperationOptions } from "../../models/operation.ts";

const cases: readonly (readonly [OperationOptions, number])[] = [
  [{ target: 1, abort: false }, 458],
  [{ target: 1 }, 772],
  [{ target: 1, next: true }, 1366],
  [{ target: 3, abort: false }, 1533],
  [{ target: 3 }, 2644],
  [{ ranks: 3, target: 2 }, 7719],
];

for (const [options, states] of cases) {
  test(`${operationModel(options).name}${options.next ? ", and the next one" : ""}: its phase, what it tells and its record are what its history says, in ${states} states`, () => {
    const verdict = check(operationModel(options));
    assert.equal(verdict.outcome, "ok", verdictText(verdict));
    assert.equal(verdict.states, states);
    assert.equal(verdict.frontier, 0);
  });
}
