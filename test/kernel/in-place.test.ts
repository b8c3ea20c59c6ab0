import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { assign, raise, setup } from "xstate";
import { type KernelEvent, Local, type LocalState, tell } from "../../src/kernel/mod.ts";

interface Counted {
  readonly count: number;
  readonly last: { readonly n: number } | null;
}

/** What stays in place, and everything that does not: a target, an eventless transition, a raise, an error, nothing at all. */
const counter = setup({
  types: {} as { context: Counted; events: KernelEvent & { n: number } },
  guards: {
    isLarge: ({ event }) => event.n > 8,
    isFull: ({ context }) => context.count >= 5,
    isHigh: ({ event }) => event.n === 10,
    isOdd: ({ event }, { by }: { by: number }) => event.n % by === 1,
  },
  actions: {
    say: ({ context }, { what }: { what: string }) => {
      const { count, last } = context;
      return tell("listener", { type: what, count, last });
    },
    twice: () => [tell("a", { type: "one" }), tell("b", { type: "two" })],
    count: assign({ count: ({ context }) => context.count + 1 }),
    empty: assign({ count: 0 }),
    add: assign(({ context, event }, { factor }: { factor: number }) => ({
      count: context.count + factor,
      last: { n: event.n },
    })),
    more: raise({ type: "count", n: 0 }),
    fail: () => {
      throw new Error("as it was meant");
    },
  },
}).createMachine({
  id: "counter",
  context: { count: 0, last: null },
  initial: "open",
  on: { empty: { actions: "empty" } },
  states: {
    open: {
      on: {
        count: [
          { guard: "isLarge", target: "full", actions: "count" },
          {
            guard: { type: "isOdd", params: { by: 2 } },
            actions: [
              { type: "say", params: { what: "before" } },
              { type: "add", params: { factor: 1 } },
              { type: "say", params: { what: "after" } },
              "twice",
            ],
          },
          { guard: "isFull" },
          { actions: "count" },
        ],
        ignored: {},
        again: { target: "open", reenter: true, actions: "count" },
        raised: { actions: ["count", "more"] },
        told: { actions: { type: "say", params: { what: "only" } } },
        broken: { actions: ["count", "fail"] },
      },
      always: [{ guard: "isFull", target: "full" }, { guard: "isHigh", target: "full" }],
    },
    full: { on: { count: { actions: "count" }, empty: { target: "open", actions: "empty" } } },
  },
});

const events = fc.array(
  fc.record({
    type: fc.constantFrom(
      "count",
      "count",
      "again",
      "raised",
      "broken",
      "told",
      "ignored",
      "empty",
      "what",
    ),
    n: fc.integer({ min: 0, max: 10 }),
  }),
  { maxLength: 30 },
);

test("what is taken in place is what XState does: state, hash, outputs, kind and error", () => {
  fc.assert(
    fc.property(events, (list) => {
      const ours = new Local(counter, { interned: false });
      const theirs = new Local(counter);
      let [a, b]: [LocalState, LocalState] = [ours.initial(null).to, theirs.initial(null).to];
      for (const event of list) {
        const [x, y] = [ours.step(a, event), theirs.step(b, event)];
        const of = ({ to, outputs, kind, error }: typeof x) => [
          to.key,
          to.hash,
          outputs,
          kind,
          error,
        ];
        assert.deepEqual(of(x), of(y));
        [a, b] = [x.to, y.to];
      }
    }),
    { numRuns: 2000 },
  );
});

test("counting asks XState nothing, until the count leads to another state", () => {
  const local = new Local(counter, { interned: false });
  let state = local.initial(null).to;
  const calls = [1, 2, 3, 4, 5].map((n) => {
    state = local.step(state, { type: "count", n }).to;
    return local.calls;
  });
  assert.deepEqual([state.snapshot.value, calls], ["full", [0, 0, 0, 0, 1]]);
});

test("a step in place that XState would take otherwise is found", () => {
  let guarded = 0;
  const changing = setup({
    types: {} as { context: { n: number } },
    actions: { next: assign({ n: () => ++guarded }) },
  }).createMachine({
    id: "changing",
    context: { n: 0 },
    on: { next: { actions: "next" } },
  });
  const local = new Local(changing, { interned: false, verifyEvery: 1 });
  assert.throws(() => local.step(local.initial(null).to, { type: "next" }), {
    code: "impure-chart",
  });
});
