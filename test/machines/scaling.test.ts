/** What a rank's scaling machine, its topology and the scale-up handshake do, input by input. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Kernel,
  type KernelEvent,
  type StepResult,
  SYSTEM,
  type System,
} from "../../src/kernel/mod.ts";
import type { ScalingEffect, ScalingResource } from "../../src/machines/effects/scaling.ts";
import {
  checkRetiring,
  checkTarget,
  redundancyAfter,
} from "../../src/machines/scaling/validation.ts";
import { DEFAULT_SCALING_LIMITS } from "../../src/machines/scaling.ts";
import { scalingSystem } from "../../src/machines/scaling-system.ts";
import type { TopologyInput } from "../../src/machines/topology.ts";

const kernel = new Kernel<ScalingEffect, ScalingResource>(scalingSystem, {
  verifyEvery: 1,
});

const topologyOf = (more: Partial<TopologyInput>): TopologyInput => ({
  experts: 0,
  redundant: 0,
  maxSize: 8,
  size: 3,
  leader: false,
  masterIp: "10.0.0.1",
  control: { host: "10.0.0.1", port: 1000 },
  limits: DEFAULT_SCALING_LIMITS,
  handshake: null,
  ...more,
});

class Run {
  system: System = kernel.empty;
  last!: StepResult<ScalingEffect, ScalingResource>;

  constructor(rank: number, more: Partial<TopologyInput> = {}) {
    this.give(SYSTEM, {
      type: "configured",
      ranks: [{ rank, topology: topologyOf(more) }],
      operations: null,
    });
  }

  give(to: string, event: KernelEvent): this {
    const { seq, at } = this.system;
    this.last = kernel.step(this.system, { seq: seq + 1, at: at + 1, to, event });
    this.system = this.last.system;
    return this;
  }

  /** The outcome of the open call of an instance. */
  answer(to: string, event: KernelEvent): this {
    const call = this.system.instances.get(to)?.calls.at(-1)?.id;
    return this.give(to, { ...event, call });
  }

  state(id: string): string {
    return JSON.stringify(this.system.instances.get(id)?.state.snapshot.value) ?? "gone";
  }

  /** What was asked for in the last step. */
  get asked(): ScalingEffect[] {
    return this.last.effects.flatMap((e) =>
      e.kind === "call" || e.kind === "message" ? [e.effect] : []
    );
  }
}

const prepare = (more: object = {}): KernelEvent => ({
  type: "prepare",
  operation: "op",
  target: 2,
  remains: true,
  report: "",
  shared: true,
  ...more,
});

const view = (more: object = {}) => ({
  epoch: "e".repeat(32),
  bootstrap: { size: 2, masterIp: "10.0.0.1", masterPort: 1, masterPorts: [], storePort: 1001 },
  operation: "op",
  prepared: true,
  redundancy: 0,
  error: null,
  completed: false,
  ...more,
});

/** A follower that has voted. */
function voted(): Run {
  const part = "rank/1/scaling/op";
  return new Run(1).give("rank/1/topology", prepare())
    .give(part, { type: "epochSeen", view: view() })
    .answer(part, { type: "written", store: "reconfig" })
    .answer(part, {
      type: "utilityReplied",
      method: "reinitialize_distributed",
      value: "eep_ready/1",
    })
    .give(part, { type: "enginesReady" })
    .give("rank/1/topology", { type: "commit", operation: "op" });
}

test("rank 0 writes control before its own store, with a fence between, and prepared last", () => {
  const run = new Run(0, { leader: true }).give("rank/0/topology", prepare());
  const part = "rank/0/scaling/op";
  const written: string[] = [];
  const note = () => {
    for (const e of run.asked) {
      if (e.type === "store.write") {
        written.push(`${e.store}: ${e.sets.map((s) => s.key).join(" ")}`);
      }
    }
  };
  run.answer(part, { type: "epochRead", view: null });
  run.answer(part, { type: "drawn", epoch: "a".repeat(32), masterPort: 5, masterPorts: [1, 2] });
  run.answer(part, { type: "storeServing", address: { host: "10.0.0.1", port: 1001 } });
  note();
  for (let i = 0; i < 4; i++) {
    run.answer(part, { type: "written", store: "control" });
    note();
  }
  assert.deepEqual(written, [
    "control: bootstrap phase operation_id current_epoch",
    "reconfig: bootstrap phase operation_id current_epoch",
    "control: num_redundant_experts",
    "control: prepared operation_epoch",
    "reconfig: current_epoch phase decides",
  ]);
});

test("a stale error on the first retry is not taken for the new operation's", () => {
  const part = "rank/1/scaling/op";
  const run = new Run(1).give("rank/1/topology", prepare())
    .give(part, {
      type: "epochSeen",
      view: view({ epoch: "b".repeat(32), operation: "earlier", error: "old trouble" }),
    });
  assert.equal(run.state(part), '{"preparing":"awaitingEpoch"}');
  run.give(part, { type: "epochSeen", view: view() });
  assert.equal(run.state(part), '{"preparing":"joining"}');
});

test("an epoch that rank 0 left without an end is ended before a new one begins", () => {
  const part = "rank/0/scaling/op";
  const run = new Run(0, { leader: true }).give("rank/0/topology", prepare())
    .answer(part, {
      type: "epochRead",
      view: view({ epoch: "b".repeat(32), operation: "earlier" }),
    });
  assert.deepEqual(run.asked, [{
    type: "store.decide",
    at: { host: "10.0.0.1", port: 1000 },
    epoch: "b".repeat(32),
    propose: "abort",
  }]);
  run.answer(part, { type: "decided", epoch: "b".repeat(32), outcome: "abort" });
  assert.equal(run.asked[0]?.type, "store.fail");
  run.answer(part, { type: "failureWritten", store: "control" });
  assert.equal(run.asked[0]?.type, "scaling.draw");
});

test("before its vote a rank gives up alone; after it, it proposes and goes by the decision", () => {
  const part = "rank/1/scaling/op";
  const before = new Run(1).give("rank/1/topology", prepare())
    .give(part, { type: "epochSeen", view: view() })
    .give("rank/1/topology", { type: "abort", operation: "op", text: "enough" });
  assert.equal(before.asked[0]?.type, "store.fail");

  const run = voted().give(part, { type: "everyoneDecides" })
    .give("rank/1/topology", { type: "abort", operation: "op", text: "enough" });
  assert.deepEqual(run.asked.map((e) => [e.type, "propose" in e && e.propose]), [
    ["store.decide", "abort"],
  ]);
  run.answer(part, { type: "decided", epoch: "e".repeat(32), outcome: "commit" });
  assert.match(run.state(part), /committed/);
});

test("where some old rank may not go by the key, a rank that voted does not abort by itself", () => {
  const part = "rank/1/scaling/op";
  const run = voted();
  assert.equal(run.state(part), '{"voted":"casting"}');
  run.answer(part, { type: "written", store: "reconfig" })
    .give("rank/1/topology", { type: "abort", operation: "op", text: "enough" });
  assert.equal(run.state(part), '{"voted":"awaitingVotes"}');
  assert.deepEqual(run.asked, []);
  // An error that is published is another matter: nobody can have committed.
  run.give(part, { type: "errorSeen", text: "rank 2 gave up" });
  assert.equal(run.state(part), '{"voted":"asking"}');
});

test("the decision is commit, and an error was read while it was awaited: without this rank nothing is completed, so it ends as failed and not in doubt", () => {
  const part = "rank/1/scaling/op";
  const seen = { type: "errorSeen", text: "rank 2 cannot pause" };
  const run = voted().answer(part, { type: "written", store: "reconfig" })
    .give(part, { type: "everyoneVoted" });
  assert.equal(run.state(part), '{"voted":"deciding"}');
  run.give(part, seen).answer(part, { type: "decided", epoch: "e".repeat(32), outcome: "commit" });
  assert.equal(run.state(part), '{"givingUp":"onControl"}');
  assert.deepEqual(
    run.asked.map((e) => [e.type, "text" in e && e.text]),
    [["store.fail", "rank 2 cannot pause"]],
  );
});

test("a notification before the reply to the commit is of an earlier operation and changes nothing", () => {
  const part = "rank/1/scaling/op";
  const run = voted().answer(part, { type: "written", store: "reconfig" })
    .give(part, { type: "decisionSeen", outcome: "commit" })
    .answer(part, { type: "written", store: "control" })
    .answer(part, { type: "written", store: "reconfig" })
    .answer(part, { type: "utilityReplied", method: "pause_scheduler", value: null });
  const before = run.state(part);
  run.give("rank/1/topology", { type: "notified", notification: "reconfigureFinished" });
  assert.equal(run.state(part), before);
  run.answer(part, { type: "utilityReplied", method: "commit_prepared_elastic_ep", value: null })
    .give("rank/1/topology", { type: "notified", notification: "reconfigureFinished" });
  assert.match(run.state(part), /recording/);
});

test("a commit request of which nobody knows is asked again; the engine's refusal of the second says nothing", () => {
  const part = "rank/1/scaling/op";
  const run = voted().answer(part, { type: "written", store: "reconfig" })
    .give(part, { type: "decisionSeen", outcome: "commit" })
    .answer(part, { type: "written", store: "control" })
    .answer(part, { type: "written", store: "reconfig" })
    .answer(part, { type: "utilityReplied", method: "pause_scheduler", value: null })
    .answer(part, { type: "utilityUnknown", method: "commit_prepared_elastic_ep" });
  assert.deepEqual(run.asked.map((e) => e.type), ["store.check"]);
  run.answer(part, { type: "keyAbsent" });
  run.answer(part, {
    type: "utilityFailed",
    method: "commit_prepared_elastic_ep",
    failure: "No prepared",
  });
  assert.match(run.state(part), /underWay/);
});

test("a store that is gone after the vote strands the rank: in doubt for good, and no further operation", () => {
  const part = "rank/1/scaling/op";
  const run = voted().answer(part, { type: "written", store: "reconfig" })
    .give(part, { type: "storeLost", store: "control", text: "connection refused" });
  assert.equal(run.state(part), "gone");
  assert.equal(run.state("rank/1/topology"), '"unknown"');
  run.give("rank/1/topology", { type: "settled", size: 3 });
  assert.equal(run.state("rank/1/topology"), '"steady"');
});

test("one prepare at a time: the same operation again is running, another is refused", () => {
  const run = new Run(1).give("rank/1/topology", prepare());
  const parts = () => [...run.system.instances].filter((i) => i.chart === "scaling").length;
  run.give("rank/1/topology", prepare());
  run.give("rank/1/topology", prepare({ operation: "other", target: 4 }));
  assert.equal(parts(), 1);
});

test("redundant experts follow the original's arithmetic, and a target that loses experts is refused", () => {
  assert.equal(redundancyAfter(8, 0, 4, 8), 8);
  assert.equal(redundancyAfter(8, 8, 4, 2), 0);
  assert.equal(redundancyAfter(7, 1, 3, 2), -2);
  const expertise = { experts: 8, redundant: 0, maxSize: 6 };
  assert.equal(checkTarget(expertise, 4, 2).ok, false);
  assert.deepEqual(checkTarget(expertise, 4, 6), { ok: true, redundancy: 4 });
  assert.equal(checkTarget(expertise, 4, 7).ok, false);
  assert.equal(checkTarget(expertise, 4, 4).ok, false);
  assert.equal(checkRetiring(4, 2, [2, 3]).ok, true);
  assert.equal(checkRetiring(4, 2, [0, 1]).ok, false);
});

/** Rank 0 that is to greet new ranks, and has asked for its socket. */
const greeter = (): Run => {
  const run = new Run(0, {
    leader: true,
    handshake: {
      bind: "tcp://10.0.0.1:0",
      form: "wrapped",
      inputs: ["in"],
      outputs: ["out"],
      coordinatorInput: "ci",
      coordinatorOutput: "co",
      frontendStatsPublish: null,
    },
  }).give("rank/0/topology", prepare({ target: 5 }));
  const part = "rank/0/scaling/op";
  run.answer(part, { type: "epochRead", view: null })
    .answer(part, { type: "drawn", epoch: "a".repeat(32), masterPort: 5, masterPorts: [1, 2] })
    .answer(part, { type: "storeServing", address: { host: "10.0.0.1", port: 1001 } });
  for (let i = 0; i < 3; i++) run.answer(part, { type: "written", store: "control" });
  return run;
};
const greeting = "rank/0/greeting";

test("a coordinator that comes back greets new ranks at the address that they were given, or says that it cannot", () => {
  const run = greeter();
  const bound = () =>
    run.system.instances.get(greeting)!.held.map(({ resource }) =>
      (resource as { bind?: string }).bind
    );
  assert.deepEqual(bound(), ["tcp://10.0.0.1:0"]);
  run.give(greeting, { type: "listening", endpoint: "tcp://10.0.0.1:29550" });
  assert.deepEqual(bound(), ["tcp://10.0.0.1:29550"]);
  run.give(greeting, { type: "bindFailed", text: "the port is taken" });
  assert.equal(run.state(greeting), '"failed"');
});

test("the scale-up handshake survives strangers, answers again, and takes READY of whom it greeted only", () => {
  const run = greeter();
  assert.equal(run.state(greeting), '"opening"');
  run.give(greeting, { type: "listening", endpoint: "tcp://10.0.0.1:29550" });
  const says = (rank: number, type: string) => {
    run.give(greeting, { type, rank, local: true, headless: false, hash: null });
    return run.asked.filter((e) => e.type === "scaleUp.init").length;
  };
  assert.equal(says(7, "hello"), 0);
  assert.equal(says(1, "hello"), 0);
  assert.equal(says(4, "ready"), 0);
  assert.equal(run.last.notes[0]?.kind, "refused");
  assert.equal(says(3, "hello"), 1);
  assert.equal(says(3, "hello"), 1);
  run.give(greeting, { type: "strangers", kind: "frames", count: 3, sample: "?" });
  assert.equal(says(4, "hello"), 1);
  says(3, "ready");
  says(4, "ready");
  assert.equal(run.state(greeting), '"complete"');
  // A new rank that crashed after READY and comes again is answered.
  assert.equal(says(4, "hello"), 1);
  assert.equal(run.state(greeting), '"greeting"');
});

test("an engine that dies between operations: its rank refuses the next one and says why, until the engine is back", () => {
  const refusalIn = (run: Run) =>
    run.last.transitions.find((t) => t.event.type === "rankEnded")?.event["cause"];
  const run = new Run(1).give("rank/1/topology", {
    type: "engineLost",
    text: "the engine ended with SIGKILL",
  });
  assert.equal(run.state("rank/1/topology"), '"steady"');
  run.give("rank/1/topology", prepare({ report: "rank/1/topology" }));
  assert.deepEqual(refusalIn(run), {
    code: "refused",
    text: "this rank has no engine to scale with: the engine ended with SIGKILL",
  });
  assert.equal(run.state("rank/1/scaling/op"), "gone");
  run.give("rank/1/topology", { type: "engineRestarted" });
  run.give("rank/1/topology", prepare());
  assert.equal(run.state("rank/1/topology"), '"scaling"');
});
