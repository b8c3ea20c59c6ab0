import assert from "node:assert/strict";
import { test } from "node:test";
import { createMachine } from "xstate";
import { check, defineModel, verdictText } from "../../src/checker/mod.ts";

test("one step is one step, and one state is one state", () => {
  const lamp = createMachine({
    id: "lamp",
    initial: "off",
    states: { off: { on: { press: "on" } }, on: { on: { press: "broken" } }, broken: {} },
  });
  const text = verdictText(check(defineModel({
    name: "lamp",
    processes: { lamp: { runs: lamp, may: [{ type: "press" }] } },
    properties: { always: { "is never broken": (world) => !world.in("lamp", "broken") } },
  })));
  assert.match(text, /\n {2}depth {7}1 step\n/);
  assert.match(text, /\n {2}frontier {4}1 state found, but not left\n/);
});
