import assert from "node:assert/strict";
import { test } from "node:test";
import { createMachine } from "xstate";
import {
  activeStates,
  ChartError,
  chartModel,
  coverageOf,
  nodesOf,
  toMermaid,
  transitionsOf,
} from "../../src/charts/mod.ts";
import { everything } from "./samples.ts";

const model = chartModel(everything);
const lines = (text: string): string[] => text.split("\n").map((line) => line.trim());

test("a machine is read as plain data: states, kinds, triggers, guards as formulas", () => {
  assert.deepEqual(JSON.parse(JSON.stringify(model)), model);
  assert.deepEqual(
    nodesOf(model).map((n) => `${n.id} ${n.kind}`),
    [
      "everything compound",
      "everything.idle atomic",
      "everything.running parallel",
      "everything.running.door compound",
      "everything.running.door.shut atomic",
      "everything.running.door.opened compound",
      "everything.running.door.opened.narrow atomic",
      "everything.running.door.opened.wide atomic",
      "gone final",
      "everything.running.clock compound",
      "everything.running.clock.waiting atomic",
      "everything.running.clock.over final",
      "everything.running.clock.memory history",
      "everything.broken atomic",
      "everything.finished final",
    ],
  );
  assert.deepEqual(transitionsOf(model).map((t) => t.trigger.kind).sort(), [
    "after",
    "after",
    "done",
    ...Array(12).fill("event"),
  ]);
  const guarded = transitionsOf(model).find((t) => t.id === "everything.idle#1");
  assert.deepEqual(guarded?.guard, {
    op: "and",
    of: [{ op: "named", name: "allowed" }, {
      op: "not",
      of: [{ op: "named", name: "exhausted" }],
    }],
  });
});

test("a delay arms no action in the model: entry and exit are what the author wrote", () => {
  const waiting = nodesOf(model).find((n) => n.id === "everything.running.clock.waiting");
  assert.deepEqual(waiting?.entry, []);
  assert.deepEqual(waiting?.exit, []);
});

test("what is not a machine is refused with what it is", () => {
  assert.throws(() => chartModel({ id: "x", root: {} }), (error) => {
    assert.ok(error instanceof ChartError);
    assert.equal(error.code, "chart.not-a-machine");
    assert.match(error.message, /an object with id, root/);
    return true;
  });
});

test("edges to a composite inside a region go to its initial leaf, because Mermaid crashes on them", () => {
  const text = lines(toMermaid(model));
  assert.ok(
    text.includes(
      "everything_running_clock_waiting --> everything_running_door_opened_narrow : go [within(limit: 3)]",
    ),
  );
  const composites = ["everything_running_door_opened", "everything_running_door"];
  for (const name of composites) {
    assert.deepEqual(text.filter((line) => line.includes(`--> ${name} `)), []);
  }
});

test("edges that cross a border stand after every block, so that no state is moved into another", () => {
  const text = toMermaid(model).split("\n");
  const lastBlock = text.findLastIndex((line) => line.trim() === "}");
  const crossing = text.findIndex((line) => line.includes("door_opened_wide --> gone"));
  assert.ok(crossing > lastBlock, `line ${crossing} after ${lastBlock}`);
});

test("ids are unique and no reserved word, labels cannot end a statement", () => {
  const odd = createMachine({
    id: "end",
    initial: "a.b",
    states: { "a.b": { on: { "x;y #1 <z>": "a_b" } }, a_b: {} },
  });
  assert.equal(
    toMermaid(chartModel(odd)),
    [
      "stateDiagram-v2",
      "  [*] --> s_end_a_b",
      '  state "a.b" as s_end_a_b',
      '  state "a_b" as s_end_a_b_2',
      "  s_end_a_b --> s_end_a_b_2 : x#59;y #35;1 #lt;z#gt;",
      "",
    ].join("\n"),
  );
});

test("several transitions between the same two states share one arrow", () => {
  const chart = createMachine({
    id: "m",
    initial: "a",
    states: { a: { on: { x: "b", y: "b" } }, b: {} },
  });
  assert.match(toMermaid(chartModel(chart)), /^ {2}m_a --> m_b : x<br\/>y$/m);
});

test("more than Mermaid's 500 edges are refused, and the message names another format", () => {
  const states = Object.fromEntries(
    Array.from({ length: 502 }, (_, i) => [`s${i}`, { on: { next: `s${(i + 1) % 502}` } }]),
  );
  const ring = createMachine({ id: "ring", initial: "s0", states });
  assert.throws(() => toMermaid(chartModel(ring)), /ring exceeds what Mermaid draws .* write SVG/);
});

test("an overlay shows active states, counts and what was never visited", () => {
  const active = activeStates(model, { running: { door: { opened: "wide" }, clock: "waiting" } });
  assert.deepEqual([...active].length, 7);
  const visits = new Map([...active].map((id) => [id, 2]));
  const taken = new Map([["everything.idle#1", 2]]);
  const text = lines(toMermaid(model, { active, visits, taken, coverage: true }));
  assert.ok(text.includes('state "wide ×2" as everything_running_door_opened_wide'));
  assert.ok(
    text.includes(
      "class everything_running_door_opened_wide,everything_running_clock_waiting active",
    ),
  );
  const { states, transitions } = coverageOf(model, { visits, taken });
  assert.deepEqual([states.seen, states.all], [6, 13]);
  assert.deepEqual([transitions.seen, transitions.all], [1, 15]);
});
