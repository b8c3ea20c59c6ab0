import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  linearize,
  type RecordedOperation,
  type SequentialModel,
} from "../../src/testing/linearizability.ts";

type Input = { write: number } | "read";
type Operation = RecordedOperation<Input, number>;

/** A register that holds a number. */
const register: SequentialModel<number, Input, number> = {
  initial: 0,
  apply: (state, input, output) => {
    if (input === "read") return output === undefined || output === state ? state : undefined;
    return input.write;
  },
  key: String,
};

const op = (called: number, returned: number, input: Input, output?: number): Operation => ({
  called,
  returned,
  input,
  output,
});
const verdict = (...history: Operation[]): boolean => linearize(history, register).linearizable;

test("operations that do not overlap keep their order", () => {
  assert.equal(verdict(op(0, 1, { write: 1 }), op(2, 3, "read", 1)), true);
  assert.equal(verdict(op(0, 1, { write: 1 }), op(2, 3, "read", 0)), false, "a stale read");
  assert.equal(verdict(op(0, 1, "read", 1), op(2, 3, { write: 1 })), false, "a read of the future");
});

test("operations that overlap may have any order, but all observers one", () => {
  assert.equal(verdict(op(0, 9, { write: 1 }), op(1, 2, "read", 0), op(3, 4, "read", 1)), true);
  assert.equal(verdict(op(0, 9, { write: 1 }), op(1, 2, "read", 1), op(3, 4, "read", 0)), false);
  const writes = [op(0, 9, { write: 1 }), op(0, 9, { write: 2 })];
  assert.equal(verdict(...writes, op(1, 2, "read", 1), op(3, 4, "read", 2)), true);
  assert.equal(
    verdict(...writes, op(1, 2, "read", 1), op(3, 4, "read", 2), op(5, 6, "read", 1)),
    false,
  );
});

test("an operation that never returned may have happened, at any time after its call, or not", () => {
  const lost = op(0, Infinity, { write: 7 });
  assert.equal(verdict(lost, op(1, 2, "read", 0), op(3, 4, "read", 0)), true);
  assert.equal(verdict(lost, op(1, 2, "read", 0), op(100, 101, "read", 7)), true);
  assert.equal(verdict(lost, op(1, 2, "read", 7), op(3, 4, "read", 0)), false);
  assert.equal(verdict(op(0, 1, "read", 7), op(2, Infinity, { write: 7 })), false);
});

test("a refutation shows how far it got, and what could not follow", () => {
  const stale = op(4, 5, "read", 1);
  const result = linearize([op(0, 1, { write: 1 }), op(2, 3, { write: 2 }), stale], register);
  assert(!result.linearizable);
  assert.deepEqual(result.longest.map((each) => each.input), [{ write: 1 }, { write: 2 }]);
  assert.deepEqual(result.stuck, [stale]);
});

test("histories that a sequential run explains are found linearizable, and the order explains them", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({ value: fc.nat(3), write: fc.boolean(), before: fc.nat(30), after: fc.nat(30) }),
        {
          maxLength: 40,
        },
      ),
      (steps) => {
        let state = 0;
        // Every operation happens at 10 times its index, and its interval is stretched around that moment.
        const history = steps.map(({ value, write, before, after }, i): Operation => {
          if (write) state = value;
          return op(
            10 * i - before,
            10 * i + after + 1,
            write ? { write: value } : "read",
            write ? undefined : state,
          );
        });
        const result = linearize(history, register);
        assert(result.linearizable);
        let replayed = 0;
        for (const each of result.order) {
          replayed = register.apply(replayed, each.input, each.output)!;
        }
        assert.equal(result.order.length, history.length);
      },
    ),
    { numRuns: 1_000, seed: 1 },
  );
});

test("it agrees with trying every permutation", () => {
  const operation = fc.record({
    value: fc.nat(2),
    write: fc.boolean(),
    called: fc.nat(12),
    lasts: fc.integer({ min: 1, max: 8 }),
  }).map(({ value, write, called, lasts }) =>
    op(called, called + lasts, write ? { write: value } : "read", write ? undefined : value)
  );
  const verdicts = { yes: 0, no: 0 };
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 5 }), (history) => {
      const found = linearize(history, register).linearizable;
      assert.equal(found, byPermutation(history, 0));
      verdicts[found ? "yes" : "no"]++;
    }),
    { numRuns: 5_000, seed: 2 },
  );
  assert(verdicts.yes > 500 && verdicts.no > 500, JSON.stringify(verdicts));
});

function byPermutation(left: readonly Operation[], state: number): boolean {
  if (left.length === 0) return true;
  return left.some((each) => {
    if (left.some((other) => other !== each && other.returned < each.called)) return false;
    const after = register.apply(state, each.input, each.output);
    return after !== undefined && byPermutation(left.filter((other) => other !== each), after);
  });
}
