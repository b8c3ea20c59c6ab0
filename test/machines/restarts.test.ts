import assert from "node:assert/strict";
import { test } from "node:test";
import type { KernelEvent } from "../../src/kernel/mod.ts";
import { type Overrides, Run } from "./fixture.ts";

const launch = {
  id: "n0",
  ranks: [0, 1],
  argv: ["engine", "{handshake}"],
  env: {},
  cwd: null,
  inherit: true,
  restarts: { budget: 2, calmMs: 60_000, backOff: { firstMs: 100, factor: 2, maxMs: 1000 } },
};
const PROCESS = "process/n0";

/** A run whose launch is up. */
function started(overrides: Overrides = {}): Run {
  const run = new Run({ launches: [launch], ...overrides });
  answer(run, "launcher", "keeper.place", {
    type: "keeperPlaced",
    place: { mark: "m", directory: "/run/k" },
  });
  run.say("launcher", { type: "keeperUp", identity: { pid: 1, startTicks: 1, boot: "b" } });
  spawned(run, 100);
  return run;
}

function answer(run: Run, to: string, type: string, event: KernelEvent): void {
  const call = run.steps.flatMap((s) => s.effects).findLast((e) =>
    e.kind === "call" && e.from === to && e.effect.type === type
  )!;
  run.say(to, { ...event, call: call.id });
}

const spawned = (run: Run, pid: number): void =>
  answer(run, PROCESS, "process.spawn", { type: "spawned", pid });
const exited = (run: Run): unknown =>
  run.say(PROCESS, { type: "exited", code: 1, signal: null, tail: [] });
const spawns = (run: Run): number => run.asked.filter((a) => a.endsWith("process.spawn")).length;

test("a launch that ends while it loads starts again with all its ranks, and the cluster forms up", () => {
  const run = started();
  run.hello(0);
  assert.equal(run.startup.connected, 1);
  exited(run);
  assert.equal(run.value(PROCESS), "resting");
  assert.deepEqual([run.value("rank/0/engine"), run.value("rank/1/engine")], [
    "awaited",
    "awaited",
  ]);
  assert.equal(run.startup.connected, 0);
  run.fire(PROCESS, "backOff");
  assert.equal(spawns(run), 2);
  spawned(run, 101);
  for (const rank of [0, 1]) run.hello(rank);
  for (const rank of [0, 1]) run.ready(rank);
  assert.equal(run.value("startup"), "formed");
});

test("an end after READY is a failure all the same: the group cannot take the rank back", () => {
  const run = started();
  run.hello(0);
  run.ready(0);
  exited(run);
  assert.deepEqual([run.startup.failure?.code, run.startup.failure?.of], [
    "engine-exited",
    "rank/0/engine",
  ]);
  assert.equal(run.value(PROCESS), "ended");
});

test("when the budget is used up the next end fails the start-up, with the last exit", () => {
  const run = started();
  for (const pid of [101, 102]) {
    exited(run);
    run.fire(PROCESS, "backOff");
    spawned(run, pid);
  }
  exited(run);
  assert.equal(run.startup.failure?.code, "engine-exited");
  assert.equal(spawns(run), 3);
});

test("the wait doubles, and after a calm time earlier restarts are forgotten", () => {
  const run = started();
  const due = (): number =>
    run.system.instances.get(PROCESS)!.timers.find((t) => t.timer.includes("backOff"))!.dueAt -
    run.system.at;
  exited(run);
  assert.equal(due(), 100);
  run.fire(PROCESS, "backOff");
  spawned(run, 101);
  exited(run);
  assert.equal(due(), 200);
  run.fire(PROCESS, "backOff");
  spawned(run, 102);
  run.fire(PROCESS, "calm");
  exited(run);
  assert.equal(due(), 100);
});

test("stop while a launch rests: nothing is started again", () => {
  const run = started();
  exited(run);
  run.say("startup", { type: "stop" });
  assert.equal(run.value(PROCESS), "ended");
  assert.equal(run.value("startup"), "stopped");
  assert.equal(spawns(run), 1);
});
