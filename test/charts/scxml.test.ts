import assert from "node:assert/strict";
import { test } from "node:test";
import { createMachine, setup } from "xstate";
import {
  ChartError,
  chartModel,
  nodesOf,
  readScxml,
  scxmlFaults,
  toScxml,
  transitionsOf,
} from "../../src/charts/mod.ts";
import { parseXml } from "../../src/charts/xml.ts";
import { everything } from "./samples.ts";

const model = chartModel(everything);
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

test("SCXML has parallel, delayed sends with their cancels, and guards as cond", () => {
  const text = toScxml(model);
  for (
    const line of [
      '<parallel id="everything.running">',
      '<send id="after.250.everything.running.door.opened.narrow" event="after.250.everything.running.door.opened.narrow" delay="250ms"/>',
      '<send id="after.patience.everything.running.clock.waiting" event="after.patience.everything.running.clock.waiting" delayexpr="patience"/>',
      '<cancel sendid="after.patience.everything.running.clock.waiting"/>',
      '<data id="patience"/>',
      '<transition event="go" cond="allowed() &amp;&amp; !exhausted()" target="everything.running">',
      '<transition event="go" cond="within({&quot;limit&quot;:3})" target="everything.running.door.opened"/>',
      '<transition event="done.state.everything.running" target="everything.finished"/>',
      '<history id="everything.running.clock.memory" type="deep">',
    ]
  ) assert.ok(text.includes(line), line);
});

test("SCXML is valid by the W3C structure and reads back as the very same model", () => {
  const text = toScxml(model);
  assert.deepEqual(scxmlFaults(parseXml(text)), []);
  assert.deepEqual(plain(readScxml(text)), plain(model));
  assert.equal(toScxml(readScxml(text)), text);
});

test("self-transitions, inner targets, odd names, params and a parallel root survive the round trip", () => {
  const machine = setup({ actions: { "do it": () => {} }, guards: { "is-it": () => true } })
    .createMachine({
      id: "odd id/1",
      type: "parallel",
      tags: ["t1"],
      states: {
        "a b": {
          initial: "x",
          description: 'line one\nline <two> & "three"',
          meta: { timers: { slow: "restart" }, list: [1, "ü"] },
          on: {
            self: ".x",
            again: { target: "#odd id/1.a b", reenter: true },
            inner: { target: ".y", reenter: true },
            stay: { target: "#odd id/1.a b" },
            "two words": { actions: "do it", guard: "is-it" },
            "*": {},
          },
          states: {
            x: {
              on: { same: "x", over: { target: "y", reenter: true } },
              always: { guard: "is-it", target: "y" },
            },
            y: { type: "final" },
            h: { type: "history", target: "y" },
          },
        },
        _x20_: { initial: "only", states: { only: { type: "final" } } },
      },
    });
  const odd = chartModel(machine);
  const text = toScxml(odd);
  assert.deepEqual(scxmlFaults(parseXml(text)), []);
  assert.deepEqual(plain(readScxml(text)), plain(odd));
});

test("an invoking machine keeps its actors and their outcomes", () => {
  const machine = createMachine({
    id: "caller",
    initial: "calling",
    states: {
      calling: {
        invoke: { id: "child", src: "worker", onDone: "good", onError: "bad" },
      },
      good: { type: "final" },
      bad: {},
    },
  });
  const calling = chartModel(machine);
  assert.deepEqual(plain(readScxml(toScxml(calling))), plain(calling));
  assert.deepEqual(transitionsOf(calling).map((t) => t.eventType), [
    "xstate.done.actor.child",
    "xstate.error.actor.child",
  ]);
});

test("a document by another hand is read: initial elements, several targets, executable content", () => {
  const other = readScxml(`<?xml version="1.0"?>
    <!-- an oven -->
    <scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" name="oven">
      <parallel id="oven">
        <state id="engine">
          <initial><transition target="off"/></initial>
          <state id="off"><transition event="on" target="hot"/></state>
          <state id="hot">
            <onentry><send event="cold" delay="1.5s"/><log label="hot" expr="1"/></onentry>
            <transition event="cold" target="off"><assign location="t" expr="0"/></transition>
          </state>
        </state>
        <state id="door"><state id="closed"/></state>
      </parallel>
    </scxml>`);
  assert.deepEqual(nodesOf(other).map((n) => `${n.id} ${n.kind}`), [
    "oven compound",
    "oven parallel",
    "engine compound",
    "off atomic",
    "hot atomic",
    "door compound",
    "closed atomic",
  ]);
  const cold = transitionsOf(other)[1]!;
  assert.deepEqual(cold.trigger, { kind: "after", delay: 1500 });
  assert.deepEqual(cold.actions, [{ name: "assign t" }]);
});

test("a broken document is refused with the place, an invalid one with every fault", () => {
  const codeOf = (text: string): [string, string] => {
    try {
      readScxml(text);
    } catch (error) {
      assert.ok(error instanceof ChartError);
      return [error.code, error.message];
    }
    return ["", ""];
  };
  assert.deepEqual(codeOf("<scxml>\n  <state></scxml>"), [
    "chart.scxml-syntax",
    "line 2, column 12: expected </state>, not </scxml>",
  ]);
  assert.equal(codeOf("<!DOCTYPE x><x/>")[0], "chart.scxml-syntax");
  assert.equal(codeOf('<a b="&nope;"/>')[0], "chart.scxml-syntax");
  assert.deepEqual(
    codeOf(
      '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" initial="b">\n<state id="a" colour="red"><state id="a"/>\n' +
        '<transition target="zz"/><onentry><send event="x" delay="soon"/></onentry><transition/></state></scxml>',
    ),
    [
      "chart.scxml-invalid",
      [
        "line 2: id a is used twice",
        "line 1: initial b is no state of the document",
        "line 2: <state> has no attribute colour",
        "line 3: target zz is no state of the document",
        "line 3: delay soon is no CSS2 duration",
        "line 3: a transition has an event, a cond or a target",
      ].join("\n"),
    ],
  );
});
