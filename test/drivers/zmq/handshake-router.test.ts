import assert from "node:assert/strict";
import { test } from "node:test";
import * as zmq from "zeromq";
import {
  decodeInit,
  decodeScaleUpInit,
  encode,
  encodeEngineHandshake,
  type EngineHandshake,
  type Init,
  type Refusal,
  wireRank,
} from "../../../src/protocol/mod.ts";
import { bindHandshakeRouter } from "../../../src/drivers/zmq/handshake-router.ts";
import { RankLimit } from "../../../src/drivers/zmq/rank-limit.ts";
import { waitsNatively } from "../../../src/drivers/zmq/readiness.ts";
import { connectDealer } from "../../../src/drivers/zmq/sockets.ts";
import { StrangerCounter, type Strangers } from "../../../src/drivers/zmq/strangers.ts";
import { fireAt } from "./fire.ts";
import { text } from "./support.ts";
import { until } from "../../until.ts";

const init: Init = {
  addresses: {
    inputs: ["ipc:///in"],
    outputs: ["ipc:///out"],
    coordinatorInput: null,
    coordinatorOutput: null,
    frontendStatsPublish: null,
  },
  parallelConfig: { data_parallel_size: 3 },
  parallelConfigHash: null,
};
const hello = encodeEngineHandshake({ type: "hello", local: true, headless: false });

/** A router that awaits ranks 0 to `size` - 1 and answers every HELLO, with what it reported. */
async function listen(size: number) {
  const messages: [number, EngineHandshake][] = [];
  const malformed: [number, Refusal][] = [];
  const strangers: Strangers[] = [];
  const router = await bindHandshakeRouter({
    address: "tcp://127.0.0.1:0",
    expects: (rank) => rank < size,
    onMessage: (rank, message) => {
      messages.push([rank, message]);
      if (message.type === "hello") void router.sendInit(rank, init);
    },
    onMalformed: (rank, refusal) => malformed.push([rank, refusal]),
    onStrangers: (report) => strangers.push(report),
  });
  const counted = (kind: string) =>
    strangers.filter((s) => s.kind === kind).reduce((sum, s) => sum + s.count, 0);
  return { router, messages, malformed, strangers, counted };
}

/** A peer with any identity, as a hostile one may choose it. */
const peer = (endpoint: string, identity: Uint8Array): zmq.Dealer => {
  const dealer = new zmq.Dealer({
    routingId: identity as never,
    linger: 0,
    sendTimeout: 0,
    zapDomain: "test",
  });
  dealer.connect(endpoint);
  return dealer;
};

test("messages of one length are told apart by their bytes, also where they are refused", async () => {
  const { router, messages, malformed } = await listen(2);
  const engines = [0, 1].map((rank) =>
    connectDealer({ address: router.endpoint, rank: wireRank(rank) })
  );
  const says = (headless: boolean) =>
    encodeEngineHandshake({ type: "hello", local: true, headless });
  const broken = says(false).fill(0xc1, 1, 2);
  assert.deepEqual([says(true).length, broken.length], [hello.length, hello.length]);
  for (const engine of engines) {
    for (const bytes of [hello, says(true), broken, hello]) void engine.send([bytes]);
  }
  await until(() => messages.length + malformed.length === 8, "all that they said");
  for (const rank of [0, 1]) {
    const heard = messages.filter(([of]) => of === rank).map(([, message]) => message.headless);
    assert.deepEqual(heard, [false, true, false]);
    assert.equal(malformed.filter(([of]) => of === rank).length, 1);
  }
  for (const engine of engines) engine.close();
  router.close();
});

test("HELLO, INIT, READY with three ranks in any order; a joining rank gets the wrapped INIT", async () => {
  const { router, messages } = await listen(3);
  const heard: Uint8Array[] = [];
  const engines = [2, 0, 1].map((rank) =>
    connectDealer({
      address: router.endpoint,
      rank: wireRank(rank),
      onMessage: ([frame]) => heard.push(frame!),
    })
  );
  for (const engine of engines) void engine.send([hello]);
  await until(() => heard.length === 3, "three INITs");
  for (const bytes of heard) assert.deepEqual(decodeInit(bytes), { ok: true, value: init });
  const ready = encodeEngineHandshake({
    type: "ready",
    local: true,
    headless: false,
    numGpuBlocks: 5,
  });
  for (const engine of engines) void engine.send([ready]);
  await until(() => messages.length === 6, "three READYs");
  assert.deepEqual(messages.slice(3).map(([rank]) => rank).sort(), [0, 1, 2]);
  assert.deepEqual(messages[5]![1], {
    type: "ready",
    local: true,
    headless: false,
    numGpuBlocks: 5,
  });

  const wrapped = { engineMetadata: init, numRedundantExperts: 8 };
  assert.deepEqual(await router.sendInit(wireRank(1), wrapped), { ok: true });
  await until(() => heard.length === 4, "a wrapped INIT");
  assert.deepEqual(decodeScaleUpInit(heard[3]!), { ok: true, value: wrapped });

  const nobody = await router.sendInit(wireRank(9), init);
  assert.ok(!nobody.ok && nobody.reason === "unreachable");
  for (const engine of engines) engine.close();
  router.close();
});

test("a known rank's bad message is its own; everything else is a stranger, and start-up goes on", async () => {
  const { router, messages, malformed, strangers, counted } = await listen(2);
  const known = peer(router.endpoint, Uint8Array.of(1, 0));
  const send = (dealer: zmq.Dealer, frames: Uint8Array[]) => dealer.send(frames);
  await send(known, [text("\xc1")]);
  await send(known, [new Uint8Array(0)]);
  await send(known, [encode([1, 2])]);
  await send(known, [encode({ status: "HELLO", local: "yes", headless: false })]);
  await until(() => malformed.length === 4, "four refusals");
  assert.deepEqual(malformed.map(([rank, refusal]) => `${rank} ${refusal.code}`), [
    "1 malformed",
    "1 malformed",
    "1 wrong-type",
    "1 wrong-type",
  ]);
  const strange = [
    Uint8Array.of(9, 0), // a rank that nobody awaits
    Uint8Array.of(1),
    new Uint8Array(20).fill(7),
    new Uint8Array(255).fill(7), // the longest that ZMTP allows
  ].map((identity) => peer(router.endpoint, identity));
  for (const dealer of strange) await send(dealer, [hello]);
  await send(known, [hello, hello]);
  await send(known, [hello, new Uint8Array(0), hello]);
  await send(known, [new Uint8Array(65_536)]);
  await until(() => malformed.length === 5 && strangers.length >= 3, "everything");
  const engine = connectDealer({ address: router.endpoint, rank: wireRank(0) });
  await engine.send([hello]);
  await until(() => messages.length === 1, "an honest HELLO");
  for (const dealer of [...strange, known]) dealer.close();
  engine.close();
  router.close(); // reports what is pending
  assert.deepEqual(["rank", "identity", "frames"].map(counted), [1, 3, 2]);
  assert.equal(
    strangers.find((s) => s.kind === "frames")?.sample,
    "3 frames (2, 31, 31 bytes) instead of two",
  );
  assert.equal(
    strangers.find((s) => s.kind === "rank")?.sample,
    "rank 9, which is not awaited here",
  );
});

test("HTTP, port scans and old protocols are counted, and an engine among them is served", async (t) => {
  const { router, messages, counted, strangers } = await listen(1);
  const fire = fireAt(Number(router.endpoint.split(":").pop()));
  if (waitsNatively) await until(() => counted("connection") > 0, "strangers");
  const engine = connectDealer({ address: router.endpoint, rank: wireRank(0) });
  await engine.send([hello]);
  await until(() => messages.length === 1, "an honest HELLO");
  const made = await fire.stop();
  engine.close();
  await new Promise((resolve) => setTimeout(resolve, 50));
  router.close();
  if (!waitsNatively) {
    return t.diagnostic("not counted on Deno, where a socket's events cannot be watched");
  }
  assert.ok(counted("connection") > 10, `${counted("connection")} of ${made} were counted`);
  assert.deepEqual([...new Set(strangers.map((s) => s.kind))], ["connection"]);
});

test("a flood is reported at most once an interval and kind, and nothing is lost from the count", async () => {
  const reports: Strangers[] = [];
  const counter = new StrangerCounter((report) => reports.push(report), 40);
  for (let i = 0; i < 10_000; i++) counter.count("rank", () => `rank ${i}`);
  counter.count("frames", () => "x".repeat(500));
  await until(() => reports.length === 3, "a second report");
  for (let i = 0; i < 5; i++) counter.count("rank", () => "later");
  counter.close();
  assert.deepEqual(reports.map((r) => [r.kind, r.count]), [
    ["rank", 1],
    ["frames", 1],
    ["rank", 9_999],
    ["rank", 5],
  ]);
  assert.equal(reports[2]!.sample, "rank 1");
  assert.equal(reports[1]!.sample.length, 200);
});

test("a rank that floods is heard in a burst and then counted; others are not affected", async () => {
  const limit = new RankLimit(3, 2);
  const heard = [0, 0, 0, 0, 400, 500, 501, 100_000, 100_000, 100_000, 100_000].map((at) =>
    limit.allows(7, at)
  );
  assert.deepEqual(heard, [true, true, true, false, false, true, false, true, true, true, false]);
  assert.equal(limit.allows(8, 0), true);

  const { router, messages, counted } = await listen(2);
  const flooding = connectDealer({ address: router.endpoint, rank: wireRank(1) });
  const honest = connectDealer({ address: router.endpoint, rank: wireRank(0) });
  for (let i = 0; i < 500; i++) void flooding.send([hello]);
  await until(() => counted("flood") > 0, "the flood");
  await honest.send([hello]);
  await until(() => messages.some(([rank]) => rank === 0), "the honest one");
  const heardOfIt = () => messages.filter(([rank]) => rank === 1).length;
  await until(() => heardOfIt() + counted("flood") === 500, "the rest of it, counted");
  flooding.close();
  honest.close();
  router.close();
  assert.ok(heardOfIt() >= 20 && heardOfIt() <= 25, `${heardOfIt()} of the flood`);
});
