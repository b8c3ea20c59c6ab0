/** A coordinator that came back asks every rank that serves whether it goes on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type KernelEvent, type StepResult, SYSTEM } from "../../src/kernel/mod.ts";
import { statusOf } from "../../src/view/mod.ts";
import { configuration, Run } from "./fixture.ts";

/** Two launched ranks that serve, and a coordinator that came back. */
function restarted(ours = true): Run {
  const clients = [{ input: "ipc:///i", output: "ipc:///o", ours }];
  const run = new Run({ sockets: { ...configuration().sockets, clients } });
  run.say("startup", { type: "bound", socket: "bus0", endpoints: { input: "i", output: "o" } });
  for (const rank of [0, 1]) {
    run.hello(rank);
    run.ready(rank);
  }
  run.say(SYSTEM, { type: "resumed", downMs: 10 });
  return run;
}

const engines = (run: Run): unknown[] => [0, 1].map((r) => run.value(`rank/${r}/engine`));

/** How the question of the last restart ended. */
function answered(run: Run, rank: number, event: KernelEvent): StepResult {
  const { calls } = run.system.instances.get(`rank/${rank}/engine`)!;
  assert.deepEqual(calls.map((c) => c.effect), [
    { type: "engine.call", request: { method: "is_scheduler_paused" }, deadlineMs: 60_000 },
  ]);
  return run.say(`rank/${rank}/engine`, { ...event, call: calls[0]!.id });
}

test("after a restart a rank is ready when it has answered one utility, whatever it answered", () => {
  const run = restarted();
  assert.deepEqual(engines(run), ["adopting", "adopting"]);
  answered(run, 1, { type: "utilityReplied", value: false });
  assert.deepEqual(engines(run), ["adopting", "ready"]);
  answered(run, 0, { type: "utilityFailed", failure: "no method is_scheduler_paused" });
  assert.deepEqual([...engines(run), run.value("startup")], ["ready", "ready", "formed"]);
});

test("a rank that lives and does not answer is a failure that names it and says why", () => {
  const silent = restarted();
  answered(silent, 1, { type: "utilityLate", why: "rank 1 is not connected" });
  const { code, of, phase, detail } = silent.startup.failure!;
  assert.deepEqual([code, of, phase], ["engine-unresponsive", "rank/1/engine", "adopt"]);
  assert.deepEqual(detail, { afterMs: 60_000, why: "rank 1 is not connected" });
  assert.match(
    statusOf(silent.steps).failure!.sentence,
    /^Rank 1 did not answer within 1 min when its coordinator had come back, so it was not adopted: rank 1 is not connected\.$/,
  );
  // Nor is it an answer that there is no way to the engine.
  const cutOff = restarted();
  answered(cutOff, 0, { type: "utilityFailed", failure: "there is no bus", unasked: true });
  assert.equal(cutOff.startup.failure?.detail["why"], "there is no bus");
});

test("while a rank is adopted its end is its end, and a second restart asks again", () => {
  const run = restarted();
  run.say(SYSTEM, { type: "resumed", downMs: 10 });
  answered(run, 0, { type: "utilityUnknown" });
  answered(run, 0, { type: "utilityReplied", value: true });
  run.say("rank/1/engine", { type: "exited", code: 3, signal: null });
  assert.deepEqual(engines(run), ["ready", "lost"]);
  assert.deepEqual([run.startup.failure?.code, run.startup.failure?.detail["code"]], [
    "engine-exited",
    3,
  ]);
  assert.deepEqual(run.steps.flatMap((s) => s.notes), []);
});

test("ranks whose bus is another front-end's cannot be asked: their process is all that is known", () => {
  assert.deepEqual(engines(restarted(false)), ["ready", "ready"]);
});

test("a socket whose address somebody else has taken meanwhile is a failure of the cluster that had formed up", () => {
  const run = restarted();
  run.say("startup", { type: "bindFailed", socket: "bus0", text: "in use" });
  assert.deepEqual([run.value("startup"), run.startup.failure?.code], [
    { failed: "cleared" },
    "bind-failed",
  ]);
});
