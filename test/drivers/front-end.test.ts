/** A front-end at a real coordinator: loads, picks, wake-ups, and what it says when there is no coordinator. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { FrontEndClient } from "../../src/drivers/front-end.ts";
import { connectPush, connectXSubscriber, type ZmqSocket } from "../../src/drivers/zmq/sockets.ts";
import { DpCoordinator } from "../../src/host/mod.ts";
import {
  decodeCoordinatorFrames,
  encodeEngineOutputs,
  SUBSCRIBE_ALL,
} from "../../src/protocol/mod.ts";
import { until } from "../until.ts";

let folder: string;
let coordinator: DpCoordinator;
let front: FrontEndClient;
const sockets: ZmqSocket[] = [];
const started: [number, number | null][] = [];
let reports: ZmqSocket;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "muster-fe-"));
  const at = (name: string) => `ipc://${folder}/${name}`;
  coordinator = await DpCoordinator.start({
    sockets: { frontPublish: at("f"), backPublish: at("b"), backOutput: at("o") },
    engines: 1,
    coordinates: true,
    intervalMs: 20,
    gatherMs: 5,
  });
  const engine = connectXSubscriber({
    address: at("b"),
    onMessage: (frames) => {
      const said = decodeCoordinatorFrames(frames);
      if (said.ok && said.value.type === "start-dp-wave") {
        started.push([said.value.wave, said.value.exclude]);
      }
    },
  });
  reports = connectPush({ address: at("o") });
  sockets.push(engine, reports);
  await engine.send([SUBSCRIBE_ALL]);
  await until(() => coordinator.state().state === "paused", "serving");
  front = await FrontEndClient.connect({ address: at("f"), engines: 4 });
});

after(async () => {
  front.close();
  for (const s of sockets) s.close();
  await coordinator.close();
  rmSync(folder, { recursive: true, force: true });
});

test("the first request wakes the others and leaves its engine out; the next ones wake nobody", async () => {
  const rank = front.pick();
  assert.deepEqual(await front.begin(rank), { wave: 0, woke: true });
  assert.equal((await front.begin(front.pick())).woke, false);
  await until(() => started.length === 1, "START_DP_WAVE");
  assert.deepEqual(started[0], [0, rank]);
});

test("ten requests before any statistics are spread 3, 3, 2, 2", async () => {
  for (let i = 0; i < 8; i++) await front.begin(front.pick());
  assert.deepEqual(front.loads().map((l) => l.inFlight), [3, 3, 2, 2]);
  assert.deepEqual(front.loads().map((l) => l.ageMs), [null, null, null, null]);
  for (const { engine, inFlight } of front.loads()) {
    for (let i = 0; i < inFlight; i++) front.finish(engine);
  }
});

test("published loads are seen with their age, and the next pick goes by them", async () => {
  await front.scaled(4);
  await until(() => coordinator.state().engines === 4, "four rows");
  for (const [engineIndex, running] of [9, 8, 1, 9].entries()) {
    const schedulerStats = {
      running,
      waiting: 0,
      kvCacheUsage: 0.5,
      currentWave: 0,
      stepCounter: 1,
    };
    await reports.send([encodeEngineOutputs({ engineIndex, schedulerStats })]);
  }
  await until(() => front.loads()[3]!.running === 9, "counts");
  assert.equal(front.pick(), 2);
  assert.ok(front.loads()[2]!.ageMs! >= 0);
});

test("a node's front-end sees its own engines under their own numbers", async () => {
  const address = coordinator.state().sockets.frontPublish;
  const own = await FrontEndClient.connect({ address, engines: 2, firstEngine: 2 });
  try {
    assert.deepEqual(own.loads().map((l) => l.engine), [2, 3]);
    assert.ok([2, 3].includes(own.pick()));
  } finally {
    own.close();
  }
});

test("where nobody publishes, connecting fails and says what to look at", async () => {
  const address = `ipc://${folder}/nobody`;
  await assert.rejects(
    FrontEndClient.connect({ address, engines: 1, withinMs: 100 }),
    /no coordinator published at ipc:.* within 100 ms/,
  );
});
