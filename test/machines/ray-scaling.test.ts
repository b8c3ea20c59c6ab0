import assert from "node:assert/strict";
import { test } from "node:test";
import { finished, GPU, left, placed, places, Run } from "./ray-scaling-world.ts";

test("two-phase, up: prepare beside serving, pause, commit, resume all", () => {
  const run = new Run({ placement: placed(2, 1) });
  run.tell({ type: "scale", operation: "op1", target: 4 });
  assert.deepEqual(run.answers, ["op1 accepted"]);
  run.settle("pause", "commit");
  assert.deepEqual(run.take(), [
    "ray.snapshot",
    "scaling.draw",
    "store.serve",
    "rank.call 0 reinitialize_distributed",
    "rank.call 1 reinitialize_distributed",
    "ray.start 2",
    "ray.start 3",
  ]);
  assert.equal(run.state, '{"operating":"preparing"}', "ready keys are awaited");
  run.tell({ type: "enginesReady" });
  run.settle("commit");
  assert.deepEqual(run.take(), [
    "rank.call 0 pause_scheduler",
    "rank.call 1 pause_scheduler",
    "rank.call 0 commit_prepared_elastic_ep",
    "rank.call 1 commit_prepared_elastic_ep",
  ]);
  assert.equal(run.context.placement.ranks.length, 2, "the size is still the old one");
  run.settle();
  run.tell({ type: "joined", rank: 2 });
  run.tell(finished);
  assert.equal(run.state, '{"operating":"committing"}', "the first frame of rank 3 is awaited");
  run.tell({ type: "joined", rank: 3 });
  run.settle();
  assert.deepEqual(run.take(), [0, 1, 2, 3].map((r) => `rank.call ${r} resume_scheduler`));
  assert.equal(run.state, '"serving"');
  assert.equal(places(run.context.placement), "A0 B0 A1 A2");
  assert.deepEqual(run.context.launches, ["first-r0", "first-r1", "op1-r2", "op1-r3"]);
  assert.deepEqual(run.answers, ["op1 accepted", "op1 completed"]);
});

test("what is asked carries the target: bootstrap with the store's port, and new ranks their places", () => {
  const run = new Run({ placement: placed(1, 1) });
  run.tell({ type: "scale", operation: "op1", target: 2 });
  run.settle("reinitialize", "launch");
  const [call, start] = run.asked.slice(-2);
  assert.deepEqual(call, {
    type: "rank.call",
    rank: 0,
    request: {
      method: "reinitialize_distributed",
      bootstrap: { size: 2, masterIp: "A", masterPort: 7000, masterPorts: [7001], storePort: 7777 },
      leave: false,
    },
    deadlineMs: 60_000,
  });
  assert.equal(start?.type === "ray.start" && start.launch, "op1-r1");
  assert.deepEqual(start?.type === "ray.start" && start.rank.on, [
    { node: "node-A", ip: "A", devices: 1 },
  ]);
});

test("a first frame that comes before the commit is not lost", () => {
  const run = new Run({ placement: placed(1, 1) });
  run.tell({ type: "scale", operation: "op1", target: 2 });
  run.settle();
  run.tell({ type: "joined", rank: 1 });
  run.tell({ type: "enginesReady" });
  run.settle();
  run.tell(finished);
  run.settle();
  assert.deepEqual(run.answers.at(-1), "op1 completed");
});

test("two-phase, down: survivors keep, removed ranks abort and leave, and are stopped by rank", () => {
  const run = new Run({ placement: placed(4, 2) });
  run.tell({ type: "scale", operation: "op1", target: 2 });
  run.settle();
  assert.deepEqual(
    run.take().slice(3),
    [0, 1].map((r) => `rank.call ${r} reinitialize_distributed`),
  );
  run.tell({ type: "enginesReady" });
  const modes = run.asked.map((e) =>
    e.type === "rank.call" && e.request.method === "pause_scheduler" && e.request.mode
  );
  assert.deepEqual(modes, ["keep", "keep", "abort", "abort"]);
  run.asked = [];
  run.settle();
  assert.deepEqual(run.take(), [
    "rank.call 0 commit_prepared_elastic_ep",
    "rank.call 1 commit_prepared_elastic_ep",
    "rank.call 2 reinitialize_distributed",
    "rank.call 3 reinitialize_distributed",
  ]);
  run.tell(left(3));
  run.tell(finished);
  run.settle("stop");
  assert.equal(run.state, '{"operating":"leaving"}');
  run.tell(left(3));
  assert.equal(run.state, '{"operating":"leaving"}', "a repeated word counts once");
  run.tell(left(2));
  run.settle();
  assert.deepEqual(run.take(), [
    "rank.call 0 resume_scheduler",
    "rank.call 1 resume_scheduler",
    "ray.stop 2",
    "ray.stop 3",
  ]);
  assert.equal(places(run.context.placement), "A0 A1");
  assert.deepEqual(run.context.launches, ["first-r0", "first-r1"]);
});

test("a removed rank that does not leave is stopped after a while; one that is dead is not waited for", () => {
  const run = new Run({ placement: placed(3, 1) });
  run.tell({ type: "scale", operation: "op1", target: 1 });
  run.settle();
  run.tell({ type: "enginesReady" });
  run.tell({ type: "rankGone", rank: 2, text: "exit 1" });
  run.settle();
  run.tell(finished);
  run.settle("stop");
  assert.equal(run.state, '{"operating":"leaving"}');
  run.fire("settle");
  run.settle();
  assert.equal(run.answers.at(-1), "op1 completed");
});

test("relay, up: notifications of all new ranks are passed on to every old one, step by step", () => {
  const run = new Run({ placement: placed(2, 1), flow: "relay" });
  run.tell({ type: "scale", operation: "op1", target: 4 });
  run.settle();
  run.take();
  const say = (rank: number, kind: string) => run.tell({ type: "notified", rank, kind });
  say(2, "NEW_CORE_ENGINES_INIT_READY");
  say(2, "NEW_CORE_ENGINES_INIT_READY");
  assert.deepEqual(run.take(), [], "rank 3 is awaited");
  say(3, "NEW_CORE_ENGINES_INIT_READY");
  const relayed = run.asked.map((e) => e.type === "rank.call" && [e.rank, e.request]);
  assert.deepEqual(
    relayed,
    [0, 1].map((rank) => [rank, {
      method: "eep_handle_engine_core_notification",
      notification: "NEW_CORE_ENGINES_INIT_READY",
    }]),
  );
  run.settle();
  run.take();
  say(2, "NEW_CORE_ENGINES_WEIGHTS_INIT_READY");
  say(3, "NEW_CORE_ENGINES_WEIGHTS_INIT_READY");
  run.settle();
  assert.deepEqual(
    run.take(),
    [0, 1].map((r) => `rank.call ${r} eep_handle_engine_core_notification`),
  );
  run.tell({ type: "joined", rank: 2 });
  run.tell({ type: "joined", rank: 3 });
  run.tell(finished);
  run.settle();
  assert.deepEqual(run.answers, ["op1 accepted", "op1 completed"]);
  assert.equal(run.context.placement.ranks.length, 4);
});

test("relay, down: all ranks are told at once, those that go with the shutdown rank", () => {
  const run = new Run({ placement: placed(3, 1), flow: "relay" });
  run.tell({ type: "scale", operation: "op1", target: 2 });
  run.settle("reinitialize");
  const leaves = run.asked.slice(3).map((e) =>
    e.type === "rank.call" && e.request.method === "reinitialize_distributed" && e.request.leave
  );
  assert.deepEqual(leaves, [false, false, true]);
  run.settle();
  run.tell(finished);
  run.tell(left(2));
  run.settle();
  assert.equal(run.answers.at(-1), "op1 completed");
  assert.equal(run.context.placement.ranks.length, 2);
});

test("defect 8: with new ranks on the master only, no rank that exists is started or waited for again", () => {
  const run = new Run({ placement: placed(3, 1) }); // one local, two remote
  run.free = [GPU("A", 7), GPU("B", 0)];
  run.tell({ type: "scale", operation: "op1", target: 5 });
  run.settle();
  assert.deepEqual(run.take().filter((t) => t.startsWith("ray.start")), [
    "ray.start 3",
    "ray.start 4",
  ]);
});

test("defect 8: a plan that fits nowhere starts nothing, and says what is missing", () => {
  const run = new Run({ placement: placed(3, 1) });
  run.free = [GPU("A", 0), GPU("B", 0)];
  run.tell({ type: "scale", operation: "op1", target: 5 });
  run.settle();
  assert.deepEqual(run.take(), ["ray.snapshot"]);
  assert.match(
    run.answers.at(-1)!,
    /^op1 failed: 0 of the 2 additional ranks of 1 GPU find a place\./,
  );
  assert.equal(run.state, '"serving"');
});

test("defect 9: a rank that cannot be started leaves size, placement and names as they were; the next attempt works", () => {
  const run = new Run({ placement: placed(2, 1) });
  run.tell({ type: "scale", operation: "op1", target: 4 });
  run.settle("launch");
  run.outcome("launch/3", { type: "rankLaunchFailed", rank: 3, text: "no room on B" });
  run.settle();
  assert.deepEqual(
    run.take().slice(-2),
    ["ray.stop 2", "ray.stop 3"],
    "whatever was asked is taken back",
  );
  assert.equal(run.answers.at(-1), "op1 failed: no room on B");
  assert.deepEqual([run.context.placement.ranks.length, run.context.launches.length], [2, 2]);
  assert.equal(run.held.size, 0, "its store is gone");
  run.tell({ type: "scale", operation: "op2", target: 4 });
  assert.match(run.answers.at(-1)!, /^op2 refused: engines 0, 1 hold an abandoned reconfiguration/);
  run.tell({ type: "engineRestarted", rank: 0 });
  run.tell({ type: "engineRestarted", rank: 1 });
  run.tell({ type: "scale", operation: "op3", target: 4 });
  run.settle();
  assert.deepEqual(run.take().filter((t) => t.startsWith("ray.start")), [
    "ray.start 2",
    "ray.start 3",
  ]);
  run.tell({ type: "enginesReady" });
  run.tell({ type: "joined", rank: 2 });
  run.tell({ type: "joined", rank: 3 });
  run.settle();
  run.tell(finished);
  run.settle();
  assert.deepEqual(run.context.launches, ["first-r0", "first-r1", "op3-r2", "op3-r3"]);
});

test("defect 10: after up, down and up, each rank is stopped by its own launch", () => {
  const run = new Run({ placement: placed(1, 1) });
  const scale = (operation: string, target: number) => {
    const from = run.context.placement.ranks.length;
    run.tell({ type: "scale", operation, target });
    run.settle();
    run.tell({ type: "enginesReady" });
    for (let rank = from; rank < target; rank++) run.tell({ type: "joined", rank });
    run.settle();
    run.tell(finished);
    run.settle("stop");
    for (let rank = target; rank < from; rank++) run.tell(left(rank));
    const stopped = run.asked.flatMap((e) => e.type === "ray.stop" ? [e.launch] : []);
    run.settle();
    run.asked = [];
    assert.equal(run.answers.at(-1), `${operation} completed`);
    return stopped;
  };
  scale("a", 3);
  assert.deepEqual(scale("b", 2), ["a-r2"]);
  scale("c", 4);
  assert.deepEqual(scale("d", 1), ["a-r1", "c-r2", "c-r3"]);
});

test("one operation at a time: the same target joins it, another one is refused with the running one", () => {
  const run = new Run({ placement: placed(2, 1) });
  run.tell({ type: "scale", operation: "op0", target: 2 });
  assert.deepEqual(run.answers, ["op0 completed"], "the size it has already");
  run.tell({ type: "scale", operation: "op1", target: 3 });
  run.tell({ type: "scale", operation: "op2", target: 3 });
  run.tell({ type: "scale", operation: "op3", target: 4 });
  assert.deepEqual(run.answers.slice(2), [
    "op2 joined",
    "op3 refused: operation op1 to 3 ranks is running",
  ]);
});

test("targets that cannot be: too many ranks, none, or too few for the experts", () => {
  const run = new Run({
    placement: placed(4, 2),
    maxSize: 6,
    experts: { logical: 64, redundant: 32 },
  });
  for (const target of [7, 0, 2]) run.tell({ type: "scale", operation: "op", target });
  assert.deepEqual(run.answers, [
    "op refused: cannot scale to 7: --elastic-ep-max-dp-size is 6",
    "op refused: the new size must be a positive integer",
    "op refused: cannot scale to 2: the experts need at least 3",
  ]);
});

test("a failure while ranks are paused resumes them; the deadline is one of the whole", () => {
  const run = new Run({ placement: placed(2, 1) });
  run.tell({ type: "scale", operation: "op1", target: 3 });
  run.settle("pause");
  run.tell({ type: "enginesReady" });
  run.outcome("pause/0", { type: "engineReplied", rank: 0, method: "pause_scheduler" });
  run.take();
  run.fire("deadline");
  run.settle();
  assert.deepEqual(run.take(), [
    "ray.stop 2",
    ...[0, 1].map((r) => `rank.call ${r} resume_scheduler`),
  ]);
  assert.equal(run.answers.at(-1), "op1 failed: the operation did not end within its deadline");
  assert.deepEqual(run.context.enginesToRestart, [0, 1]);
});

test("after the commit was said there is no abort; a failure then is told as an unknown topology", () => {
  const run = new Run({ placement: placed(2, 1) });
  run.tell({ type: "scale", operation: "op1", target: 3 });
  run.settle("commit");
  run.tell({ type: "enginesReady" });
  run.settle("commit");
  run.tell({ type: "abort", text: "operator" });
  assert.equal(run.state, '{"operating":"committing"}');
  run.outcome("commit/1", {
    type: "engineFailed",
    rank: 1,
    method: "commit_prepared_elastic_ep",
    text: "No prepared Elastic EP reconfiguration is ready",
  });
  assert.equal(run.state, '"broken"');
  assert.deepEqual(run.context.enginesToRestart, [0, 1, 2]);
  run.tell({ type: "scale", operation: "op2", target: 2 });
  assert.equal(
    run.answers.at(-1),
    "op2 refused: the topology is not known: start the ranks anew",
  );
  run.tell({ type: "regrouped", placement: placed(3, 1), launches: ["x", "y", "z"] });
  assert.deepEqual([run.state, run.context.enginesToRestart], ['"serving"', []]);
});

test("a late notification of an operation that is over changes nothing", () => {
  const run = new Run({ placement: placed(2, 1) });
  run.tell({ type: "scale", operation: "op1", target: 3 });
  run.settle();
  run.tell({ type: "abort", text: "operator" });
  run.settle();
  run.tell(finished);
  run.tell(left(1));
  assert.equal(run.state, '"serving"');
  run.tell({ type: "engineRestarted", rank: 0 });
  run.tell({ type: "engineRestarted", rank: 1 });
  run.tell({ type: "scale", operation: "op2", target: 3 });
  run.settle();
  run.tell(finished);
  run.tell({ type: "enginesReady" });
  run.tell({ type: "joined", rank: 2 });
  run.settle();
  assert.equal(run.state, '{"operating":"committing"}', "op2's own word is awaited");
});
