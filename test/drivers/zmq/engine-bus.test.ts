import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeEngineRequest,
  encode,
  encodeAbort,
  encodeEngineOutputs,
  encodeFirstFrame,
  engineStatus,
  type OutputsToSend,
  scalingNotification,
  utilities,
  type UtilityCall,
  utilityReply,
  wireRank,
} from "../../../src/protocol/mod.ts";
import { bindEngineBus, callIdOf, type EngineBus } from "../../../src/drivers/zmq/engine-bus.ts";
import { connectDealer, connectPush, type ZmqSocket } from "../../../src/drivers/zmq/sockets.ts";
import type { Strangers } from "../../../src/drivers/zmq/strangers.ts";
import { text } from "./support.ts";
import { until } from "../../until.ts";

/** A bus with everything that it reported. */
async function open(size: number, clientIndex = 0) {
  const log: unknown[] = [];
  const strangers: Strangers[] = [];
  const bus = await bindEngineBus({
    input: "tcp://127.0.0.1:0",
    output: "tcp://127.0.0.1:0",
    clientIndex,
    expects: (rank) => rank < size,
    onFirstFrame: (rank, facts) => log.push(["first", rank, facts]),
    onNotification: (rank, notification) => log.push(["notified", rank, notification.type]),
    onEngineDead: () => log.push(["dead"]),
    onWave: (rank, wave) => log.push(["wave", rank, wave]),
    onStats: (rank, stats) => log.push(["stats", rank, stats.running]),
    onOutputs: (outputs, frames) => log.push(["outputs", outputs.outputCount, frames.length]),
    onMalformed: (rank, refusal) => log.push(["malformed", rank, refusal.at]),
    onStrangers: (report) => strangers.push(report),
  });
  return { bus, log, strangers };
}

/** An engine that answers utilities as it is told. */
function engine(
  bus: EngineBus,
  rank: number,
  answer: (call: UtilityCall) => OutputsToSend[] = () => [],
) {
  const push = connectPush({ address: bus.endpoints.output });
  const requests: string[] = [];
  const dealer = connectDealer({
    address: bus.endpoints.input,
    rank: wireRank(rank),
    onMessage: (frames) => {
      const request = decodeEngineRequest(frames);
      assert.ok(request.ok);
      requests.push(request.value.type);
      if (request.value.type !== "utility") return;
      for (const reply of answer(request.value)) void push.send([encodeEngineOutputs(reply)]);
    },
  });
  const close = () => [dealer, push].forEach((socket: ZmqSocket) => socket.close());
  const say = (message: OutputsToSend, ...aux: Uint8Array[]) =>
    push.send([encodeEngineOutputs(message), ...aux]);
  return { dealer, push, requests, say, close };
}

test("calls on one rank and on all at once: replies find their call by id, failures in the engine's words", async () => {
  const { bus, log } = await open(3, 2);
  const engines = [0, 1, 2].map((rank) =>
    engine(bus, rank, (call) => {
      assert.equal(call.clientIndex, 2);
      const utilityOutput = call.method === "pause_scheduler"
        ? utilityReply.failed(call.callId, call.method, "Invalid pause mode: x")
        : utilityReply.of(call.callId, rank === 1);
      return [{ engineIndex: rank, utilityOutput }];
    })
  );
  for (const { dealer } of engines) {
    void dealer.send([encodeFirstFrame({ type: "first-frame", facts: null })]);
  }
  await until(() => log.length === 3, "three first frames");
  const all = await Promise.all([0, 1, 2].map((rank) =>
    bus.call({
      rank: wireRank(rank),
      callId: callIdOf("9007199254740.1", rank),
      utility: utilities.isSchedulerPaused(),
      deadlineMs: 10_000,
    })
  ));
  assert.deepEqual(all, [false, true, false].map((value) => ({ type: "replied", value })));
  const failed = await bus.call({
    rank: wireRank(0),
    callId: "18446744073709551615",
    utility: utilities.pauseScheduler("keep"),
    deadlineMs: 10_000,
  });
  assert.deepEqual(failed, {
    type: "failed",
    failure: "Call to pause_scheduler method failed: Invalid pause mode: x",
  });
  assert.equal(bus.openCalls, 0);
  for (const { close } of engines) close();
  bus.close();
});

test("a call that is never answered is late, one whose engine is not there was never delivered", async () => {
  const { bus, log } = await open(2);
  const silent = engine(bus, 0);
  await silent.dealer.send([new Uint8Array(0)]);
  await until(() => log.length === 1, "its first frame");
  const call = (rank: number, deadlineMs: number) =>
    bus.call({
      rank: wireRank(rank),
      callId: String(rank + 1),
      utility: utilities.resumeScheduler(),
      deadlineMs,
    });
  const [late, absent] = await Promise.all([call(0, 120), call(1, 120)]);
  assert.ok(late.type === "late" && late.delivered && late.why === null && late.afterMs >= 119);
  assert.ok(absent.type === "late" && !absent.delivered);
  assert.equal(absent.why, "rank 1 is not connected");
  silent.close();
  bus.close();
});

test("a call before the engine's first frame is delivered as soon as it can be", async () => {
  const { bus } = await open(1);
  const calling = bus.call({
    rank: wireRank(0),
    callId: "5",
    utility: utilities.isSchedulerPaused(),
    deadlineMs: 10_000,
  });
  await new Promise((resolve) => setTimeout(resolve, 30));
  const late = engine(
    bus,
    0,
    (call) => [{ engineIndex: 0, utilityOutput: utilityReply.of(call.callId, true) }],
  );
  await late.dealer.send([new Uint8Array(0)]);
  assert.deepEqual(await calling, { type: "replied", value: true });
  late.close();
  bus.close();
});

test("replies that nobody asked for are counted: unknown ids, a second reply, another rank's, one after the deadline", async () => {
  const { bus, log, strangers } = await open(2);
  const peer = engine(bus, 0, (call) => [
    { engineIndex: 1, utilityOutput: utilityReply.of(call.callId, "not mine") },
    { engineIndex: 0, utilityOutput: utilityReply.of(call.callId, "mine") },
    { engineIndex: 0, utilityOutput: utilityReply.of(call.callId, "again") },
    { engineIndex: 0, utilityOutput: utilityReply.of("77", null) },
  ]);
  await peer.dealer.send([new Uint8Array(0)]);
  await until(() => log.length === 1, "its first frame");
  const outcome = await bus.call({
    rank: wireRank(0),
    callId: "1",
    utility: utilities.isSleeping(),
    deadlineMs: 10_000,
  });
  assert.deepEqual(outcome, { type: "replied", value: "mine" });
  await peer.say({
    engineIndex: 0,
    schedulerStats: { running: 1, waiting: 0, stepCounter: 0, currentWave: 0, kvCacheUsage: 0 },
  });
  await until(() => log.length === 2, "what was sent behind them");
  peer.close();
  bus.close();
  assert.deepEqual(strangers.map((s) => s.kind), ["reply", "reply"]);
  assert.equal(strangers.reduce((sum, s) => sum + s.count, 0), 3);
  assert.equal(strangers[0]!.sample, "a reply of rank 1 to call 1, which is not open");
});

test("first frames of both generations, notifications, waves, statistics and outputs are told apart", async () => {
  const { bus, log, strangers } = await open(2);
  const peer = engine(bus, 1);
  await peer.dealer.send([encodeFirstFrame({ type: "first-frame", facts: { numGpuBlocks: 9 } })]);
  await until(() => log.length === 1, "1");
  await peer.dealer.send([encode({ num_gpu_blocks: "9" })]);
  await until(() => log.length === 2, "2");
  await peer.say({ engineIndex: 1, utilityOutput: scalingNotification("RECONFIGURE_FINISHED", 1) });
  await peer.say({ engineIndex: 1, utilityOutput: engineStatus({ id: 1, status: 1 }) });
  await peer.say({ engineIndex: 1, waveComplete: 0 });
  await peer.say({ engineIndex: 1, startWave: 4 });
  await peer.say(
    { engineIndex: 1, outputs: [{ requestId: "r", newTokenIds: [1], finishReason: null }] },
    new Uint8Array(9),
  );
  await peer.push.send([text("ENGINE_CORE_DEAD")]);
  await until(() => log.length === 8, "all");
  assert.deepEqual(log, [
    ["first", 1, { numGpuBlocks: 9 }],
    ["malformed", 1, "num_gpu_blocks"],
    ["notified", 1, "scaling-notification"],
    ["notified", 1, "engine-status"],
    ["wave", 1, { waveComplete: 0 }],
    ["wave", 1, { startWave: 4 }],
    ["outputs", 1, 2],
    ["dead"],
  ]);
  // Strangers on both sockets end nothing.
  const stranger = engine(bus, 7);
  await stranger.dealer.send([new Uint8Array(0)]);
  await stranger.dealer.send([new Uint8Array(0), text("GET / HTTP/1.1")]);
  await stranger.push.send([text("\xc1")]);
  await stranger.say({ engineIndex: 7, waveComplete: 1 });
  await stranger.say({ engineIndex: 1, utilityOutput: scalingNotification("BYE" as never, 1) });
  await peer.say({ engineIndex: 1, waveComplete: 5 });
  await until(() => log.length === 9, "a wave behind them");
  await until(() => strangers.length === 3, "the strangers");
  stranger.close();
  peer.close();
  bus.close();
  const counts = Object.fromEntries(["rank", "frames", "message"].map((kind) => [
    kind,
    strangers.filter((s) => s.kind === kind).reduce((sum, s) => sum + s.count, 0),
  ]));
  assert.deepEqual(counts, { rank: 2, frames: 1, message: 2 });
});

test("abandoned calls end, and closing ends all", async () => {
  const { bus } = await open(1);
  const call = (callId: string) =>
    bus.call({ rank: wireRank(0), callId, utility: utilities.isSleeping(), deadlineMs: 60_000 });
  const first = call("1");
  const second = call("2");
  assert.throws(() => call("1"), /already on its way/);
  bus.abandon("1");
  bus.abandon("no such call");
  assert.deepEqual(await first, { type: "abandoned" });
  assert.equal(bus.openCalls, 1);
  bus.close();
  assert.deepEqual(await second, { type: "abandoned" });
  const sent = await bus.send(wireRank(0), encodeAbort(["r"]));
  assert.ok(!sent.ok && sent.reason === "closed");
});

test("call ids are made from effect ids and ranks, and are never those of notifications", () => {
  assert.equal(callIdOf("12.3", 5), String((12n << 32n) | (3n << 16n) | 5n));
  assert.equal(new Set([0, 1, 65535].map((rank) => callIdOf("7.0", rank))).size, 3);
  for (const wrong of ["", "1", "x.1", "1.70000", "-1.2"]) {
    assert.throws(() => callIdOf(wrong, 0), TypeError);
  }
  assert.ok(BigInt(callIdOf("99999999999.65535", 65535)) < 2n ** 63n);
});
