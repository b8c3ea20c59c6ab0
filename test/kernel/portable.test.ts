import assert from "node:assert/strict";
import { test } from "node:test";
import { and, createMachine, emit, fromPromise, sendTo, setup } from "xstate";
import { assertPortable, NotPortableError, portabilityProblems } from "../../src/kernel/mod.ts";
import { engine, startup } from "./fixture.ts";

// deno-lint-ignore no-explicit-any
const reasons = (machine: any) => portabilityProblems(machine).map((p) => `${p.at}: ${p.reason}`);

test("the charts of the tests are portable", () => {
  assertPortable(engine);
  assertPortable(startup);
});

test("inline functions are refused with their place", () => {
  const machine = createMachine({ id: "m", states: { a: { entry: () => {} } }, initial: "a" });
  assert.deepEqual(reasons(machine), [
    "states.a.entry: an inline function; name it in setup() so that the configuration stays data",
  ]);
  assert.throws(() => assertPortable(machine), NotPortableError);
});

test("names that nothing implements are refused: action, guard, delay", () => {
  const machine = createMachine({
    id: "m",
    initial: "a",
    states: {
      a: { entry: "typo", after: { misspelt: "b" }, on: { go: { target: "b", guard: "perhaps" } } },
      b: {},
    },
  });
  assert.deepEqual(reasons(machine), [
    "m.a: there is no action typo",
    "m.a: there is no guard perhaps",
    "m.a: there is no delay misspelt; XState would fire it at once",
  ]);
});

test("whatever acts by itself is refused: invoke, sendTo, emit", () => {
  const machine = setup({
    actors: { load: fromPromise(() => Promise.resolve(1)) },
    actions: { send: sendTo("x", { type: "hi" }), shout: emit({ type: "hi" }) },
  }).createMachine({ id: "m", invoke: { src: "load" }, entry: ["send", "shout"] });
  assert.deepEqual(reasons(machine), [
    "action send: sends by itself; return tell(...) from an action instead",
    "action shout: emits; return effect(...) from an action instead",
    "m: invoke runs an actor; return start(...) from an entry action instead",
  ]);
});

test("composed guards are refused", () => {
  const machine = setup({
    guards: { a: () => true, both: and(["a"]) },
  }).createMachine({ id: "m" });
  assert.match(reasons(machine).join(), /guard both: and\(\), or\(\), not\(\)/);
});

test("an unguarded eventless circle is refused, named; a guarded one is not", () => {
  const circle = createMachine({
    id: "m",
    initial: "idle",
    states: { idle: { on: { go: "a" } }, a: { always: "b" }, b: { always: { target: "a" } } },
  });
  assert.deepEqual(reasons(circle), [
    "m.a: unguarded eventless transitions in a circle: m.a -> m.b -> m.a",
  ]);
  const guarded = setup({ guards: { perhaps: () => false } }).createMachine({
    id: "m",
    initial: "a",
    states: { a: { always: { guard: "perhaps", target: "b" } }, b: { always: "a" } },
  });
  assert.deepEqual(reasons(guarded), []);
});

test("a restart policy must be one of three, for a delay that the state arms", () => {
  const machine = setup({ delays: { late: 10 } }).createMachine({
    id: "m",
    initial: "a",
    states: {
      a: { meta: { timers: { late: "never", soon: "restart" } }, after: { late: "b" } },
      b: {},
    },
  });
  assert.deepEqual(reasons(machine), [
    "m.a: meta.timers.late is never: deadline, remaining or restart",
    "m.a: meta.timers names soon, which this state does not arm",
  ]);
});

test("what is not JSON in a configuration is refused", () => {
  const machine = createMachine({ id: "m", meta: { big: 1n, when: new Date(0) } });
  assert.deepEqual(reasons(machine), ["meta.big: 1 is not JSON", "meta.when: Date is not JSON"]);
});
