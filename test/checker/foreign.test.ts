/** Machines of people who never heard of the portable subset: what of XState is explored, and what is refused with the reason. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assign, createMachine, emit, fromPromise, log, sendTo, setup, spawnChild } from "xstate";
import {
  check,
  defineModel,
  doneOf,
  errorOf,
  type ModelDefinition,
  verdictText,
} from "../../src/checker/mod.ts";

// deno-lint-ignore no-explicit-any -- machines of any kind
const alone = (machine: any, more: Partial<ModelDefinition> = {}, may: string[] = ["go"]) =>
  defineModel({
    name: machine.id,
    processes: { it: { runs: machine, may: may.map((type) => ({ type })) } },
    ...more,
  });

test("inline guards and actions, parallel states and delays in milliseconds are explored as they are", () => {
  const kiln = createMachine({
    id: "kiln",
    context: { heat: 0 },
    type: "parallel",
    states: {
      fire: {
        initial: "off",
        states: {
          off: { on: { light: "burning" } },
          burning: {
            after: {
              1000: [
                { guard: ({ context }) => context.heat >= 2, target: "holding" },
                {
                  target: "burning",
                  reenter: true,
                  actions: assign({ heat: ({ context }) => context.heat + 1 }),
                },
              ],
            },
          },
          holding: { on: { cool: { target: "off", actions: assign({ heat: 0 }) } } },
        },
      },
      door: {
        initial: "shut",
        states: { shut: { on: { open: "open" } }, open: { on: { close: "shut" } } },
      },
    },
  });
  const verdict = check(
    alone(kiln, {
      properties: {
        always: {
          "it does not burn while the door is open": (w) =>
            !(w.in("it", "fire.burning") && w.in("it", "door.open")),
        },
        sometimes: { "it holds its heat": (w) => w.in("it", "fire.holding") },
      },
    }, ["light", "open", "close", "cool"]),
    { all: true },
  );
  assert.equal(verdict.states, 10, "five states of the fire, two of the door");
  assert.deepEqual(verdict.witnesses[0]!.trace.steps.map((s) => s.action.label), [
    "it: light",
    "it: 1000 passes",
    "it: 1000 passes",
    "it: 1000 passes",
  ]);
  assert.deepEqual(verdict.violations[0]!.trace!.steps.map((s) => s.action.label), [
    "it: light",
    "it: open",
  ]);
});

const shop = setup({
  types: {} as { context: { tries: number; receipt: number | null } },
  actors: {
    pay: fromPromise((_: { input: { attempt: number } }): Promise<{ receipt: number }> => {
      throw new Error("a checker must not run this");
    }),
  },
  guards: { again: ({ context }) => context.tries < 2 },
}).createMachine({
  id: "shop",
  context: { tries: 0, receipt: null },
  initial: "browsing",
  states: {
    browsing: { on: { order: "paying" } },
    paying: {
      entry: [assign({ tries: ({ context }) => context.tries + 1 }), log("paying")],
      invoke: {
        src: "pay",
        input: ({ context }) => ({ attempt: context.tries }),
        onDone: {
          target: "sold",
          actions: assign({ receipt: ({ event }) => event.output.receipt }),
        },
        onError: [{ guard: "again", target: "paying", reenter: true }, { target: "failed" }],
      },
      on: { cancel: { target: "browsing", actions: assign({ tries: 0 }) } },
      after: { 30_000: "failed" },
    },
    sold: { entry: emit({ type: "sold" }) },
    failed: {},
  },
});

const payments = {
  pay: (call: { input?: { attempt: number } }) => [
    { event: doneOf(call as never, { receipt: call.input!.attempt }) },
    { event: errorOf(call as never, "declined") },
  ],
};

test("an invoked actor is a call: its outcomes are the model's, and whoever leaves the state waits for it no more", () => {
  const sold: string[] = [];
  const verdict = check(
    alone(shop, {
      calls: payments as never,
      effects: {
        sold: (_, __, from) => {
          sold.push(from);
          return [];
        },
      },
      properties: {
        always: {
          "never paid more than twice": (w) => w.at("it")!.context.tries <= 2,
          "only who pays waits for the payment": (w) =>
            (w.calls("it").length === 1) === w.in("it", "paying"),
        },
        sometimes: {
          "the second attempt sells": (w) => w.at("it")!.context.receipt === 2,
          "it fails": (w) => w.in("it", "failed"),
        },
        rest: (w) => w.in("it", "sold") || w.in("it", "failed"),
      },
    }, ["order", "cancel"]),
  );
  assert.equal(verdict.outcome, "ok", verdictText(verdict));
  // Browsing; paying for the first and the second time; sold at the first and the second; failed by the clock, and by refusal.
  assert.equal(verdict.states, 7);
  assert.deepEqual([...new Set(sold)], ["it"]);
});

test("an invoked actor about which the model says nothing is refused by its name", () => {
  assert.throws(
    () => check(alone(shop, {}, ["order"])),
    /model shop: a chart asks for the effect pay; say under effects or calls/,
  );
});

for (
  const [what, machine, reason] of [
    ["sends", { entry: sendTo("x", { type: "hi" }) }, /m, m: sends by itself; return tell/],
    ["spawns", { entry: spawnChild("a") }, /m, m: spawns; return start/],
    ["names a guard that is not there", { on: { go: { guard: "no" } } }, /there is no guard no/],
    ["names a delay that is not there", { after: { soon: {} } }, /there is no delay soon/],
    ["keeps a Map", { context: { a: new Map() } }, /chart m: context.a is a Map, which JSON/],
    ["keeps NaN", { context: { a: [1, NaN] } }, /chart m: context.a\[1\] is NaN, which JSON/],
    [
      "keeps an actor",
      {
        context: (
          { spawn }: { spawn: (logic: unknown) => unknown },
        ) => ({ child: spawn(fromPromise(() => Promise.resolve(1))) }),
      },
      /chart m: context.child is a Actor, which JSON/,
    ],
  ] as const
) {
  test(`a machine that ${what} is refused with the reason`, () => {
    const made = createMachine({ id: "m", ...machine } as never);
    assert.throws(() => check(alone(made)), reason);
  });
}

test("a guard or an action that throws is told: the chart's state stays", () => {
  const fragile = createMachine({
    id: "fragile",
    initial: "a",
    states: {
      a: {
        on: {
          go: {
            target: "b",
            actions: () => {
              throw new Error("broken");
            },
          },
        },
      },
      b: {},
    },
  });
  const verdict = check(alone(fragile));
  assert.deepEqual(verdict.threw, [{ chart: "fragile", event: "go", error: "broken" }]);
  assert.match(verdictText(verdict), /threw +fragile on go: broken \(its state stays\)/);
});

test("a search without an end says what grows", () => {
  const counter = createMachine({
    id: "counter",
    context: { seen: 0, unit: "m" },
    on: { go: { actions: assign({ seen: ({ context }) => context.seen + 1 }) } },
  });
  const verdict = check(alone(counter, { bounds: { states: 500 } }));
  assert.equal(verdict.outcome, "inconclusive");
  assert.deepEqual(verdict.growth, [
    { component: "it", values: 501, member: { name: "seen", values: 501 } },
  ]);
  assert.match(
    verdictText(verdict),
    /grows +it took 501 values; of its context, seen took 501/,
  );
});
