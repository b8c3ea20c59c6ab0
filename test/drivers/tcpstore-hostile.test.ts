import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { TcpStoreClient, type TcpStoreServer } from "../../src/drivers/tcpstore/mod.ts";
import { encodeRequest, hexOf, type StoreRequest } from "../../src/protocol/tcpstore/mod.ts";
import { PING, RawClient, VALIDATE, watched } from "./tcpstore-raw.ts";
import { until } from "../until.ts";

const MIB = 1024 * 1024;
const hexOfRequest = (request: StoreRequest): string => hexOf(encodeRequest(request));

/** An honest client, which must be served all the while. */
async function honest(t: TestContext, server: TcpStoreServer): Promise<TcpStoreClient> {
  const client = await TcpStoreClient.connect({
    host: "127.0.0.1",
    port: server.port,
    timeoutMs: 10_000,
  });
  t.after(() => client.close());
  return client;
}

const ROUND = 20;

async function perCall(client: TcpStoreClient): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < ROUND; i++) await client.add("served", 1);
  return performance.now() - start;
}

const median = (all: number[]): number => all.sort((a, b) => a - b)[all.length >> 1]!;

/** One connection says this and is closed; everybody else is served. Answers why it was closed. */
async function refusal(t: TestContext, ...writes: string[]): Promise<string> {
  const { server, strangers } = await watched(t);
  const other = await honest(t, server);
  const client = await RawClient.open(server.port);
  t.after(() => client.close());
  for (const hex of writes) client.write(hex);
  await client.closed();
  assert.equal(client.hex, "");
  assert.equal(await other.add("still", 1), 1n);
  assert.equal(strangers.length, 1);
  const { code, message } = strangers[0]!;
  assert.deepEqual(server.stats.closed, { [code]: 1 });
  return `${code}: ${message}`;
}

test("wrong magic is closed and counted", async (t) => {
  assert.match(await refusal(t, "00deadbeef"), /^wrong-magic: VALIDATE with magic 0xefbeadde/);
});

test("HTTP is closed and counted", async (t) => {
  const request = hexOf("GET /metrics HTTP/1.1\r\nHost: store\r\n\r\n");
  assert.match(await refusal(t, request), /^http: looks like HTTP: this port is a TCPStore/);
});

test("a TLS hello is closed and counted", async (t) => {
  assert.match(await refusal(t, "16030100f1010000ed0303"), /^tls: a TLS hello/);
});

test("absurd lengths are closed and counted before a byte of them is awaited", async (t) => {
  assert.match(await refusal(t, VALIDATE, "03ffffffffffffffff"), /^key-too-long: .* at most 8192/);
  assert.match(
    await refusal(t, VALIDATE, "0101000000000000006b0000000000000040"),
    /^value-too-long: .* at most 8388608/,
  );
  assert.match(
    await refusal(t, VALIDATE, "06ffffffffffffff7f"),
    /^too-many-keys: .* at most 131072/,
  );
});

test("an unknown operation, a second VALIDATE and ADD to a word are closed and counted", async (t) => {
  assert.match(await refusal(t, VALIDATE, "13"), /^unknown-opcode: opcode 0x13/);
  assert.match(await refusal(t, VALIDATE, VALIDATE), /^validate-repeated/);
  const set = hexOfRequest({ op: "set", key: "/k", value: "word" });
  const add = hexOfRequest({ op: "add", key: "/k", delta: "1" });
  assert.match(await refusal(t, VALIDATE + set + add), /^not-an-integer: key "\/k" holds "word"/);
});

test("slow-loris bytes cost what they are, hold nobody up, and end at the deadline", async (t) => {
  const { server } = await watched(t, { requestMs: 700, handshakeMs: 700 });
  const other = await honest(t, server);
  const request = VALIDATE + hexOfRequest({ op: "set", key: "/slow", value: "x".repeat(4096) });
  const slow: RawClient[] = [];
  for (let i = 0; i < 200; i++) slow.push(await RawClient.open(server.port));
  t.after(() => slow.forEach((client) => client.close()));
  let served = 0;
  for (let at = 0; slow.some((client) => client.ended === "open"); at += 2) {
    for (const client of slow) {
      if (client.ended === "open") client.write(request.slice(at, at + 2));
    }
    await other.add("served", 1);
    served++;
    await sleep(10);
    assert(server.stats.bufferedBytes <= 200 * (5 + at), "it holds more than they sent");
  }
  assert.equal(Number(await other.add("served", 0)), served);
  const { closed } = server.stats;
  assert.equal((closed["handshake-deadline"] ?? 0) + (closed["request-deadline"] ?? 0), 200);
  assert.equal(await other.check(["slow"]), false);
  await until(() => server.stats.bufferedBytes === 0);
});

test("a request that comes slowly but in time is served", async (t) => {
  const { server } = await watched(t);
  const other = await honest(t, server);
  const slow = await RawClient.open(server.port);
  t.after(() => slow.close());
  const hex = VALIDATE + hexOfRequest({ op: "set", key: "/slow", value: "v" }) + PING;
  for (let at = 0; at < hex.length; at += 2) {
    slow.write(hex.slice(at, at + 2));
    await sleep(1);
  }
  await slow.said("01020304");
  assert.equal(await other.check(["slow"]), true);
  assert.deepEqual(server.stats.closed, {});
});

test("10,000 connects that say nothing: everybody else is served, memory is bounded, each is counted", async (t) => {
  const { server } = await watched(t, { handshakeMs: 6_000 });
  const other = await honest(t, server);
  const SILENT = 10_000;
  // They come from another process, so that one's limit of open files does not have to hold both ends.
  const before = process.memoryUsage().rss;
  const crowd = spawn(process.execPath, [
    ...("Deno" in globalThis ? ["eval"] : ["-e"]),
    `${
      "Deno" in globalThis
        ? 'import net from "node:net"; import process from "node:process";'
        : 'const net = require("node:net");'
    }
    let left = ${SILENT}, open = 0;
    const more = () => { if (left-- > 0) net.connect(${server.port}, "127.0.0.1").on("connect", () => {
      if (++open === ${SILENT}) console.log("all"); more(); }).on("error", () => {}); };
    for (let i = 0; i < 100; i++) more();
    process.stdin.on("end", () => process.exit(0)).resume();`,
  ], { stdio: ["pipe", "inherit", "inherit"] });
  t.after(() => process.kill(crowd.pid!, "SIGKILL"));
  let served = 0;
  let most = 0;
  for (; server.stats.accepted < 1 + SILENT; served++) {
    await other.add("served", 1);
    most = Math.max(most, server.stats.connections);
  }
  // At full speed: as fast as a server beside it that has no crowd. Rounds alternate, so that a slow moment hits both.
  const quiet = await honest(t, (await watched(t)).server);
  const [crowded, alone]: [number[], number[]] = [[], []];
  for (let round = 0; round < 30; round++) {
    crowded.push(await perCall(other));
    alone.push(await perCall(quiet));
    served += ROUND;
  }
  const ratio = median(crowded) / median(alone);
  t.diagnostic(`an ADD takes ${ratio.toFixed(2)} times as long with them as without`);
  assert(ratio < 2, `an ADD takes ${ratio.toFixed(2)} times as long`);
  assert.equal(Number(await other.add("served", 0)), served);
  assert.equal(server.stats.bufferedBytes, 0);
  const each = (process.memoryUsage().rss - before) / SILENT;
  assert(each < 40_000, `${Math.round(each)} bytes for each silent connection`);
  t.diagnostic(`${Math.round(each)} bytes for each silent connection, at most ${most} at a time`);
  await until(() => server.stats.closed["handshake-deadline"] === SILENT);
  assert.equal(server.stats.connections, 1);
  assert.equal(Number(await other.add("served", 0)), served);
});

test("a client that never reads is no longer served, holds little, and ends at the deadline", async (t) => {
  const { server } = await watched(t, { drainMs: 1_500 });
  const other = await honest(t, server);
  await other.set("big", "x".repeat(4 * MIB));
  const deaf = await RawClient.validated(server.port);
  t.after(() => deaf.close());
  deaf.socket.pause();
  // 400 requests for 4 MiB each, which would be 1.6 GB of replies.
  deaf.write(hexOfRequest({ op: "get", key: "/big" }).repeat(400));
  await until(() => server.stats.bufferedBytes > 0);
  const { requests } = server.stats;
  for (let i = 0; i < 500; i++) await other.add("served", 1);
  assert.equal(server.stats.requests, requests + 500, "none but the other's was served");
  assert(server.stats.bufferedBytes < 9 * MIB, `${server.stats.bufferedBytes} bytes held for it`);
  await until(() => server.stats.closed["drain-deadline"] === 1);
  assert.equal(server.stats.bufferedBytes, 0);
});

test("a client that reads late gets every reply", async (t) => {
  const { server } = await watched(t);
  const other = await honest(t, server);
  await other.set("big", "x".repeat(MIB));
  const late = await RawClient.validated(server.port);
  t.after(() => late.close());
  late.socket.pause();
  late.write(hexOfRequest({ op: "get", key: "/big" }).repeat(30) + PING);
  await until(() => server.stats.bufferedBytes > MIB);
  late.socket.resume();
  await until(() => late.hex.length === 2 * (30 * (8 + MIB) + 4));
  assert.equal(late.hex.slice(-8), "01020304");
  await until(() => server.stats.bufferedBytes === 0);
});

test("a reply beyond a connection's bound closes it, and only it", async (t) => {
  const { server } = await watched(t, { maxConnectionBytes: 3 * MIB });
  const other = await honest(t, server);
  for (const key of ["a", "b"]) await other.set(key, "x".repeat(2 * MIB), { confirm: true });
  const greedy = await RawClient.validated(server.port);
  t.after(() => greedy.close());
  greedy.write(hexOfRequest({ op: "multiGet", keys: ["/a", "/b"] }));
  await greedy.closed();
  assert.deepEqual(server.stats.closed, { "too-much-outstanding": 1 });
  assert.equal((await other.get("a")).length, 2 * MIB);
});

test("all connections together are bounded: those that hold most go first", async (t) => {
  const { server } = await watched(t, { maxBufferedBytes: 4 * MIB });
  const other = await honest(t, server);
  const half = hexOfRequest({ op: "set", key: "/k", value: "x".repeat(2 * MIB) }).slice(0, 2 * MIB);
  const hoarders: RawClient[] = [];
  t.after(() => hoarders.forEach((client) => client.close()));
  for (let i = 0; i < 8; i++) {
    const client = await RawClient.validated(server.port);
    hoarders.push(client);
    client.write(half); // 1 MiB of a request of 2 MiB.
    await until(() => client.ended !== "open" || server.stats.bufferedBytes % MIB === 0);
  }
  await until(() => server.stats.closed["too-much-outstanding"] === 4);
  assert(server.stats.bufferedBytes <= 4 * MIB);
  assert.equal(await other.add("still", 1), 1n);
});

test("a full store refuses what would make it larger, and serves the rest", async (t) => {
  const { server } = await watched(t, { maxStoreBytes: MIB });
  const other = await honest(t, server);
  await other.set("k", "x".repeat(MIB / 2), { confirm: true });
  const greedy = await honest(t, server);
  await assert.rejects(
    greedy.set("more", "x".repeat(MIB / 2), { confirm: true }),
    { name: "TcpStoreError", code: "closed" },
  );
  assert.deepEqual(server.stats.closed, { "store-full": 1 });
  assert.equal((await other.get("k")).length, MIB / 2);
  assert.equal(await other.deleteKey("k"), true);
  assert.equal(server.stats.storeBytes, 0);
});

test("more connections than allowed are closed and counted, and the rest are served", async (t) => {
  const { server } = await watched(t, { maxConnections: 3 });
  const first = await RawClient.validated(server.port);
  const second = await RawClient.validated(server.port);
  const third = await RawClient.validated(server.port);
  const fourth = await RawClient.open(server.port);
  t.after(() => [first, second, third, fourth].forEach((client) => client.close()));
  await fourth.closed();
  assert.deepEqual(server.stats.closed, { "too-many-connections": 1 });
  third.close();
  await until(() => server.stats.connections === 2);
  const fifth = await RawClient.validated(server.port);
  fifth.close();
});

test("a stranger's every try is counted, and told", async (t) => {
  const { server, strangers } = await watched(t);
  for (let i = 0; i < 50; i++) {
    const client = await RawClient.open(server.port);
    client.write(i % 2 === 0 ? "16030100" : "47455420");
    await client.closed();
  }
  assert.deepEqual(server.stats.closed, { tls: 25, http: 25 });
  assert.equal(strangers.length, 50);
});
