/**
 * Inputs that real deployments met, each with its right answer, where no other test pins it: at the level of machines,
 * plans and views. What the wire does not carry is said in the name, and what can be tested of it is.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Kernel, type KernelEvent, start, SYSTEM } from "../../src/kernel/mod.ts";
import { type AnswerOperation, scalingEffects } from "../../src/machines/effects/scaling.ts";
import { wavesEffects } from "../../src/machines/effects/waves.ts";
import { configureRun, DEFAULT_LIMITS, waves, type WavesInput } from "../../src/machines/mod.ts";
import { operation } from "../../src/machines/operation.ts";
import { operations, type OperationsInput } from "../../src/machines/operations.ts";
import { restingEngine, stepWaves, type WavesEngineInput } from "../../src/peers/engine-waves.ts";
import { frontEnd, send } from "../../src/peers/front-end.ts";
import { parseClusterConfig, planOrThrow, planTopology } from "../../src/planning/mod.ts";
import { ScalingGroup } from "../../src/testing/scaling-group.ts";
import { type FailureRecord, statusOf } from "../../src/view/mod.ts";
import { kernel as clusterKernel, type Overrides, Run } from "../machines/fixture.ts";

const REMOTE = { local: false, headless: true };
const launch = (id: string, ...ranks: number[]) => ({
  id,
  ranks,
  argv: ["engine"],
  env: {},
  cwd: null,
  inherit: true,
});

/** Answers the newest open call of an instance. */
function answer(run: Run, id: string, event: KernelEvent): void {
  const call = run.system.instances.get(id)!.calls.at(-1)!.id;
  run.say(id, { ...event, call });
}

/** Two ranks with a process each; the keeper is up, and the spawns of these were answered. */
function launched(spawned: readonly number[], overrides: Overrides = {}): Run {
  const run = new Run({ launches: [launch("e0", 0), launch("e1", 1)], ...overrides });
  answer(run, "launcher", { type: "keeperPlaced", place: { mark: "m", directory: "/k" } });
  run.say("launcher", { type: "keeperUp", identity: { pid: 1, startTicks: 1, boot: "b" } });
  for (const n of spawned) answer(run, `process/e${n}`, { type: "spawned", pid: 100 + n });
  return run;
}

const failureOf = (run: Run): FailureRecord => {
  const { failure } = statusOf(run.steps);
  assert.ok(failure !== null, "nothing failed");
  return failure;
};
const announced = (run: Run): string[] =>
  run.steps.flatMap((s) => s.effects).flatMap((e) =>
    e.kind === "message" && e.effect.type === "announce"
      ? [(e.effect as unknown as { what: string }).what]
      : []
  );

test("READY(1) at 640 s with limit 600 s while progress messages keep arriving: late all the same, and the failure names the progress", () => {
  const limits = { ...DEFAULT_LIMITS, readyMs: 600_000, progressMs: 60_000 };
  const run = launched([0, 1], { limits });
  run.hello(0);
  run.hello(1);
  run.ready(0);
  run.say("process/e1", { type: "progressed" });
  run.fire("rank/1/engine", "readyDeadline");
  assert.match(
    failureOf(run).sentence,
    /^Rank 1 said HELLO and then no READY within 10 min, although its process still made progress \(it wrote something 100 ms before\); not ready: rank 1\.$/,
  );
  run.ready(1);
  assert.equal(statusOf(run.steps).phase, "failed", "the READY at 640 s is too late");
});

test("without a word of its process the same failure names no progress", () => {
  const run = launched([0, 1]);
  run.hello(1);
  run.fire("rank/1/engine", "readyDeadline");
  assert.match(failureOf(run).sentence, /no READY within 20 min; not ready: ranks 0 and 1\.$/);
});

test("Coordinator process exits during engine start: it is the front-end's own, so what can exit alone is the keeper of the engines; it is named, no engine is", () => {
  const run = launched([0, 1]);
  run.hello(0);
  run.say("launcher", { type: "keeperLost", text: "killed by SIGKILL" });
  const failure = failureOf(run);
  assert.deepEqual([failure.code, failure.rank, failure.phase], ["keeper-lost", null, null]);
  assert.match(failure.sentence, /^The keeper of the local engines was lost .*killed by SIGKILL/);
});

test("Coordinator process exits during engine start: one that cannot even bind is named by its socket", () => {
  const sockets = {
    handshake: "tcp://127.0.0.1:0",
    clients: [],
    coordinator: { frontPublish: "ipc:///f", backPublish: "ipc:///b", backOutput: "ipc:///o" },
  };
  const run = new Run({ sockets, waves: "evidence" });
  run.say("waves", { type: "bindFailed", socket: "coordinator", text: "address in use" });
  const failure = failureOf(run);
  assert.deepEqual([failure.code, failure.rank], ["bind-failed", null]);
  assert.equal(failure.sentence, "The coordinator socket could not be bound: address in use.");
});

test("Front-end worker times out while engines load (no message says so): the deadline of the whole is one result, and everything is stopped", () => {
  const run = launched([0, 1]);
  run.hello(0);
  run.hello(1);
  run.ready(0);
  run.fire("startup", "startupDeadline");
  assert.equal(failureOf(run).code, "start-up-late");
  assert.deepEqual(failureOf(run).missing, [{ rank: 1, state: "connected" }]);
  assert.deepEqual(run.asked.filter((a) => a.endsWith("process.stop")), [
    "process/e0 process.stop",
    "process/e1 process.stop",
  ]);
  // What comes later changes nothing: neither the last READY nor how the others end.
  run.ready(1);
  for (const n of [0, 1]) run.say(`process/e${n}`, { type: "exited", code: 1, signal: null });
  assert.deepEqual(announced(run), ["failed", "stopped"]);
  assert.equal(failureOf(run).code, "start-up-late");
});

test("Abort while engines are pre-READY: every process is asked to end, also one whose start is not answered yet, and stopped means that all have", () => {
  const run = launched([0]);
  run.hello(0);
  run.say("startup", { type: "stop" });
  const stops = () => run.asked.filter((a) => a.endsWith("process.stop"));
  assert.deepEqual(stops(), ["process/e0 process.stop", "process/e1 process.stop"]);
  run.say("process/e0", { type: "exited", code: null, signal: "SIGTERM" });
  assert.deepEqual(announced(run), []);
  // It came up after the abort, and is asked again.
  const spawn = run.system.instances.get("process/e1")!.calls.find((c) =>
    c.effect.type === "process.spawn"
  )!;
  run.say("process/e1", { type: "spawned", pid: 101, call: spawn.id });
  assert.equal(stops().length, 3);
  run.say("process/e1", { type: "exited", code: null, signal: "SIGKILL" });
  assert.deepEqual(announced(run), ["stopped"]);
  assert.equal(statusOf(run.steps).failure, null);
});

test("Remote HELLO headless=true in external/hybrid mode, headless=false in internal mode: refused with the derived mode and the flag to drop or to add", () => {
  const rows = [
    ["external", false, "is with --headless, and load balancing is external here: drop"],
    ["hybrid", false, "is with --headless, and load balancing is hybrid here: drop"],
    ["internal", true, "is without --headless, and load balancing is internal here: add"],
  ] as const;
  for (const [mode, headless, said] of rows) {
    const run = new Run({
      mode,
      ranks: [{ rank: 0, local: true, headless: false }, { rank: 1, local: false, headless }],
    });
    run.hello(1, false, !headless);
    assert.ok(statusOf(run.steps).ranks[1]?.refused?.last.startsWith(`its HELLO ${said} --head`));
    run.fire("rank/1/engine", "connectDeadline");
    const { sentence } = failureOf(run);
    assert.ok(
      sentence.startsWith("Rank 1 never said a HELLO that could be accepted within 10 min (its"),
    );
    assert.ok(sentence.includes(said), sentence);
  }
});

test("READY hash differs; head local=0, peer local=4: the front-end makes no hash of its own placement, so that equal hashes form up", () => {
  const ranks = [0, 1, 2, 3].map((rank) => ({ rank, ...REMOTE }));
  const run = new Run({ size: 4, ranks, comparesHashes: true });
  for (const rank of [0, 1, 2, 3]) {
    run.hello(rank, false, true);
    run.ready(rank, { ...REMOTE, hash: "aaaa" });
  }
  assert.equal(statusOf(run.steps).phase, "formed");
});

test("Two launches on one host choose ports at once x1000: nothing is chosen before it is bound, and paths are of the launch's own directory", () => {
  const seen = new Set<string>();
  for (let n = 0; n < 1000; n++) {
    const config = planOrThrow(parseClusterConfig({
      dataParallelSize: 4,
      dataParallelSizeLocal: 2,
      dataParallelAddress: "10.0.0.1",
      dataParallelRpcPort: 0,
      rpcBasePath: `/run/muster-${n}`,
      moe: true,
    }));
    const { sockets, drawsPorts } = configureRun(planOrThrow(planTopology(config)));
    assert.equal(drawsPorts, true);
    const { handshake, clients, coordinator } = sockets;
    const addresses = [
      handshake,
      ...clients.flatMap(({ input, output }) => [input, output]),
      ...Object.values(coordinator!),
    ];
    assert.equal(addresses.length, 6);
    for (const address of addresses) {
      if (address.startsWith("tcp:")) assert.match(address, /:0$/);
      else assert.ok(!seen.has(address), address);
      seen.add(address);
    }
  }
});

test("FIRST_REQ(wave 0) with all idle at wave 0: wave 0 starts on every rank, sender too, whichever message is faster", () => {
  const release = { saysWhenItRuns: true };
  const coordinator = new Kernel({
    charts: { waves: { machine: waves } },
    effects: wavesEffects,
    boot: (c) => [start("waves", "waves", (c as unknown as { input: never }).input)],
  });
  const input: WavesInput = {
    sockets: { frontPublish: "f", backPublish: "b", backOutput: "o" },
    engines: 4,
    coordinates: true,
    rule: "evidence",
    remindMs: 5000,
  };
  let system = coordinator.empty;
  const say = (to: string, event: KernelEvent) => {
    const step = coordinator.step(system, { seq: system.seq + 1, at: system.at + 1, to, event });
    system = step.system;
    return step.effects.flatMap((e) => e.kind === "message" ? [e.effect] : []);
  };
  say(SYSTEM, { type: "configured", input } as never);
  say("waves", { type: "bound", socket: "coordinator", endpoints: {} });
  for (let i = 0; i < 4; i++) say("waves", { type: "subscribed" });

  const { wake, wave } = send(frontEnd(4), 1);
  assert.deepEqual(wake, { exclude: 1, wave: 0 });
  const called = say("waves", { type: "wake", ...wake! });
  assert.deepEqual(called, [{ type: "waves.start", wave: 0, exclude: 1 }]);
  const begin: WavesEngineInput = { type: "startWave", wave: 0, exclude: 1 };
  const add: WavesEngineInput = { type: "add", request: "r", wave };
  for (const order of [[begin, add], [add, begin]]) {
    const engines = [0, 1, 2, 3].map((rank) => {
      const heard = order.filter((message) => message.type !== "add" || rank === 1);
      return heard.reduce((e, message) => stepWaves(e, message, release)[0], restingEngine(rank));
    });
    assert.deepEqual(engines.map((e) => [e.running, e.wave]), Array(4).fill([true, 0]));
  }
});

test("Scale 4->2 then 2->4: works, and no old identity answers", async () => {
  const group = await ScalingGroup.start({ size: 4 });
  try {
    const { scaler, engines: { engines } } = group;
    await (await scaler.scale(2)).completed();
    assert.deepEqual([2, 3].map((rank) => engines.get(rank)!.gone), [true, true]);
    const known = () =>
      [...group.host.system.instances].map(({ id }) => id).filter((id) => /^rank.[23]/.test(id));
    assert.deepEqual(known(), [], "nothing of the ranks that left can answer");
    const record = await (await scaler.scale(4)).completed();
    assert.equal(record.effectiveSize, 4);
    const now = [...engines.values()];
    assert.deepEqual(now.map((e) => [e.rank, e.size, e.gone, e.joining]), [
      [0, 4, false, false],
      [1, 4, false, false],
      [2, 4, false, false],
      [3, 4, false, false],
    ]);
    assert.deepEqual(known(), ["rank/2/topology", "rank/3/topology"]);
  } finally {
    await group.close();
  }
});

/** The desk where operations are asked for, and their machine, alone: the ranks are played by the test. */
const scaling = new Kernel({
  charts: { operation: { machine: operation }, operations: { machine: operations } },
  effects: scalingEffects,
  boot: (c) => [start("operations", "operations", (c as unknown as { input: never }).input)],
});

class Scaling {
  system: typeof scaling.empty = scaling.empty;
  readonly answers: string[] = [];
  /** What was told to whom: `rank/0/topology abort`. Nobody is there, which the kernel notes. */
  readonly told: string[] = [];

  constructor(input: OperationsInput) {
    this.give(SYSTEM, { type: "configured", input } as never);
  }
  ask(event: { operation: string; target: number; retire?: number[] }): void {
    this.give("operations", { type: "scaleAsked", deadlineMs: 1000, ...event });
  }
  give(to: string, event: KernelEvent): void {
    const { seq, at } = this.system;
    const step = scaling.step(this.system, { seq: seq + 1, at: at + 1, to, event });
    this.system = step.system;
    for (const e of step.effects) {
      if (e.kind === "message" && e.effect.type === "operation.answer") {
        const { outcome, text } = e.effect as unknown as AnswerOperation;
        this.answers.push(`${outcome}: ${text}`);
      }
    }
    for (const { instance, what } of step.notes) this.told.push(`${instance} ${what}`);
  }
  fire(id: string, name: string): void {
    const { timer, generation } = this.system.instances.get(id)!.timers.find((t) =>
      t.timer.includes(name)
    )!;
    this.give(id, { type: "timer.fired", timer, generation });
  }
}

const desk = (size: number): OperationsInput => ({
  experts: 0,
  redundant: 0,
  maxSize: 16,
  size,
  settleMs: 1000,
  newcomer: null,
  joiner: null,
  watchesEngines: false,
});

test("Prepare ok on 0,1; rank 2 silent: deadline, abort to 0 and 1, failed, and the reason is rank 2", () => {
  const run = new Scaling(desk(3));
  run.ask({ operation: "down", target: 2 });
  const part = "operation/down";
  for (const rank of [0, 1]) {
    run.give(part, { type: "rankPrepared", from: `rank/${rank}/topology` });
  }
  run.told.length = 0;
  run.fire(part, "deadline");
  assert.deepEqual(run.told, [0, 1, 2].map((rank) => `rank/${rank}/topology abort`));
  assert.equal(
    JSON.stringify(run.system.instances.get(part)!.state.snapshot.value),
    '"aborting"',
  );
  for (const rank of [0, 1]) {
    run.give(part, {
      type: "rankEnded",
      from: `rank/${rank}/topology`,
      outcome: "failed",
      cause: { code: "aborted", text: "aborted" },
      engineToRestart: true,
      topology: null,
    });
  }
  run.fire(part, "settle");
  assert.deepEqual(run.answers, [
    "accepted: null",
    "failed: the operation did not end within its deadline: rank 2 had not prepared",
  ]);
  const { context } = run.system.instances.get("operations")!.state.snapshot as unknown as {
    context: { ended: { firstError: unknown; unanswered: number[]; effectiveSize: number }[] };
  };
  const [ended] = context.ended;
  assert.deepEqual(ended!.firstError, {
    rank: 2,
    code: "operation-late",
    text: "the operation did not end within its deadline: rank 2 had not prepared",
  });
  assert.deepEqual([ended!.unanswered, ended!.effectiveSize], [[2], 3]);
});

test("8->7 with retire=[3]; rank 3 already dead: refused at once with the reason, and nobody waits for rank 3", () => {
  const run = new Scaling(desk(8));
  run.ask({ operation: "down", target: 7, retire: [3] });
  assert.deepEqual(run.answers, [
    "refused: rank 3 cannot be retired: engines keep their ranks, so a group of 7 is ranks 0 to 6, and what leaves is rank 7",
  ]);
  assert.equal(run.system.instances.get("operation/down"), undefined);
  assert.deepEqual(run.system.instances.get("operations")!.state.snapshot.value, "idle");
});

test("Joiner connects before any scale request: a stranger, counted with its rank; survivors are untouched", () => {
  const run = new Run();
  for (const rank of [0, 1]) run.hello(rank);
  for (const rank of [0, 1]) run.ready(rank);
  const before = [0, 1].map((rank) => run.value(`rank/${rank}/engine`));
  const sample = "rank 2, which is not awaited here";
  const step = run.say("startup", { type: "strangers", kind: "rank", count: 1, sample });
  assert.deepEqual([step.effects, step.notes], [[], []]);
  const status = statusOf(run.steps);
  assert.deepEqual([status.phase, status.ready, status.failure], ["formed", 2, null]);
  assert.deepEqual(status.strangers, [{ kind: "rank", count: 1, sample }]);
  assert.deepEqual([0, 1].map((rank) => run.value(`rank/${rank}/engine`)), before);
  assert.equal(run.system.instances.get("rank/2/engine"), undefined);
});

test("Expected exit of a removed rank 120 s after commit: not a failure, and no old identity is greeted again", () => {
  const run = new Run();
  for (const rank of [0, 1]) run.hello(rank);
  for (const rank of [0, 1]) run.ready(rank);
  run.say("rank/1/engine", { type: "leave" });
  const { seq, at } = run.system;
  const event = { type: "exited", code: 0, signal: null };
  const step = clusterKernel.step(run.system, {
    seq: seq + 1,
    at: at + 120_000,
    to: "rank/1/engine",
    event,
  });
  run.steps.push(step);
  run.system = step.system;
  const status = statusOf(run.steps);
  assert.deepEqual([status.phase, status.failure], ["formed", null]);
  assert.equal(status.ranks[1]?.state, "left");
  assert.deepEqual(run.hello(1).effects, []);
  assert.equal(run.value("rank/1/engine"), "left");
});

test("one-byte identity: dropped and counted, and start-up goes on; with strict upstream it ends, as the original's does", () => {
  const sample = "identity: expected two bytes, got 1 byte (05)";
  for (const strict of ["muster", "upstream"] as const) {
    const run = new Run({ strict });
    run.say("startup", { type: "strangers", kind: "identity", count: 1, sample });
    for (const rank of [0, 1]) run.hello(rank);
    for (const rank of [0, 1]) run.ready(rank);
    const { phase, strangers, failure } = statusOf(run.steps);
    assert.deepEqual(strangers, [{ kind: "identity", count: 1, sample }]);
    if (strict === "muster") assert.equal(phase, "formed");
    else assert.deepEqual([phase, failure?.code], ["failed", "stranger"]);
  }
});

test("fewer engines than local_count: still waiting in both strictnesses, until a deadline names who is missing", () => {
  for (const strict of ["muster", "upstream"] as const) {
    const run = new Run({ strict });
    run.hello(0);
    run.ready(0);
    assert.deepEqual(run.value("startup"), { starting: "forming" });
    run.fire("rank/1/engine", "connectDeadline");
    assert.deepEqual(failureOf(run).missing, [{ rank: 1, state: "late" }]);
  }
});
