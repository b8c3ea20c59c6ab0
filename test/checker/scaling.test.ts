import assert from "node:assert/strict";
import { test } from "node:test";
import { check, verdictText } from "../../src/checker/mod.ts";
import { scaling, type ScalingOptions } from "../../models/scaling.ts";

const cases: readonly (readonly [ScalingOptions, number])[] = [
  [{ target: 3, crashes: 0, timeouts: 0 }, 692],
  [{ target: 1, crashes: 0, timeouts: 0 }, 494],
  [{ target: 3, crashes: 1, timeouts: 0 }, 8109],
  [{ target: 1, crashes: 1, timeouts: 0 }, 5672],
  [{ target: 3, crashes: 0, timeouts: 1 }, 9679],
  [{ target: 3, crashes: 1, timeouts: 1 }, 106085],
  [{ target: 1, crashes: 1, timeouts: 1 }, 76027],
  [{ ranks: 3, target: 4, crashes: 0, timeouts: 0 }, 5684],
  [{ ranks: 3, target: 2, crashes: 0, timeouts: 0 }, 3476],
  [{ ranks: 3, target: 2, crashes: 1, timeouts: 0 }, 66178],
  // The operator's abort.
  [{ target: 3, crashes: 0, timeouts: 0, abort: true }, 5391],
  [{ target: 1, crashes: 1, timeouts: 0, abort: true }, 32604],
  // Asked by an operation that says commit when all are prepared.
  [{ target: 3, crashes: 0, timeouts: 0, shared: true }, 716],
  [{ target: 3, crashes: 1, timeouts: 0, shared: true }, 7911],
  // A stale read, a lost acknowledgement, or a request that fails.
  [{ target: 3, crashes: 0, timeouts: 0, storeFaults: 1 }, 3025],
  [{ target: 3, crashes: 1, timeouts: 0, storeFaults: 1 }, 34638],
  [{ target: 1, crashes: 0, timeouts: 0, storeFaults: 2 }, 5615],
  // A connection, an engine, or an address, for good.
  [{ target: 3, crashes: 0, timeouts: 0, losses: 1 }, 11106],
  [{ target: 1, crashes: 1, timeouts: 0, losses: 1 }, 72169],
  // What an operation of before has left in the store.
  [{ target: 1, crashes: 0, timeouts: 0, earlier: "unfinished" }, 498],
  [{ target: 1, crashes: 0, timeouts: 0, earlier: "committing" }, 8],
];

for (const [options, states] of cases) {
  test(`${scaling(options).name}: every property holds in ${states} states`, () => {
    const verdict = check(scaling(options));
    assert.equal(verdict.outcome, "ok", verdictText(verdict));
    assert.equal(verdict.states, states);
    assert.equal(verdict.frontier, 0);
  });
}
