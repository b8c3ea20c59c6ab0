import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DEFAULT_LIMITS, type HandshakeSocket, initOf } from "../../src/machines/mod.ts";
import { type Overrides, Run } from "./fixture.ts";

const REMOTE: Overrides = {
  ranks: [
    { rank: 0, local: true, headless: false },
    { rank: 1, local: false, headless: true },
  ],
};

test("every rank says HELLO and READY, in any order: formed, blocks summed with their spread", () => {
  fc.assert(
    fc.property(fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6 }), (order) => {
      const ranks = [0, 1, 2].map((rank) => ({ rank, local: true, headless: false }));
      const run = new Run({ size: 3, ranks });
      const said = new Set<number>();
      for (const n of order) {
        const rank = n % 3;
        if (said.has(rank)) run.ready(rank, { blocks: 100 + rank });
        else run.hello(rank);
        said.add(rank);
      }
      assert.equal(run.value("startup"), "formed");
      assert.deepEqual(run.startup.blocks, { sum: 303, min: 100, max: 102 });
      assert.equal(run.asked.filter((a) => a === "startup announce").length, 1);
      assert.equal(run.asked.filter((a) => a.endsWith("handshake.init")).length, 3);
    }),
    { numRuns: 720 },
  );
});

test("INIT is known before the handshake's socket is bound: no HELLO is heard that cannot be answered", () => {
  const run = new Run();
  const held = run.steps.flatMap((s) => s.effects).filter((e) => e.kind === "hold");
  const inits = held.map((e) => (e.kind === "hold" ? e.resource as HandshakeSocket : undefined));
  assert.deepEqual(inits[0]?.init?.addresses.inputs, ["ipc:///run/in"]);
  assert.equal(inits[0]?.bind, "tcp://127.0.0.1:0");
  assert.deepEqual(inits[1]?.init?.addresses.inputs, ["ipc:///run/in"]);
  assert.equal(inits[1]?.bind, "tcp://127.0.0.1:29550", "a restart binds the same port");
});

test("a rank that never says HELLO fails the start-up at its deadline, in phase connect", () => {
  const run = new Run();
  run.hello(0);
  run.fire("rank/1/engine", "connectDeadline");
  assert.deepEqual(run.startup.failure, {
    code: "engine-late",
    of: "rank/1/engine",
    phase: "connect",
    detail: {},
  });
});

test("a rank that connects and never gets ready fails it in phase load", () => {
  const run = new Run();
  run.hello(1);
  run.fire("rank/1/engine", "readyDeadline");
  assert.equal(run.startup.failure?.phase, "load");
});

test("a local engine that exits before HELLO fails it at once, with its exit code", () => {
  const run = new Run();
  run.say("rank/1/engine", { type: "exited", code: 7, signal: null });
  assert.deepEqual(run.startup.failure, {
    code: "engine-exited",
    of: "rank/1/engine",
    phase: "connect",
    detail: { code: 7, signal: null },
  });
});

test("the first cause stays: later failures do not replace it", () => {
  const run = new Run();
  run.say("rank/1/engine", { type: "exited", code: 7, signal: null });
  run.say("rank/0/engine", { type: "exited", code: null, signal: "SIGTERM" });
  assert.equal(run.startup.failure?.of, "rank/1/engine");
});

test("a HELLO with the wrong flags is refused and may be put right before the deadline", () => {
  const run = new Run(REMOTE);
  const refused = run.hello(1, false, false);
  assert.deepEqual(refused.transitions.at(-1)?.event, {
    type: "rankRefused",
    reason: "must-be-headless",
    phase: "connect",
    message: "HELLO",
    expectedLocal: false,
    from: "rank/1/engine",
  });
  assert.equal(run.value("rank/1/engine"), "awaited");
  run.hello(1, false, true);
  run.ready(1, { local: false, headless: true });
  run.hello(0);
  run.ready(0);
  assert.equal(run.value("startup"), "formed");
});

test("a remote rank that restarts before READY may say HELLO again and gets INIT again", () => {
  const run = new Run(REMOTE);
  run.hello(1, false, true);
  const again = run.hello(1, false, true);
  assert.deepEqual(again.effects.map((e) => e.kind), ["disarm", "message", "arm"]);
  assert.equal(run.startup.connected, 1, "it is connected once");
});

test("a second HELLO of a local rank whose process lives is somebody else's: refused", () => {
  const launches = [{ id: "a", ranks: [0, 1], argv: ["x"], env: {}, cwd: null, inherit: true }];
  const run = new Run({ launches });
  run.hello(1);
  const again = run.hello(1);
  assert.equal(again.transitions.at(-1)?.event["reason"], "unexpected");
  assert.deepEqual(again.effects, []);
});

test("READY twice counts once", () => {
  const run = new Run();
  run.hello(0);
  run.ready(0);
  run.ready(0);
  assert.equal(run.startup.ready, 1);
  assert.equal(run.startup.blocks?.sum, 10);
});

test("HELLO of a rank that was ready: its group is broken, and that is a failure", () => {
  const run = new Run(REMOTE);
  run.hello(1, false, true);
  run.ready(1, { local: false, headless: true });
  run.hello(1, false, true);
  assert.equal(run.startup.failure?.code, "engine-restarted");
});

test("the first READY sets the reference hash, and the next one differs", () => {
  const run = new Run({ comparesHashes: true });
  run.hello(0);
  run.hello(1);
  run.ready(0, { hash: "aa" });
  run.ready(1, { hash: "bb" });
  assert.equal(run.startup.failure?.code, "configuration-mismatch");
  assert.equal(run.startup.failure?.of, "rank/1/engine");
  assert.equal(run.startup.hash, "aa");
});

test("a configured reference is what the first READY is held against; an absent hash cannot be compared", () => {
  const wrong = new Run({ comparesHashes: true, parallelConfigHash: "aa" });
  wrong.hello(0);
  wrong.ready(0, { hash: "bb" });
  assert.equal(wrong.startup.failure?.code, "configuration-mismatch");
  const absent = new Run({ comparesHashes: true, parallelConfigHash: "aa" });
  absent.hello(0);
  absent.ready(0);
  assert.equal(absent.startup.failure, null);
});

test("after a failure the processes are stopped, and when the last is gone the start-up is cleared", () => {
  const launches = [0, 1].map((r) => ({
    id: `e${r}`,
    ranks: [r],
    argv: ["engine", "{handshake}"],
    env: {},
    cwd: null,
    inherit: true,
  }));
  const run = new Run({ launches });
  run.say("launcher", { type: "keeperPlaced", place: { mark: "m", directory: "/k" }, call: "2.1" });
  const up = run.say("launcher", {
    type: "keeperUp",
    identity: { pid: 1, startTicks: 1, boot: "b" },
  });
  const spawns = up.effects.flatMap((e) => e.kind === "call" ? [e.effect] : []);
  assert.deepEqual(spawns.map((s) => (s as { argv?: string[] }).argv), [
    ["engine", "tcp://127.0.0.1:29550"],
    ["engine", "tcp://127.0.0.1:29550"],
  ]);
  run.say("process/e0", { type: "spawned", pid: 100, call: "4.1" });
  run.say("process/e1", { type: "spawned", pid: 101, call: "4.2" });
  const died = run.say("process/e1", { type: "exited", code: 3, signal: null });
  assert.equal(run.startup.failure?.of, "rank/1/engine");
  assert.deepEqual(
    died.effects.flatMap((e) => e.kind === "call" ? [`${e.from} ${e.effect.type}`] : []),
    ["process/e0 process.stop"],
  );
  assert.deepEqual(run.value("startup"), { failed: "clearing" });
  run.say("process/e0", { type: "exited", code: null, signal: "SIGTERM" });
  assert.deepEqual(run.value("startup"), { failed: "cleared" });
  assert.equal(run.value("launcher"), "gone");
});

test("a silent process is a failure when its output is watched", () => {
  const launches = [{ id: "e", ranks: [0, 1], argv: ["x"], env: {}, cwd: null, inherit: true }];
  const run = new Run({
    launches,
    limits: {
      ...DEFAULT_LIMITS,
      totalMs: 1,
      connectMs: 1,
      readyMs: 1,
      progressMs: 4000,
      stopMs: 1,
    },
  });
  run.say("launcher", { type: "keeperPlaced", place: { mark: "m", directory: "/k" }, call: "2.1" });
  run.say("launcher", { type: "keeperUp", identity: { pid: 1, startTicks: 1, boot: "b" } });
  run.say("process/e", { type: "spawned", pid: 1, call: "4.1" });
  const first = run.system.instances.get("process/e")!.timers[0]!.generation;
  run.say("process/e", { type: "progressed" });
  assert.equal(run.system.instances.get("process/e")!.timers[0]!.generation, first + 1);
  run.fire("process/e", "progressDeadline");
  assert.equal(run.startup.failure?.code, "engine-silent");
});

test("ports of the ranks' groups are drawn once, and no engine is answered without them", () => {
  const parallelConfig = { data_parallel_master_ip: "10.0.0.1", data_parallel_size: 2 };
  const run = new Run({ drawsPorts: true, parallelConfig });
  assert.deepEqual(run.asked, ["startup ports.draw"]);
  assert.deepEqual(run.value("startup"), { starting: "binding" });
  const call = run.steps.flatMap((s) => s.effects).find((e) => e.kind === "call")!;
  run.say("startup", { type: "portsDrawn", call: call.id, ports: [5, 4, 3, 2, 1] });
  assert.deepEqual(run.value("startup"), { starting: "forming" });
  assert.deepEqual(initOf(run.startup).parallelConfig, {
    data_parallel_master_ip: "10.0.0.1",
    data_parallel_size: 2,
    data_parallel_master_port: 1,
    _data_parallel_master_port_list: [5, 4, 3, 2],
  });
});

test("newest engines tell their blocks in the first frame, before READY or after it, and nothing counts twice", () => {
  const run = new Run();
  const firstFrame = (rank: number, blocks: number | null) =>
    run.say(`rank/${rank}/engine`, { type: "firstFrame", blocks });
  run.hello(0);
  firstFrame(0, 700);
  run.ready(0, { blocks: null });
  run.hello(1);
  run.ready(1, { blocks: null });
  assert.deepEqual(run.startup.blocks, { sum: 700, min: 700, max: 700 });
  firstFrame(1, 500);
  assert.deepEqual(run.startup.blocks, { sum: 1200, min: 500, max: 700 });
  // Middle releases say it in both places; old ones have an empty frame; a repeat is no news.
  firstFrame(0, 700);
  firstFrame(1, null);
  assert.deepEqual(run.startup.blocks, { sum: 1200, min: 500, max: 700 });
  const mid = new Run();
  mid.hello(0);
  mid.say("rank/0/engine", { type: "firstFrame", blocks: 40 });
  mid.ready(0, { blocks: 40 });
  assert.deepEqual(mid.startup.blocks, { sum: 40, min: 40, max: 40 });
});

test("a rank whose process we do not see is asked for signs of life while it serves, and only then", () => {
  const limits = { ...DEFAULT_LIMITS, heartbeatEveryMs: 100, heartbeatWithinMs: 300 };
  const clients = [{ input: "ipc:///i", output: "ipc:///o", ours: true }];
  const sockets = { handshake: "tcp://127.0.0.1:0", clients, coordinator: null };
  const run = new Run({ ...REMOTE, limits, sockets });
  run.say("startup", { type: "bound", socket: "bus0", endpoints: { input: "i", output: "o" } });
  const beats = (): string[] =>
    run.steps.flatMap((s) => s.effects).flatMap((e) =>
      e.kind === "hold" && e.key === "heartbeat" ? [`hold ${e.from}`] : []
    );
  run.hello(1, false, true);
  assert.deepEqual(beats(), []);
  run.ready(1, { local: false, headless: true });
  assert.deepEqual(beats(), ["hold rank/1/engine"]);
  run.say("rank/1/engine", { type: "unresponsive", afterMs: 300, why: null });
  assert.deepEqual([run.startup.failure?.code, run.startup.failure?.phase], [
    "engine-unresponsive",
    "serve",
  ]);
});
