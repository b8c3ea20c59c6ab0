import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { encodeIdentity, wireRank } from "../../../src/protocol/mod.ts";
import { AddressError, bindable, parseAddress } from "../../../src/drivers/zmq/address.ts";
import { IpcPathHeldError } from "../../../src/drivers/zmq/ipc-lock.ts";
import { type Frames, ReadinessLoop } from "../../../src/drivers/zmq/readiness.ts";
import {
  BindError,
  bindPull,
  bindRouter,
  bindXPublisher,
  connectDealer,
  connectPush,
  connectXSubscriber,
} from "../../../src/drivers/zmq/sockets.ts";
import { inDirectory, string, text } from "./support.ts";
import { until } from "../../until.ts";

test("a ROUTER and engines speak over tcp and ipc, with the rank's two bytes as identity", async () => {
  await inDirectory(async (directory) => {
    for (const address of ["tcp://127.0.0.1:0", `ipc://${directory}/h`]) {
      const got: Frames[] = [];
      const answers: string[] = [];
      const router = await bindRouter({ address, onMessage: (frames) => got.push(frames) });
      assert.match(router.endpoint, /^(tcp:\/\/127\.0\.0\.1:[1-9]\d+|ipc:\/\/.*\/h)$/);
      const engines = [0, 1, 10, 256, 65535].map((rank) =>
        connectDealer({
          address: router.endpoint,
          rank: wireRank(rank),
          onMessage: (frames) => answers.push(`${rank} ${string(frames[0])}`),
        })
      );
      for (const engine of engines) assert.deepEqual(await engine.send([text("hi")]), { ok: true });
      await until(() => got.length === 5, "five greetings");
      assert.deepEqual(
        got.map(([identity]) => [...identity!].join()).sort(),
        ["0,0", "0,1", "1,0", "10,0", "255,255"],
      );
      for (const [identity] of got) await router.send([identity!, text("yes")]);
      await until(() => answers.length === 5, "five answers");
      assert.deepEqual(answers.sort(), ["0 yes", "1 yes", "10 yes", "256 yes", "65535 yes"]);
      for (const engine of engines) engine.close();
      router.close();
      router.close();
    }
    assert.equal(existsSync(`${directory}/h`), false, "the ipc file is removed");
    assert.equal(existsSync(`${directory}/h.lock`), false, "and its lock");
  });
});

test("what cannot be sent is a value: nobody has the identity, the socket is closed", async () => {
  const router = await bindRouter({ address: "tcp://127.0.0.1:0" });
  const sent = await router.send([encodeIdentity(wireRank(3)), text("x")]);
  assert.ok(!sent.ok && sent.reason === "unreachable");
  router.close();
  const late = await router.send([encodeIdentity(wireRank(3)), text("x")]);
  assert.ok(!late.ok && late.reason === "closed");
});

test("a peer that does not read fills its own pipe and nobody else's", async () => {
  let greeted = 0;
  let heard = 0;
  const router = await bindRouter({
    address: "tcp://127.0.0.1:0",
    highWaterMark: 5,
    onMessage: () => greeted++,
  });
  // Its own high-water mark is small too, and libzmq reads into it until it is full.
  const deaf = connectDealer({ address: router.endpoint, rank: wireRank(1), highWaterMark: 5 });
  const good = connectDealer({
    address: router.endpoint,
    rank: wireRank(2),
    onMessage: () => heard++,
  });
  await deaf.send([text("hi")]);
  await good.send([text("hi")]);
  await until(() => greeted === 2, "both");
  const load = new Uint8Array(1 << 20);
  const reasons = new Set<string>();
  let sentAll = 0;
  for (let i = 0; i < 2_000 && !reasons.has("full"); i++) {
    const sent = await router.send([encodeIdentity(wireRank(1)), load]);
    if (sent.ok) sentAll++;
    else reasons.add(sent.reason);
  }
  assert.deepEqual([...reasons], ["full"]);
  assert.ok(sentAll >= 5);
  assert.deepEqual(await router.send([encodeIdentity(wireRank(2)), text("x")]), { ok: true });
  await until(() => heard === 1, "the good one");
  for (const socket of [deaf, good, router]) socket.close();
});

test("an engine that restarts takes its identity over", async () => {
  const got: string[] = [];
  const answers: string[] = [];
  const router = await bindRouter({
    address: "tcp://127.0.0.1:0",
    onMessage: ([, payload]) => got.push(string(payload)),
  });
  const life = (name: string) =>
    connectDealer({
      address: router.endpoint,
      rank: wireRank(7),
      onMessage: ([frame]) => answers.push(`${name} ${string(frame)}`),
    });
  const first = life("first");
  await first.send([text("hello 1")]);
  await until(() => got.length === 1, "the first");
  const second = life("second");
  await second.send([text("hello 2")]);
  await until(() => got.length === 2, "the second");
  await router.send([encodeIdentity(wireRank(7)), text("init")]);
  await until(() => answers.length === 1, "an answer");
  assert.deepEqual(answers, ["second init"]);
  for (const socket of [first, second, router]) socket.close();
});

test("PUSH to PULL keeps the order of one sender; XPUB reports every subscription and XSUB speaks upstream", async () => {
  const pulled: number[] = [];
  const pull = await bindPull({
    address: "tcp://127.0.0.1:0",
    onMessage: ([frame]) => pulled.push(frame![0]!),
  });
  const push = connectPush({ address: pull.endpoint });
  for (let i = 0; i < 200; i++) void push.send([Uint8Array.of(i)]);
  await until(() => pulled.length === 200, "200 messages");
  assert.deepEqual(pulled, Array.from({ length: 200 }, (_, i) => i));

  const upstream: string[] = [];
  let published = 0;
  const xpub = await bindXPublisher({
    address: "tcp://127.0.0.1:0",
    onMessage: ([frame]) => upstream.push([...frame!].join()),
  });
  const subscribers = [1, 2, 3].map(() =>
    connectXSubscriber({ address: xpub.endpoint, onMessage: () => published++ })
  );
  for (const subscriber of subscribers) await subscriber.send([Uint8Array.of(1)]);
  await until(() => upstream.length === 3, "three subscriptions");
  assert.deepEqual(upstream, ["1", "1", "1"]);
  await subscribers[0]!.send([Uint8Array.of(0x92, 1, 7)]);
  await until(() => upstream.length === 4, "an upstream message");
  assert.equal(upstream[3], "146,1,7");
  await xpub.send([text("READY")]);
  await until(() => published === 3, "three publishes");
  for (const socket of [push, pull, ...subscribers, xpub]) socket.close();
});

test("a port that is taken is an error that says so, and closing gives it back at once", async () => {
  const first = await bindRouter({ address: "tcp://127.0.0.1:0" });
  await assert.rejects(bindPull({ address: first.endpoint }), (error: unknown) => {
    assert.ok(error instanceof BindError);
    assert.equal(error.code, "address-in-use");
    return true;
  });
  // Many times: the library gives a port back in its own time, and no caller may notice.
  let last = first;
  for (let time = 0; time < 50; time++) {
    last.close();
    last = await (time % 2 === 0 ? bindPull : bindRouter)({ address: first.endpoint });
    assert.equal(last.endpoint, first.endpoint);
  }
  last.close();
  await assert.rejects(
    bindRouter({ address: "tcp://203.0.113.7:0" }),
    (error: unknown) => error instanceof BindError && error.code === "address-unavailable",
  );
});

test("an ipc path has one owner: a living one is refused, a dead one's is taken over", async () => {
  await inDirectory(async (directory) => {
    const address = `ipc://${directory}/bus`;
    const first = await bindRouter({ address });
    await assert.rejects(bindRouter({ address }), (error: unknown) => {
      assert.ok(error instanceof IpcPathHeldError);
      assert.match(error.message, /is in use: its holder is process \d+/);
      return true;
    });
    first.close();
    // What a killed process leaves: the socket file and a lock with a pid that nobody has.
    writeFileSync(`${directory}/bus`, "");
    writeFileSync(
      `${directory}/bus.lock`,
      JSON.stringify({ pid: 2 ** 22 + 5, startTicks: 1, bootId: null }),
    );
    let got = 0;
    const second = await bindRouter({ address, onMessage: () => got++ });
    const engine = connectDealer({ address, rank: wireRank(0) });
    await engine.send([text("x")]);
    await until(() => got === 1, "a message");
    engine.close();
    second.close();
    writeFileSync(`${directory}/bus.lock`, "not ours");
    await assert.rejects(bindRouter({ address }), /its holder is unknown .* remove .*bus\.lock/);
  });
});

test("addresses are checked before libzmq sees them", () => {
  assert.deepEqual(parseAddress("tcp://[::1]:*"), {
    transport: "tcp",
    host: "::1",
    port: 0,
    ipv6: true,
  });
  assert.equal(bindable(parseAddress("tcp://[fd00::1]:5555")), "tcp://[fd00::1]:5555");
  assert.equal(bindable(parseAddress("tcp://0.0.0.0:0")), "tcp://0.0.0.0:*");
  assert.equal(bindable(parseAddress("ipc:///tmp/x y")), "ipc:///tmp/x y");
  for (
    const wrong of ["tcp://::1:5", "tcp://host", "tcp://h:65536", "udp://h:1", "", "tcp://[g]:1"]
  ) {
    assert.throws(() => parseAddress(wrong), AddressError, wrong);
  }
  const path = (bytes: number) => `ipc:///${"a".repeat(bytes - 1)}`;
  assert.ok(parseAddress(path(107)));
  assert.throws(
    () => parseAddress(path(108)),
    /has 108 bytes, and a unix socket's path may have 107/,
  );
});

test("IPv6 works where the host has it", async (t) => {
  let got = 0;
  let router;
  try {
    router = await bindRouter({ address: "tcp://[::1]:0", onMessage: () => got++ });
  } catch (error) {
    if (!(error instanceof BindError)) throw error;
    return t.skip(`this host has no ::1 (${error.message})`);
  }
  assert.match(router.endpoint, /^tcp:\/\/\[::1\]:\d+$/);
  const engine = connectDealer({ address: router.endpoint, rank: wireRank(0) });
  await engine.send([text("x")]);
  await until(() => got === 1, "a message");
  engine.close();
  router.close();
});

test("the readiness loop serves many sockets in bursts and forgets closed ones", async () => {
  const loop = new ReadinessLoop();
  const order: string[] = [];
  const fake = (name: string, messages: number) => {
    let left = messages;
    return {
      closed: false,
      get readable() {
        return left > 0;
      },
      receive: () => {
        left--;
        return Promise.resolve([text(name)]);
      },
      more: (n: number) => void (left += n),
    };
  };
  const [busy, quiet] = [fake("busy", 200), fake("quiet", 1)];
  const note = ([frame]: Frames) => order.push(string(frame));
  loop.add(busy, note);
  const delivery = loop.add(quiet, note);
  try {
    await until(() => order.length === 201, "everything");
    assert.equal(order.indexOf("quiet"), 64, "64 of the busy one, then the other has its turn");
    await new Promise((resolve) => setTimeout(resolve, 30));
    quiet.more(1);
    await until(() => order.length === 202, "one after a sleep");
    quiet.more(1);
    delivery.stop();
  } finally {
    busy.closed = true;
    busy.more(1);
  }
  await until(() => loop.size === 0, "an empty loop");
  assert.equal(order.length, 202, "nothing is delivered after stop or close");
});
