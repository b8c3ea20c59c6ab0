/** The DP coordinator over real sockets: what kills the original is counted here, and everybody else is served. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import fc from "fast-check";
import { DpCoordinator } from "../../src/host/mod.ts";
import { connectPush, connectXSubscriber, type ZmqSocket } from "../../src/drivers/zmq/sockets.ts";
import {
  decodeCoordinatorFrames,
  decodePublish,
  encodeEngineOutputs,
  encodeScaleElasticEp,
  encodeWakeUp,
  ENGINE_CORE_DEAD,
  type Publish,
  SUBSCRIBE_ALL,
} from "../../src/protocol/mod.ts";
import { encode, Float } from "../../src/protocol/msgpack.ts";
import { until } from "../until.ts";

let folder: string;
let coordinator: DpCoordinator;
let sockets: ZmqSocket[];

class Engine {
  readonly heard: string[] = [];
  readonly sub: ZmqSocket;
  readonly push: ZmqSocket;
  constructor(readonly_: DpCoordinator) {
    const { backPublish, backOutput } = readonly_.state().sockets;
    this.sub = connectXSubscriber({
      address: backPublish,
      onMessage: (frames) => {
        const said = decodeCoordinatorFrames(frames);
        assert.ok(said.ok);
        const { value } = said;
        this.heard.push(
          value.type === "coordinator-ready" ? "READY" : `START ${value.wave} ${value.exclude}`,
        );
      },
    });
    this.push = connectPush({ address: backOutput });
    sockets.push(this.sub, this.push);
    void this.sub.send([SUBSCRIBE_ALL]);
  }
  report(index: number, message: object): void {
    void this.push.send([encodeEngineOutputs({ engineIndex: index, ...message })]);
  }
  stats(index: number, running: number, wave: number, step: number): void {
    const schedulerStats = {
      running,
      waiting: 0,
      kvCacheUsage: 0.25,
      currentWave: wave,
      stepCounter: step,
    };
    this.report(index, { schedulerStats });
  }
}

class Front {
  readonly heard: Publish[] = [];
  readonly sub: ZmqSocket;
  constructor() {
    this.sub = connectXSubscriber({
      address: coordinator.state().sockets.frontPublish,
      onMessage: (frames) => {
        const said = decodePublish(frames);
        assert.ok(said.ok);
        this.heard.push(said.value);
      },
    });
    sockets.push(this.sub);
    void this.sub.send([SUBSCRIBE_ALL]);
  }
  get counts(): number[][] {
    return this.heard.flatMap((p) => p.counts === null ? [] : [p.counts.map((r) => r.running)]);
  }
}

async function startWith(engines: number, more: object = {}): Promise<void> {
  const at = (name: string) => `ipc://${folder}/${name}`;
  coordinator = await DpCoordinator.start({
    sockets: { frontPublish: at("f"), backPublish: at("b"), backOutput: at("o") },
    engines,
    coordinates: true,
    intervalMs: 20,
    gatherMs: 5,
    idleIntervalMs: 200,
    ...more,
  });
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "muster-dp-"));
  sockets = [];
});
afterEach(async () => {
  for (const s of sockets) s.close();
  await coordinator.close();
  rmSync(folder, { recursive: true, force: true });
});

test("READY when all have subscribed, and again for a late one; wake-ups and waves go round", async () => {
  await startWith(2);
  const [a, b] = [new Engine(coordinator), new Engine(coordinator)];
  await until(() => a.heard[0] === "READY" && b.heard[0] === "READY", "READY");
  const front = new Front();
  await until(() => front.heard.length > 0, "a new front-end hears where we are");
  await front.sub.send([encodeWakeUp({ exclude: 1, wave: 0 })]);
  await until(() => b.heard.includes("START 0 1"), "the wake-up is passed on with its exclusion");
  a.report(0, { startWave: 0 });
  await until(() => front.heard.at(-1)?.running, "running is published at once");
  a.report(0, { waveComplete: 0 });
  const last = await until(() => front.heard.find((p) => p.wave === 1), "wave 1");
  assert.equal(last.running, false);
  const late = new Engine(coordinator);
  await until(() => late.heard.includes("READY"), "READY for a late engine");
  assert.deepEqual(coordinator.notes, []);
});

test("a wake-up that names its engine by identity, as the original's does, excludes it all the same", async () => {
  await startWith(1);
  const engine = new Engine(coordinator);
  await until(() => engine.heard[0], "READY");
  const front = new Front();
  await until(() => front.heard.length > 0, "subscribed");
  await front.sub.send([encodeWakeUp({ exclude: 258, wave: 0 }, "identity")]);
  await until(() => engine.heard.includes("START 0 258"), "START");
});

test("statistics are published per step, and a steady stream of events does not hold them up", async () => {
  // A busy machine may keep the second of a pair back for longer than any short wait.
  await startWith(2, { gatherMs: 60_000 });
  const engine = new Engine(coordinator);
  new Engine(coordinator);
  await until(() => engine.heard[0], "READY");
  const front = new Front();
  let step = 0;
  const steady = setInterval(() => {
    for (let i = 0; i < 20; i++) {
      engine.stats(0, step, 0, step);
      engine.stats(1, step, 0, step++);
    }
  }, 1);
  try {
    await until(() => front.counts.length >= 10, "ten publishes under a steady stream");
  } finally {
    clearInterval(steady);
  }
  for (const [x, y] of front.counts.slice(2, -1)) assert.equal(x, y, "both rows are of one step");
});

test("a rank that is not in the table is dropped and counted, and its wave part is heard all the same", async () => {
  await startWith(2);
  const engine = new Engine(coordinator);
  new Engine(coordinator);
  await until(() => engine.heard[0], "READY");
  engine.report(9, {
    schedulerStats: { running: 1, waiting: 0, kvCacheUsage: 0, currentWave: 0, stepCounter: 1 },
    startWave: 0,
  });
  await until(() => coordinator.state().state === "running", "the wave part is heard");
  assert.equal(coordinator.loads?.dropped, 1);
});

test("SCALE_ELASTIC_EP changes the rows, repeats are harmless, nonsense sizes are refused", async () => {
  await startWith(1);
  const engine = new Engine(coordinator);
  await until(() => engine.heard[0], "READY");
  const front = new Front();
  await until(() => front.heard.length > 0, "subscribed");
  for (const n of [4, 4, 2]) await front.sub.send([encodeScaleElasticEp(n)]);
  await until(() => coordinator.state().engines === 2 && coordinator.loads?.size === 2, "two rows");
  for (const n of [0, -1, 1.5, "three", null]) {
    const size = n === 1.5 ? new Float(n) : n;
    await front.sub.send([encode(["SCALE_ELASTIC_EP", size] as never)]);
  }
  await front.sub.send([encodeScaleElasticEp(3)]);
  await until(() => coordinator.state().engines === 3, "and a good one still works");
  await until(() => coordinator.state().strangers["message"] === 5, "five were counted");
});

test("nothing that a peer sends ends it: not what kills the original, and not random bytes", async () => {
  await startWith(2, { remindMs: 60_000 });
  const back = connectXSubscriber({ address: coordinator.state().sockets.backPublish });
  sockets.push(back);
  // During the barrier: a frame that is no subscription, and a subscription to something.
  await back.send([new TextEncoder().encode("hello")]);
  await back.send([Uint8Array.of(1, 65, 66)]);
  const [a, b] = [new Engine(coordinator), new Engine(coordinator)];
  await until(() => a.heard[0] && b.heard[0], "READY in spite of strangers");
  const front = new Front();
  await until(() => front.heard.length > 0, "subscribed");
  // Outputs and utilities at the coordinator, a dying engine, huge waves.
  a.report(0, { outputs: [{ requestId: "x", newTokenIds: [1], finishReason: null }] });
  a.report(0, { utilityOutput: { callId: "7", failure: null, result: null } });
  await a.push.send([ENGINE_CORE_DEAD]);
  a.report(1, { startWave: 5 });
  await until(() => coordinator.state().wave === 5, "wave 5");
  a.report(1, { startWave: 2 ** 40 });
  a.report(1, { waveComplete: 2 ** 52 });
  // Front-ends: not msgpack, three elements, a wave that cannot be compared.
  await front.sub.send([Uint8Array.of(0xc1)]);
  await front.sub.send([encode([1, 2, 3])]);
  await front.sub.send([encode([null, "three"])]);
  await front.sub.send([encode({ a: 1 })]);
  let sent = 0;
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 64 }), async (bytes) => {
      sent++;
      await a.push.send([bytes]);
      await front.sub.send([
        bytes.length > 0 && bytes[0]! > 1 ? bytes : Uint8Array.of(2, ...bytes),
      ]);
    }),
    { numRuns: 1000, seed: 6 },
  );
  assert.equal(sent, 1000);
  // Everybody else is still served. (Random bytes may have been a wave or a wake-up that could be believed.)
  const { wave } = coordinator.state();
  a.report(0, { startWave: wave + 1 });
  await until(() => coordinator.state().wave >= wave + 1, "the next wave");
  assert.ok(wave < 5 + 1024 * 8, "no implausible wave was adopted");
  assert.ok(
    coordinator.seq < 1200,
    `${coordinator.seq} inputs: strangers are counted, not journalled one by one`,
  );
});

test("an address in use is an error that names it", async () => {
  await startWith(1);
  const { sockets: bound } = coordinator.state();
  await assert.rejects(
    DpCoordinator.start({ sockets: bound, engines: 1, coordinates: false }),
    (error: Error) => error.message.includes(bound.frontPublish.slice("ipc://".length)),
  );
});
