import assert from "node:assert/strict";
import { test } from "node:test";
import {
  castInOrder,
  type SequenceStep,
  stepsOfRun,
  toSequenceMermaid,
  toSequenceSvg,
  toSequenceText,
} from "../../src/charts/mod.ts";
import { parseXml } from "../../src/charts/xml.ts";
import { Run } from "../machines/fixture.ts";

const steps: readonly SequenceStep[] = [
  { kind: "message", from: "C", to: "rank 0", label: "prepare" },
  { kind: "message", from: "C", to: "rank 1", label: "prepare", fate: "lost" },
  { kind: "message", from: "rank 0", to: "C", label: "yes", states: { "rank 0": "in doubt" } },
  { kind: "crash", on: "rank 0" },
  { kind: "timeout", on: "C", label: "prepareDeadline" },
  { kind: "restart", on: "rank 0" },
  { kind: "local", on: "rank 0", label: "presumes abort", states: { "rank 0": "aborted" } },
];

test("seven steps are seven lines in the terminal, below one line of heads", () => {
  assert.equal(
    toSequenceText(steps),
    [
      "   C                       rank 0            rank 1",
      "1  ├──────── prepare ────────▶│                 │",
      "2  ├────────────── prepare (lost) ─────────────✗│",
      "3  │◀───────── yes ───────────┤                 │  [rank 0 in doubt]",
      "4  │                          ✗ crash           │",
      "5  ◷ timeout prepareDeadline  │                 │",
      "6  │                          ↻ restart         │",
      "7  │                          ● presumes abort  │  [rank 0 aborted]",
      "",
    ].join("\n"),
  );
});

test("labels are never cut by the next lifeline, whatever their length", () => {
  const long: SequenceStep[] = [
    { kind: "message", from: "a", to: "b", label: "x".repeat(38) },
    { kind: "message", from: "c", to: "b", label: "y".repeat(60) },
    { kind: "timeout", on: "a", label: "z".repeat(20) },
  ];
  const text = toSequenceText(long);
  assert.ok(text.includes(` ${"x".repeat(38)} `));
  assert.ok(text.includes(` ${"y".repeat(39)}… `));
  assert.ok(text.includes(`timeout ${"z".repeat(20)}`));
});

test("Mermaid: participants, lost messages as -x, states and crashes as notes, nothing that ends a statement", () => {
  const odd: SequenceStep = { kind: "message", from: "C", to: "C", label: "a;b #1 <x>" };
  assert.equal(
    toSequenceMermaid([...steps.slice(1, 5), odd]),
    [
      "sequenceDiagram",
      "  participant p1 as C",
      "  participant p2 as rank 1",
      "  participant p3 as rank 0",
      "  p1-xp2: prepare (lost)",
      "  p3->>p1: yes",
      "  Note right of p3: in doubt",
      "  Note over p3: ✗ crash",
      "  Note over p1: ◷ timeout prepareDeadline",
      "  p1->>p1: a#59;b #35;1 #lt;x#gt;",
      "",
    ].join("\n"),
  );
});

test("SVG: well-formed, one group a step, the step asked for is marked, the same bytes again", () => {
  const text = toSequenceSvg(steps, { at: 4 });
  const groups = parseXml(text).children.filter((e) => e.attributes["id"]?.startsWith("step-"));
  assert.deepEqual(
    groups.map((g) => g.attributes["id"]),
    [1, 2, 3, 4, 5, 6, 7].map((n) => `step-${n}`),
  );
  assert.equal(groups[3]?.attributes["class"], "step crash now");
  assert.equal(toSequenceSvg(steps, { at: 4 }), text);
  const twice = parseXml(toSequenceSvg(steps.map((step) => ({ ...step, seq: 9 }))));
  const ids = twice.children.flatMap((e) => e.attributes["id"] ?? []);
  assert.deepEqual(
    [ids.length, new Set(ids).size],
    [7, 7],
    "ids differ where steps share a record",
  );
  assert.equal(parseXml(toSequenceSvg([])).name, "svg");
});

test("a process that ends well has not crashed", () => {
  const launches = [{ id: "e1", ranks: [1], argv: ["x"], env: {}, cwd: null, inherit: true }];
  const run = new Run({ launches });
  run.say("process/e1", { type: "exited", code: 0, signal: null, tail: [] });
  const ends = stepsOfRun(run.steps).filter((s) => "on" in s && s.on === "process e1");
  assert.deepEqual(ends.map((s) => [s.kind, "label" in s ? s.label : ""]), [
    ["local", "exited, code 0"],
  ]);
});

test("a run is told as messages, crashes and timeouts, with the states that changed", () => {
  const launches = [{ id: "e1", ranks: [1], argv: ["x"], env: {}, cwd: null, inherit: true }];
  const run = new Run({ launches });
  run.say("launcher", { type: "keeperPlaced", socket: "/s", token: "t", call: "2.1" });
  run.say("launcher", { type: "keeperUp" });
  run.say("process/e1", { type: "spawned", pid: 4711, call: "4.0" });
  run.hello(1);
  run.say("process/e1", { type: "exited", code: null, signal: "SIGKILL", tail: ["loading"] });
  run.fire("rank/0/engine", "connectDeadline");
  const told = stepsOfRun(run.steps);
  const lines = told.map((s) =>
    s.kind === "message"
      ? `${s.from} -> ${s.to}: ${s.label}`
      : s.kind === "crash" || s.kind === "timeout" || s.kind === "local"
      ? `${s.kind} ${s.on}: ${s.label}`
      : s.kind
  );
  assert.deepEqual(lines.slice(0, 1), ["operator -> coordinator: configured, 2 ranks"]);
  assert.ok(lines.includes("engine 1 -> coordinator: hello"), lines.join("\n"));
  assert.ok(lines.includes("coordinator -> engine 1: handshake.init"), lines.join("\n"));
  assert.ok(lines.includes("crash process e1: exited, SIGKILL"), lines.join("\n"));
  assert.ok(lines.includes("timeout coordinator: connectDeadline of rank 0"), lines.join("\n"));
  const crash = told.find((s) => s.kind === "crash");
  assert.deepEqual(crash?.states, {
    "process e1": "ended",
    "engine 1": "lost",
    coordinator: "failed.cleared",
  });
  assert.deepEqual(castInOrder(told).map((l) => l.id), [
    "operator",
    "coordinator",
    "engine 0",
    "engine 1",
    "process e1",
  ]);
});
