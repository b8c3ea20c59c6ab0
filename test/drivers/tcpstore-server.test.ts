import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { TcpStoreServer } from "../../src/drivers/tcpstore/mod.ts";
import { recorded } from "../protocol/tcpstore-recorded.ts";
import { PING, RawClient, VALIDATE, watched } from "./tcpstore-raw.ts";
import { until } from "../until.ts";

/** What our server does otherwise than torch's libuv server, each as the specification recommends. */
const OTHERWISE: Readonly<Record<string, { reply: string; end: string }>> = {
  // A connection that starts wrong is closed at once; libuv's waits for more, or serves it.
  "raw: wrong magic, idle": { reply: "", end: "closed" },
  "raw: ping w/o validate (one packet)": { reply: "", end: "closed" },
  "raw: ping w/o validate twice": { reply: "", end: "closed" },
  "raw: http get first": { reply: "", end: "closed" },
  // VALIDATE may come in pieces; libuv's closes.
  "raw: validate split 1+4, then ping": { reply: "01020304", end: "open" },
  "raw: validate split 3+2, then ping": { reply: "01020304", end: "open" },
  // A second WAIT replaces the first; libuv's counts wrongly.
  "raw: wait A, wait B pending, set A, set B": {
    reply: "01020304" + "00" + "0200000000000000",
    end: "open",
  },
  // It ends with NUM_KEYS, and the recording had two more.
  "raw: pipelined 5 ops": {
    reply: "0500000000000000" + "00" + "0100000000000000" + "35" + "0100000000000000",
    end: "open",
  },
  // libuv's never wakes this one.
  "raw: wait [nonempty-queue, missing], set missing": { reply: "00", end: "open" },
};
/** They depend on keys that earlier cases of the recording left behind. */
const OF_THEIR_TIME = new Set(["raw: list_keys"]);

test("every raw byte sequence recorded against torch's libuv server has the same answer, or a documented one", async (t) => {
  let cases = 0;
  for (const row of recorded) {
    if (!row.libuv || row.connections === undefined || OF_THEIR_TIME.has(row.op)) continue;
    const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
    t.after(() => server.close());
    const clients: RawClient[] = [];
    t.after(() => clients.forEach((client) => client.close()));
    for (const { chunks } of row.connections) {
      const client = await RawClient.open(server.port);
      clients.push(client);
      for (const chunk of chunks) {
        if (client.ended !== "open") break;
        client.write(chunk);
        await sleep(2); // Lets the pieces arrive as pieces.
      }
    }
    for (const [i, { reply, end }] of row.connections.entries()) {
      const client = clients[i]!;
      const expected = OTHERWISE[row.op] ??
        { reply, end: end === "open" || end === "not read" ? "open" : "closed" };
      if (expected.end === "closed") await client.closed();
      else if (end !== "not read") await client.said(expected.reply);
      const seen = client.ended === "open" ? "open" : "closed";
      assert.deepEqual(
        [client.hex, seen],
        [expected.reply, expected.end],
        `${row.op}, connection ${i}`,
      );
    }
    for (const client of clients) client.close();
    await server.close();
    cases++;
  }
  assert.equal(cases, 40);
});

test("it listens on IPv6 and IPv4 alike, on a port of its own choice", async (t) => {
  const server = await TcpStoreServer.listen();
  t.after(() => server.close());
  const hosts = ["127.0.0.1"];
  const six = Object.values(networkInterfaces()).flat().some((each) => each?.address === "::1");
  if (six) hosts.push("::1");
  for (const host of hosts) {
    const client = await RawClient.open(server.port, host);
    client.write(VALIDATE + PING);
    await client.said("01020304");
    client.close();
  }
  await server.close();
});

test("a port that is taken is the operating system's error, and no server is left behind", async (t) => {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  await assert.rejects(
    TcpStoreServer.listen({ host: "127.0.0.1", port: server.port }),
    (error: Error & { code?: string }) => error.code === "EADDRINUSE",
  );
  await server.close();
});

test("closing the server ends every connection without a byte for those who wait", async (t) => {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  const waiting = await RawClient.validated(server.port);
  waiting.write("06" + "0100000000000000" + "0200000000000000" + "2f6b");
  const idle = await RawClient.validated(server.port);
  await until(() => server.stats.waiting === 1);
  await server.close();
  await waiting.closed();
  await idle.closed();
  assert.equal(waiting.hex, "");
  assert.equal(server.stats.connections, 0);
  assert.equal(server.stats.waiting, 0);
});

test("who leaves in the middle of a request is counted, and nothing of it is applied", async (t) => {
  const { server, strangers } = await watched(t);
  const client = await RawClient.validated(server.port);
  client.write("01" + "0200000000000000" + "2f6b" + "0500000000000000" + "6869");
  await until(() => server.stats.bufferedBytes > 0);
  assert.equal(server.stats.bufferedBytes, 1 + 8 + 2 + 8 + 2);
  client.close();
  await until(() => server.stats.closed["cut-short"] === 1);
  assert.equal(strangers[0]!.code, "cut-short");
  assert.match(strangers[0]!.message, /in the middle of a request, after 21 bytes of it/);
  assert.match(strangers[0]!.remote, /^127\.0\.0\.1:\d+$/);
  assert.equal(server.stats.keys, 0);
  assert.equal(server.stats.bufferedBytes, 0);
  await server.close();
});

test("who leaves while waiting is forgotten", async (t) => {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  const client = await RawClient.validated(server.port);
  client.write("06" + "0100000000000000" + "0200000000000000" + "2f6b");
  await until(() => server.stats.waiting === 1);
  assert.equal(server.stats.storeBytes, 256 + 2);
  client.close();
  await until(() => server.stats.waiting === 0);
  assert.equal(server.stats.storeBytes, 0);
  assert.deepEqual(server.stats.closed, {}, "it did nothing wrong");
  await server.close();
});

test("3,000 clients wait for one key, and one SET wakes every one of them, once", async (t) => {
  const { server, strangers } = await watched(t);
  const clients: RawClient[] = [];
  t.after(() => clients.forEach((client) => client.close()));
  while (clients.length < 3_000) {
    const opening = Array.from({ length: 100 }, () => RawClient.validated(server.port));
    clients.push(...await Promise.all(opening));
  }
  for (const client of clients) {
    client.write("06" + "0100000000000000" + "0200000000000000" + "2f6b");
  }
  await until(() => server.stats.waiting === 3_000);
  clients[0]!.write("01" + "0200000000000000" + "2f6b" + "0000000000000000");
  await Promise.all(clients.map((client) => client.said("00")));
  // Each still has its own turn: a PING is answered by its nonce, and nothing else came.
  for (const client of clients) client.write(PING);
  await Promise.all(clients.map((client) => client.said("00" + "01020304")));
  assert.equal(server.stats.waiting, 0);
  assert.equal(server.stats.storeBytes, 64 + 2);
  assert.deepEqual(strangers, []);
});
