/** Reference engines that serve, over real sockets, with a front-end and a coordinator played by the test. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ServingEngine } from "../../src/drivers/engine-serving.ts";
import { freePorts } from "../../src/drivers/ports.ts";
import {
  bindPull,
  bindRouter,
  bindXPublisher,
  type ZmqSocket,
} from "../../src/drivers/zmq/sockets.ts";
import {
  COORDINATOR_READY,
  decodeEngineOutputs,
  decodeRequestOutputs,
  encodeAdd,
  encodeIdentity,
  encodeOwnRequest,
  encodeStartDpWave,
  encodeUtilityRequest,
  type EngineOutputs,
  type Json,
  type WireRank,
} from "../../src/protocol/mod.ts";
import { until } from "../until.ts";

const SIZE = 3;
let folder: string;
let input: ZmqSocket;
let output: ZmqSocket;
let back: ZmqSocket;
let reports: ZmqSocket;
let engines: ServingEngine[];
const outputs: { main: EngineOutputs; bytes: Uint8Array }[] = [];
const reported: EngineOutputs[] = [];
let dead = 0;

/** Resolves when the check answers with something. */
const request = (rank: number, id: string, wave: number) =>
  input.send([
    encodeIdentity(rank as WireRank),
    ...encodeAdd(encodeOwnRequest({
      requestId: id,
      clientIndex: 0,
      currentWave: wave,
      promptTokenIds: [1, 2],
      arrivalTime: 0,
      dataParallelRank: null,
    })),
  ]);
const call = (rank: number, callId: string, method: string, args: Json[] = []) =>
  input.send([
    encodeIdentity(rank as WireRank),
    ...encodeUtilityRequest({ clientIndex: 0, callId, method, args }),
  ]);
const replyTo = (callId: string) =>
  until(
    () => outputs.find((o) => o.main.utilityOutput?.callId === callId)?.main.utilityOutput ?? false,
    `a reply to ${callId}`,
  );
const running = () => engines.map((e) => e.state.waves.running);

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "muster-se-"));
  const at = (name: string) => `ipc://${folder}/${name}`;
  const first = new Set<number>();
  input = await bindRouter({
    address: at("in"),
    onMessage: ([identity]) => void first.add(identity![0]!),
  });
  output = await bindPull({
    address: at("out"),
    onMessage: (frames) => {
      const said = decodeEngineOutputs(frames);
      if (said.ok && said.value.type === "outputs") {
        outputs.push({ main: said.value, bytes: frames[0]! });
      } else if (said.ok) dead++;
    },
  });
  let subscribed = 0;
  back = await bindXPublisher({ address: at("back"), onMessage: () => void subscribed++ });
  reports = await bindPull({
    address: at("reports"),
    onMessage: (frames) => {
      const said = decodeEngineOutputs(frames);
      if (said.ok && said.value.type === "outputs") reported.push(said.value);
    },
  });
  const [port] = await freePorts(1, "127.0.0.1");
  engines = Array.from({ length: SIZE }, (_, rank) =>
    new ServingEngine({
      rank: rank as WireRank,
      size: SIZE,
      addresses: {
        inputs: [at("in")],
        outputs: [at("out")],
        coordinatorInput: at("back"),
        coordinatorOutput: at("reports"),
        frontendStatsPublish: null,
      },
      group: { host: "127.0.0.1", port: port! },
      behaviour: {
        coordinated: true,
        capacity: 2,
        agreeEvery: 4,
        saysWhenItRuns: true,
        blocks: 100,
      },
      facts: null,
      stepMs: 1,
      tokens: 5,
      exit: (code) => assert.fail(`exit ${code}`),
    }));
  const joined = Promise.all(engines.map((e) => e.join()));
  await until(() => subscribed === SIZE, "every engine subscribes");
  await back.send([COORDINATOR_READY]);
  await joined;
  await until(() => first.size === SIZE, "a first frame of every engine");
});

after(async () => {
  await Promise.all(engines.map((e) => e.close()));
  for (const s of [input, output, back, reports]) s.close();
  rmSync(folder, { recursive: true, force: true });
});

test("a request is served when every engine runs: tokens, statistics, the wave's beginning and end", async () => {
  await request(0, "q1", 0);
  await until(() => reported.some((r) => r.startWave === 0), "rank 0 says that it runs");
  assert.deepEqual(running(), [true, false, false]);
  await back.send(encodeStartDpWave({ wave: 0, exclude: 0 }));
  await until(() => reported.some((r) => r.waveComplete === 0), "the wave is complete");
  const tokens = outputs.flatMap((o) => {
    const said = decodeRequestOutputs(o.bytes);
    return said.ok ? said.value.filter((t) => t.requestId === "q1") : [];
  });
  assert.deepEqual(tokens.map((t) => t.finishReason), [null, null, null, null, "length"]);
  await until(() => running().every((r) => !r), "all rest");
  assert.deepEqual(engines.map((e) => e.state.waves.wave), [1, 1, 1]);
  const counts = reported.flatMap((r) => r.schedulerStats ?? []).map((s) => s.running);
  assert.deepEqual([counts[0], counts.at(-1)], [1, 0]);
});

test("beyond its capacity requests wait, and are counted so", async () => {
  for (const id of ["a", "b", "c"]) await request(0, id, 1);
  await back.send(encodeStartDpWave({ wave: 1, exclude: 0 }));
  await until(() => reported.some((r) => r.schedulerStats?.waiting === 1), "one waits");
  await until(() => reported.some((r) => r.waveComplete === 1), "all are served");
});

test("a request of a wave that is over makes its engine call out the next one", async () => {
  await request(2, "late", 0);
  await until(() => reported.some((r) => r.startWave === 2 && r.engineIndex === 2), "start_wave 2");
  await back.send(encodeStartDpWave({ wave: 2, exclude: null }));
  await until(() => reported.some((r) => r.waveComplete === 2), "the wave is complete");
});

test("pause is collective: no reply until every engine was asked; paused, nobody is woken", async () => {
  await call(0, "101", "pause_scheduler", ["keep", false]);
  await call(1, "102", "pause_scheduler", ["keep", false]);
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(
    outputs.some((o) => ["101", "102"].includes(o.main.utilityOutput?.callId ?? "")),
    false,
  );
  await call(2, "18446744073709551615", "pause_scheduler", ["keep", false]);
  for (const id of ["101", "102", "18446744073709551615"]) {
    assert.deepEqual((await replyTo(id)).result, { type: null, value: null });
  }
  await call(1, "104", "is_scheduler_paused");
  assert.equal((await replyTo("104")).result?.value, true);
  await request(1, "held", 3);
  await back.send(encodeStartDpWave({ wave: 3, exclude: null }));
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(running(), [false, false, false]);
});

test("resumed together, they go on with what was held", async () => {
  for (let r = 0; r < SIZE; r++) await call(r, String(200 + r), "resume_scheduler");
  for (let r = 0; r < SIZE; r++) assert.equal((await replyTo(String(200 + r))).failure, null);
  await until(() => reported.some((r) => r.waveComplete === 3), "the held request is served");
  await call(0, "300", "resume_scheduler");
  assert.equal((await replyTo("300")).failure, null, "a second resume is harmless");
});

test("failures in the original's words", async () => {
  await call(0, "400", "pause_scheduler", ["sideways", false]);
  assert.equal(
    (await replyTo("400")).failure,
    "Call to pause_scheduler method failed: Invalid pause mode: sideways",
  );
  await call(0, "401", "make_tea");
  assert.match((await replyTo("401")).failure ?? "", /^Call to make_tea method failed: /);
  await call(0, "402", "reset_prefix_cache");
  assert.equal((await replyTo("402")).result?.value, true);
});

test("an engine that dies says so to every front-end", async () => {
  await engines[1]!.die();
  await until(() => dead === 1, "ENGINE_CORE_DEAD");
});
