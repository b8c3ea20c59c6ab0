import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "xstate";
import {
  type Chart,
  effectsDigest,
  type Input,
  Kernel,
  KernelError,
  type KernelEvent,
  start,
  stateDigest,
  type StepResult,
  SYSTEM,
  type System,
  tell,
} from "../../src/kernel/mod.ts";
import { kernel } from "./fixture.ts";

const k = kernel();
const READY_TIMER = "xstate.after.readyDeadline.engine.connected";
const HELLO_TIMER = "xstate.after.helloDeadline.engine.awaited";

/** Feeds events 100 ms apart and returns every result. */
function run(events: readonly [string, KernelEvent][], from: System = k.empty): StepResult[] {
  const results: StepResult[] = [];
  let system = from;
  for (const [to, event] of events) {
    const input: Input = { seq: system.seq + 1, at: system.at + 100, to, event };
    const result = k.step(system, input);
    results.push(result);
    system = result.system;
  }
  return results;
}
const configured: [string, KernelEvent] = [SYSTEM, { type: "configured", engines: 2 }];
const last = <T>(list: readonly T[]): T => list[list.length - 1]!;
const stateOf = (system: System, id: string) => system.instances.get(id)?.state.snapshot.value;

test("input 1 configures the run: root instances start and arm their timers", () => {
  const [first] = run([configured]);
  assert.deepEqual([...first!.system.instances].map((i) => i.id), [
    "startup",
    "rank/0/engine",
    "rank/1/engine",
  ]);
  assert.deepEqual(first!.effects, [
    {
      id: "1.0",
      from: "rank/0/engine",
      kind: "arm",
      timer: HELLO_TIMER,
      generation: 1,
      dueAt: 1100,
    },
    {
      id: "1.1",
      from: "rank/1/engine",
      kind: "arm",
      timer: HELLO_TIMER,
      generation: 2,
      dueAt: 1100,
    },
  ]);
});

test("a hello is answered, its deadline replaced, and the start-up told who said it", () => {
  const { effects, transitions, notes } = last(run([configured, ["rank/1/engine", {
    type: "hello",
  }]]));
  assert.deepEqual(effects.map((e) => [e.id, e.kind]), [
    ["2.0", "disarm"],
    ["2.1", "message"],
    ["2.2", "hold"],
    ["2.3", "arm"],
  ]);
  assert.deepEqual(transitions.map((t) => [t.instance, t.event]), [
    ["rank/1/engine", { type: "hello" }],
    ["startup", { type: "connected", from: "rank/1/engine" }],
  ]);
  assert.equal(transitions[1]!.kind, "ignored");
  assert.deepEqual(notes, []);
});

test("a firing of an earlier generation of the same timer is stale", () => {
  const results = run([
    configured,
    ["rank/1/engine", { type: "hello" }],
    ["rank/1/engine", { type: "hello" }],
    ["rank/1/engine", { type: "timer.fired", timer: READY_TIMER, generation: 3 }],
    ["rank/1/engine", { type: "timer.fired", timer: READY_TIMER, generation: 4 }],
  ]);
  assert.deepEqual(results[3]!.notes, [
    { kind: "stale-timer", instance: "rank/1/engine", what: READY_TIMER },
  ]);
  assert.equal(stateOf(results[3]!.system, "rank/1/engine"), "connected");
  assert.equal(stateOf(results[4]!.system, "rank/1/engine"), "late");
  assert.equal(stateOf(results[4]!.system, "startup"), "failed");
});

test("events not taken are told apart: unexpected, refused, ignored on purpose", () => {
  const results = run([
    configured,
    ["rank/0/engine", { type: "NOPE" }],
    ["rank/0/engine", { type: "hello" }],
    ["rank/0/engine", { type: "ready", blocks: -1 }],
    ["rank/0/engine", { type: "ready", blocks: 7 }],
    ["rank/0/engine", { type: "ready", blocks: 7 }],
    ["rank/9/engine", { type: "hello" }],
  ]);
  const kinds = results.map((r) => r.notes.map((n) => n.kind));
  assert.deepEqual(kinds, [[], ["unexpected"], [], ["refused"], [], [], ["nobody"]]);
  assert.equal(results[5]!.transitions[0]!.kind, "ignored");
});

test("when all are ready the durable announcement carries the sum of blocks", () => {
  const results = run([
    configured,
    ["rank/0/engine", { type: "hello" }],
    ["rank/1/engine", { type: "hello" }],
    ["rank/0/engine", { type: "ready", blocks: 20 }],
    ["rank/1/engine", { type: "ready", blocks: 30 }],
  ]);
  assert.deepEqual(last(last(results).effects), {
    id: "5.2",
    from: "startup",
    kind: "message",
    effect: { type: "announce", blocks: 50 },
  });
});

test("a call is open until its outcome; a second one in its slot abandons the first; a late outcome is a note", () => {
  const results = run([
    configured,
    ["rank/0/engine", { type: "hello" }],
    ["rank/0/engine", { type: "ready", blocks: 1 }],
    ["rank/0/engine", { type: "ping" }],
    ["rank/0/engine", { type: "ping" }],
    ["rank/0/engine", { type: "paused", call: "4.0" }],
    ["rank/0/engine", { type: "paused", call: "5.1" }],
    ["rank/0/engine", { type: "paused", call: "5.1" }],
  ]);
  assert.deepEqual(results[4]!.effects.map((e) => e.kind), ["abandon", "call"]);
  assert.deepEqual(results[4]!.system.instances.get("rank/0/engine")!.calls.map((c) => c.id), [
    "5.1",
  ]);
  assert.equal(results[5]!.notes[0]!.kind, "late-outcome");
  assert.equal(stateOf(results[6]!.system, "rank/0/engine"), "paused");
  assert.deepEqual(results[6]!.system.instances.get("rank/0/engine")!.calls, []);
  assert.equal(results[7]!.notes[0]!.kind, "late-outcome");
});

test("an instance in a final state is gone with what it held, and its starter is told", () => {
  const results = run([
    configured,
    ["rank/0/engine", { type: "hello" }],
    ["rank/0/engine", { type: "exited", code: 1 }],
  ]);
  const { system, effects, transitions } = last(results);
  assert.equal(system.instances.get("rank/0/engine"), undefined);
  assert.equal(system.instances.count, 2);
  assert.deepEqual(effects.map((e) => e.kind), ["release", "disarm"]);
  assert.deepEqual(last(transitions).event, {
    type: "ended",
    chart: "engine",
    from: "rank/0/engine",
  });
});

test("after a restart each timer follows its policy", () => {
  const [first] = run([configured, ["rank/0/engine", { type: "hello" }]]).slice(-1);
  const resumed = k.step(first!.system, {
    seq: 3,
    at: 60_200,
    to: SYSTEM,
    event: { type: "resumed", downMs: 60_000 },
  });
  const due = (id: string) => resumed.system.instances.get(id)!.timers.map((t) => t.dueAt);
  assert.deepEqual(due("rank/0/engine"), [65_200], "restart: the whole delay from now");
  assert.deepEqual(due("rank/1/engine"), [61_100], "remaining: the time away does not count");
});

test("a guard or action that throws fails that instance's event and leaves its state", () => {
  const brittle: Chart<Record<never, never>, { type: "go" }> = setup({
    types: {} as { events: { type: "go" } },
    actions: {
      burst: () => {
        throw new Error("no such thing");
      },
    },
  }).createMachine({
    id: "brittle",
    initial: "a",
    states: { a: { on: { go: "b" } }, b: { entry: "burst" } },
  });
  const b = new Kernel({
    charts: { brittle: { machine: brittle } },
    effects: {},
    boot: () => [start("x", "brittle")],
  });
  const one = b.step(b.empty, { seq: 1, at: 0, to: SYSTEM, event: { type: "configured" } });
  const two = b.step(one.system, { seq: 2, at: 1, to: "x", event: { type: "go" } });
  assert.deepEqual(two.notes, [
    { kind: "failed", instance: "x", what: "go", text: "no such thing" },
  ]);
  assert.equal(stateDigest(two.system), stateDigest(one.system));
});

test("relative addresses reach siblings and uncles, and @starter the starter", () => {
  const heard: string[] = [];
  const ear: Chart<Record<never, never>, { type: "hi" }> = setup({
    types: {} as { events: { type: "hi" } },
    actions: {
      answer: () => [
        tell("../waves", { type: "sibling" }),
        tell("../../startup", { type: "uncle" }),
        tell("@starter", { type: "starter" }),
      ],
    },
  }).createMachine({ id: "ear", on: { hi: { actions: "answer" } } });
  const e = new Kernel({
    charts: { ear: { machine: ear } },
    effects: {},
    boot: () => [start("rank/3/engine", "ear")],
  });
  const one = e.step(e.empty, { seq: 1, at: 0, to: SYSTEM, event: { type: "configured" } });
  const two = e.step(one.system, { seq: 2, at: 1, to: "rank/3/engine", event: { type: "hi" } });
  for (const note of two.notes) heard.push(note.instance);
  assert.deepEqual(heard, ["rank/3/waves", "rank/startup", ""]);
});

test("instances that talk without end are a livelock, named", () => {
  const chatty: Chart<Record<never, never>, { type: "hi" }> = setup({
    types: {} as { events: { type: "hi" } },
    actions: { again: () => tell("x", { type: "hi" }) },
  }).createMachine({ id: "chatty", on: { hi: { actions: "again" } } });
  const c = new Kernel({
    charts: { chatty: { machine: chatty } },
    effects: {},
    boot: () => [start("x", "chatty")],
  });
  const one = c.step(c.empty, { seq: 1, at: 0, to: SYSTEM, event: { type: "configured" } });
  assert.throws(
    () => c.step(one.system, { seq: 2, at: 1, to: "x", event: { type: "hi" } }),
    (e: KernelError) => e.code === "livelock" && /x is told hi/.test(e.message),
  );
});

test("a gap in the sequence is refused", () => {
  assert.throws(
    () => k.step(k.empty, { seq: 2, at: 0, to: SYSTEM, event: { type: "configured" } }),
    (e: KernelError) => e.code === "sequence",
  );
});

test("a saved system loads into the same system and goes on the same way", () => {
  const before = last(run([configured, ["rank/0/engine", { type: "hello" }]])).system;
  const loaded = kernel().load(JSON.parse(JSON.stringify(k.save(before))));
  assert.equal(stateDigest(loaded), stateDigest(before));
  const next: Input = { seq: 3, at: 300, to: "rank/0/engine", event: { type: "exited", code: 0 } };
  const a = k.step(before, next);
  const b = kernel().step(loaded, next);
  assert.equal(stateDigest(a.system), stateDigest(b.system));
  assert.equal(effectsDigest(a.effects), effectsDigest(b.effects));
});

test("old versions of a system stay as they were, also when two futures grow apart", () => {
  const [root] = run([configured]);
  const left = run([["rank/0/engine", { type: "exited", code: 1 }]], root!.system);
  const right = run([["rank/0/engine", { type: "hello" }]], root!.system);
  assert.equal(stateOf(root!.system, "rank/0/engine"), "awaited");
  assert.equal(stateOf(left[0]!.system, "rank/0/engine"), undefined);
  assert.equal(stateOf(right[0]!.system, "rank/0/engine"), "connected");
});
