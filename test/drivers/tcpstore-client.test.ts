import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import process from "node:process";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  PrefixStore,
  type Store,
  TcpStoreClient,
  type TcpStoreClientOptions,
  type TcpStoreError,
  TcpStoreServer,
} from "../../src/drivers/tcpstore/mod.ts";
import { fromHex, hexOf } from "../../src/protocol/tcpstore/mod.ts";
import { type Recorded, recorded, said } from "../protocol/tcpstore-recorded.ts";
import { afterHandshake, RawClient, ScriptedServer } from "./tcpstore-raw.ts";
import { until } from "../until.ts";

async function pair(
  t: TestContext,
  options: Partial<TcpStoreClientOptions> = {},
): Promise<{ server: TcpStoreServer; store: TcpStoreClient; other: TcpStoreClient }> {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  const where = { host: "127.0.0.1", port: server.port, timeoutMs: 10_000, ...options };
  const store = await TcpStoreClient.connect(where);
  const other = await TcpStoreClient.connect(where);
  t.after(() => [store, other].forEach((each) => each.close()));
  return { server, store, other };
}

/** A client of a server that answers the handshake, and then does what the test says. */
async function scripted(
  t: TestContext,
  say: (socket: Socket, bytes: Buffer, everything: Buffer) => void,
  options: Partial<TcpStoreClientOptions> = {},
): Promise<TcpStoreClient> {
  const server = await ScriptedServer.listen((socket) =>
    afterHandshake(socket, (bytes, everything) => say(socket, bytes, everything))
  );
  t.after(() => server.close());
  const store = await TcpStoreClient.connect({ host: "127.0.0.1", port: server.port, ...options });
  t.after(() => store.close());
  return store;
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
const failure = (code: string, message?: RegExp) => (error: unknown): true => {
  const { name, code: actual, message: said } = error as TcpStoreError;
  assert.deepEqual([name, actual], ["TcpStoreError", code], said);
  if (message !== undefined) assert.match(said, message);
  return true;
};

test("every operation, against our server", async (t) => {
  const { store, other } = await pair(t);
  await store.set("k", "value");
  assert.equal(text(await store.get("k")), "value");
  assert.equal(await store.peek("none"), undefined);
  assert.equal(text((await store.peek("k"))!), "value");
  assert.equal(text(await store.compareSet("k", "value", "new")), "new");
  assert.equal(text(await store.compareSet("k", "value", "newer")), "new");
  assert.equal(await store.add("n", 5), 5n);
  assert.equal(await store.add("n", -58n), -53n);
  assert.equal(await store.check(["k", "n"]), true);
  assert.equal(await store.check(["k", "none"]), false);
  await store.wait(["k", "n"]);
  await store.append("a", "one");
  await store.append("a", Uint8Array.of(0, 255), { confirm: true });
  assert.deepEqual([...await store.get("a")], [...Buffer.from("one"), 0, 255]);
  await store.multiSet([["m1", "1"], ["m2", ""]]);
  assert.deepEqual((await store.multiGet(["m2", "m1"])).map(text), ["", "1"]);
  assert.equal(await store.numKeys(), 5);
  assert.deepEqual((await store.listKeys()).sort(), ["a", "k", "m1", "m2", "n"]);
  assert.equal(await store.deleteKey("k"), true);
  assert.equal(await store.deleteKey("k"), false);
  await store.queuePush("q", "first");
  await store.queuePush("q", "second");
  assert.equal(await store.queueLen("q"), 2);
  assert.equal(text(await store.queuePop("q")), "first");
  assert.equal(text(await store.queuePop("q", { block: false })), "second");
  await assert.rejects(
    store.queuePop("q", { block: false }),
    failure("queue-empty", /"q" is empty/),
  );
  await store.ping();
  await Promise.all([store.barrier("b", 2), other.barrier("b", 2)]);
  assert.equal(await store.joinWorkers(), 1);
  const all = store.awaitWorkers(2);
  assert.equal(await other.joinWorkers(), 2);
  await all;
  assert.equal(text(await other.get("b")), "2");
});

test("keys are text of any script, values any bytes", async (t) => {
  const { store } = await pair(t);
  const every = Uint8Array.from({ length: 256 }, (_, i) => i);
  for (const key of ["", "/", "a//b/", "ключ", "🔑", "\0"]) {
    await store.set(key, every);
    assert.deepEqual([...await store.get(key)], [...every]);
  }
  assert.deepEqual((await store.listKeys()).sort(), ["", "/", "a//b/", "ключ", "🔑", "\0"].sort());
});

test("a wait wakes when another client sets the last key", async (t) => {
  const { server, store, other } = await pair(t);
  const woken = store.wait(["a", "b"]);
  const value = other.get("c");
  await until(() => server.stats.waiting === 2);
  const third = await store.clone();
  t.after(() => third.close());
  await third.multiSet([["a", "1"], ["b", "2"], ["c", "3"]]);
  await woken;
  assert.equal(text(await value), "3");
});

test("a wait that is not satisfied ends at its deadline, and the connection goes on", async (t) => {
  const { server, store } = await pair(t);
  await assert.rejects(store.wait(["never", "also"], { timeoutMs: 30 }), (error: TcpStoreError) => {
    failure("wait-timeout", /^wait timeout after \d+ ms, keys: "never", "also"$/)(error);
    assert.deepEqual(error.keys, ["never", "also"]);
    assert.equal(error.sent, true);
    assert(error.waitedMs! >= 29);
    assert.equal(error.server, `127.0.0.1:${server.port}`);
    return true;
  });
  assert.equal(server.stats.waiting, 0, "the server was told");
  // One after another: together they would stand behind each other.
  await assert.rejects(store.get("never", { timeoutMs: 0 }), failure("wait-timeout"));
  await assert.rejects(store.barrier("b", 2, { timeoutMs: 10 }), failure("wait-timeout"));
  await assert.rejects(store.multiGet(["never"], { timeoutMs: 5 }), failure("wait-timeout"));
  await assert.rejects(store.queuePop("never", { timeoutMs: 5 }), failure("wait-timeout"));
  assert.equal(await store.add("n", 1), 1n);
  assert.equal(server.stats.connections, 2);
});

test("a wait of no time that is satisfied already is no failure", async (t) => {
  const { store } = await pair(t);
  await store.set("k", "v");
  for (let i = 0; i < 50; i++) await store.wait(["k"], { timeoutMs: 0 });
});

test("what stands behind a wait is not sent, and says so at its deadline", async (t) => {
  const { server, store } = await pair(t);
  const waiting = store.wait(["k"]);
  await until(() => server.stats.waiting === 1);
  const { requests } = server.stats;
  await assert.rejects(store.add("n", 1, { timeoutMs: 20 }), (error: TcpStoreError) => {
    failure("deadline", /add was not sent within \d+ ms: it stood behind a wait/)(error);
    assert.equal(error.sent, false);
    return true;
  });
  const later = store.add("n", 10);
  assert.equal(server.stats.requests, requests);
  const other = await store.clone();
  t.after(() => other.close());
  await other.set("k", "v");
  await waiting;
  assert.equal(await later, 10n, "the one that gave up was never sent");
});

test("a signal ends a wait at once, cancels it at the server, and leaves the connection usable", async (t) => {
  const { server, store } = await pair(t);
  const stop = new AbortController();
  const waiting = store.wait(["k"], { signal: stop.signal });
  const behind = store.add("n", 1);
  await until(() => server.stats.waiting === 1);
  stop.abort(new Error("no longer wanted"));
  await assert.rejects(waiting, (error: TcpStoreError) => {
    failure("aborted", /^wait aborted$/)(error);
    assert.equal((error.cause as Error).message, "no longer wanted");
    return true;
  });
  assert.equal(await behind, 1n);
  assert.equal(server.stats.waiting, 0);
  await assert.rejects(store.add("n", 1, { signal: stop.signal }), failure("aborted"));
  assert.equal(await store.add("n", 1), 2n, "an aborted call that had not left is never sent");
});

test("one signal ends many calls, and warns of no leak", async (t) => {
  const { store, server } = await pair(t);
  const warnings: string[] = [];
  const note = (warning: Error): unknown => warnings.push(warning.message);
  process.on("warning", note);
  t.after(() => process.removeListener("warning", note));
  const stop = new AbortController();
  const { signal } = stop;
  const waiting = store.wait(["k"], { signal });
  await until(() => server.stats.waiting === 1);
  const behind = Array.from({ length: 100 }, () => store.add("n", 1, { signal }));
  const ended = Promise.allSettled([waiting, ...behind]);
  stop.abort();
  for (const each of await ended) {
    assert(each.status === "rejected" && failure("aborted")(each.reason));
  }
  assert.equal(await store.add("n", 0), 0n);
  await sleep(5); // Warnings are told in a later turn.
  assert.deepEqual(warnings, []);
});

test("a wake that crosses the cancel is a wake, and both bytes are read", async (t) => {
  // The server sends its 00 only when it has seen the 0c, and then the 01, in pieces.
  const store = await scripted(t, (socket, bytes) => {
    if (bytes.at(-1) !== 0x0c) return;
    socket.write("\x00");
    setTimeout(() => {
      socket.write("\x01");
      socket.once("data", () => socket.write(Buffer.from("0700000000000000", "hex")));
    }, 20);
  });
  await store.wait(["k"], { timeoutMs: 20 });
  assert.equal(await store.numKeys(), 7);
});

test("a get whose wake crosses the cancel has timed out, and the next call is in step", async (t) => {
  const store = await scripted(t, (socket, bytes) => {
    if (bytes.at(-1) === 0x0c) socket.write("\x00\x01");
    if (bytes.at(-1) === 0x07) socket.write(Buffer.from("0300000000000000", "hex"));
  });
  await assert.rejects(store.get("k", { timeoutMs: 20 }), failure("wait-timeout"));
  assert.equal(await store.numKeys(), 3);
});

test("every reply has a deadline, also where torch's own client waits for ever", async (t) => {
  const calls: [string, (store: TcpStoreClient) => Promise<unknown>][] = [
    ["add", (s) => s.add("k", 1, { timeoutMs: 30 })],
    ["check", (s) => s.check(["k"], { timeoutMs: 30 })],
    ["compareSet", (s) => s.compareSet("k", "", "v", { timeoutMs: 30 })],
    ["deleteKey", (s) => s.deleteKey("k", { timeoutMs: 30 })],
    ["numKeys", (s) => s.numKeys({ timeoutMs: 30 })],
    ["listKeys", (s) => s.listKeys({ timeoutMs: 30 })],
    ["queueLen", (s) => s.queueLen("k", { timeoutMs: 30 })],
    ["queuePop", (s) => s.queuePop("k", { timeoutMs: 30, block: false })],
    ["ping", (s) => s.ping({ timeoutMs: 30 })],
    ["peek", (s) => s.peek("k", { timeoutMs: 30 })],
    ["set", (s) => s.set("k", "v", { timeoutMs: 30, confirm: true })],
    ["append", (s) => s.append("k", "v", { timeoutMs: 30, confirm: true })],
    ["multiSet", (s) => s.multiSet([["k", "v"]], { timeoutMs: 30, confirm: true })],
    ["queuePush", (s) => s.queuePush("k", "v", { timeoutMs: 30, confirm: true })],
  ];
  const silent = await scripted(t, () => {});
  for (const [name, call] of calls) {
    await assert.rejects(call(silent), (error: TcpStoreError) => {
      failure("deadline", /was not answered within \d+ ms, (no )?keys/)(error);
      assert.equal(error.sent, true, name);
      return true;
    }, name);
  }
  assert.equal(silent.failure, undefined, "it may yet answer");
});

test("a CANCEL_WAIT without an answer ends the connection, and the wait with it", async (t) => {
  const store = await scripted(t, () => {}, { cancelMs: 30 });
  await assert.rejects(
    store.wait(["k"], { timeoutMs: 20 }),
    failure("deadline", /CANCEL_WAIT was not answered within 30 ms/),
  );
  await assert.rejects(store.ping(), failure("deadline"));
});

test("a late reply finds its own call gone, and is not taken for another's", async (t) => {
  let asked = 0;
  const store = await scripted(t, (socket) => {
    // The first reply comes with the second.
    if (++asked === 2) socket.write(Buffer.from("0100000000000000" + "0200000000000000", "hex"));
  });
  await assert.rejects(store.add("n", 1, { timeoutMs: 20 }), failure("deadline"));
  assert.equal(await store.add("n", 1), 2n);
});

test("a lost connection fails everything under way, and is never opened again", async (t) => {
  const { server, store, other } = await pair(t);
  const reasons: string[] = [];
  store.onClosed((reason) => reasons.push(reason.code));
  const waiting = store.wait(["k"]);
  const behind = store.add("n", 1);
  const got = assert.rejects(waiting, failure("closed", /^wait: TCPStore .*: the server closed/));
  const added = assert.rejects(behind, (error: TcpStoreError) => {
    failure("closed")(error);
    assert.equal(error.sent, false);
    return true;
  });
  await until(() => server.stats.waiting === 1);
  const { port } = server;
  await server.close();
  await got;
  await added;
  const again = await TcpStoreServer.listen({ host: "127.0.0.1", port });
  t.after(() => again.close());
  await assert.rejects(store.set("k", "v"), failure("closed"));
  await assert.rejects(other.get("k"), failure("closed"));
  await sleep(50);
  assert.equal(again.stats.accepted, 0);
  assert.deepEqual(reasons, ["closed"]);
  assert.equal(store.failure!.code, "closed");
});

test("close fails what is under way, and a second close does nothing", async (t) => {
  const { store } = await pair(t);
  const waiting = assert.rejects(store.wait(["k"]), failure("closed", /closed by this side/));
  store.close();
  store.close();
  await waiting;
  await assert.rejects(store.set("k", "v"), failure("closed"));
});

test("a server that breaks the protocol is left, with what it said", async (t) => {
  const answers: [string, (s: TcpStoreClient) => Promise<unknown>, RegExp][] = [
    ["02", (s) => s.check(["k"]), /0x02 where 00 or 01 is due/],
    ["01", (s) => s.wait(["k"]), /wait was answered with 01, expected 00/],
    ["ffffffffffffffff", (s) => s.listKeys(), /a count of -1/],
    ["ffffffffffffff7f", (s) => s.peek("k").then(() => s.peek("k")), /0xff where 00 or 01 is due/],
    ["0000000000000000" + "00", (s) => s.numKeys(), /1 bytes that nothing asked for/],
  ];
  for (const [hex, call, message] of answers) {
    const store = await scripted(t, (socket) => socket.write(Buffer.from(hex, "hex")));
    const reason = new Promise<TcpStoreError>((resolve) => store.onClosed(resolve));
    await call(store).catch(failure("bad-reply", message));
    assert(failure("bad-reply", message)(await reason));
  }
});

test("a reply's length is checked before its bytes are awaited", async (t) => {
  const store = await scripted(t, (socket, bytes) => {
    socket.write(bytes[0] === 5 ? "\x00" : Buffer.from("ffffffffffffff7f", "hex"));
  });
  await assert.rejects(
    store.peek("k"),
    failure("bad-reply", /a value of \d+ bytes, at most 268435456/),
  );
});

test("what the server would refuse is refused before anything is sent", async (t) => {
  const { server, store } = await pair(t);
  await store.ping();
  const { requests } = server.stats;
  const refused: [() => Promise<unknown>, RegExp][] = [
    [() => store.set("k".repeat(8192), "v"), /a key of 8193 bytes on the wire, at most 8192/],
    [() => store.set("k", new Uint8Array(8 * 1024 * 1024 + 1)), /a value of 8388609 bytes/],
    [() => store.check(Array.from({ length: 131_073 }, () => "")), /131073 keys in one request/],
    [() => store.add("n", 1.5), /a delta of 1.5: not an exact integer/],
    [() => store.add("n", 2n ** 63n), /9223372036854775808: more than 64 bits/],
    [() => store.barrier("b", Number.NaN), /a world size of NaN/],
  ];
  for (const [call, message] of refused) {
    await assert.rejects(async () => await call(), failure("refused", message));
  }
  await store.set("k".repeat(8191), new Uint8Array(8 * 1024 * 1024), { confirm: true });
  assert.equal(server.stats.requests, requests + 2);
});

test("calls of one turn leave in one write, in order, and overlap", async (t) => {
  const writes: number[] = [];
  const store = await scripted(t, (socket, bytes) => {
    writes.push(bytes.length);
    for (let at = 0; at < bytes.length; at += 1 + 8 + 2 + 8) socket.write(Buffer.alloc(8, 0));
  });
  const sums = await Promise.all(Array.from({ length: 100 }, () => store.add("n", 1)));
  assert.equal(sums.length, 100);
  assert.deepEqual(writes, [100 * 19]);
});

test("10,000 overlapping calls are all answered, each with its own reply", async (t) => {
  const { store } = await pair(t);
  const sums = await Promise.all(Array.from({ length: 10_000 }, () => store.add("n", 1)));
  assert.deepEqual(sums.map(Number), Array.from({ length: 10_000 }, (_, i) => i + 1));
});

test("nobody listens: a failure at once, or after trying until the deadline", async (t) => {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  const { port } = server;
  await server.close();
  const where = { host: "127.0.0.1", port };
  await assert.rejects(
    TcpStoreClient.connect({ ...where, retry: false }),
    failure(
      "connect-failed",
      /no TCPStore at 127\.0\.0\.1:\d+ after 1 attempt in \d+ ms: .*ECONNREFUSED/,
    ),
  );
  await assert.rejects(
    TcpStoreClient.connect({ ...where, connectMs: 300 }),
    failure("connect-failed", /after [2-9] attempts in \d+ ms/),
  );
  const stop = new AbortController();
  const connecting = TcpStoreClient.connect({ ...where, signal: stop.signal });
  await sleep(50);
  stop.abort();
  await assert.rejects(connecting, failure("aborted"));
  const late = TcpStoreClient.connect(where);
  await sleep(50);
  const again = await TcpStoreServer.listen(where);
  t.after(() => again.close());
  (await late).close();
});

test("a signal for connecting is not one for what follows, and no deadline is no deadline", async (t) => {
  const { server } = await pair(t);
  const stop = new AbortController();
  const store = await TcpStoreClient.connect({
    host: "127.0.0.1",
    port: server.port,
    connectMs: Infinity,
    timeoutMs: Infinity,
    signal: stop.signal,
  });
  t.after(() => store.close());
  stop.abort();
  assert.equal(await store.add("n", 1), 1n);
  const again = await store.clone();
  assert.equal(await again.add("n", 1), 2n);
  again.close();
  await assert.rejects(store.clone({ signal: stop.signal }), failure("aborted"));
});

test("who accepts and says nothing, or something else, is not a store", async (t) => {
  const silent = await ScriptedServer.listen(() => {});
  const wrong = await ScriptedServer.listen((socket) => socket.write("\x01\x02\x03\x04"));
  const web = await ScriptedServer.listen((socket) =>
    socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")
  );
  t.after(() => Promise.all([silent, wrong, web].map((each) => each.close())));
  const to = (server: ScriptedServer) => ({ host: "127.0.0.1", port: server.port, connectMs: 100 });
  await assert.rejects(
    TcpStoreClient.connect(to(silent)),
    failure("not-a-store", /accepted and did not answer the PING within \d+ ms/),
  );
  await assert.rejects(TcpStoreClient.connect(to(wrong)), failure("not-a-store", /another nonce/));
  await assert.rejects(
    TcpStoreClient.connect(to(web)),
    failure("not-a-store", /not a TCPStore/),
  );
});

test("a server that hangs up twice while it starts is asked a third time", async (t) => {
  const server = await ScriptedServer.listen((socket, index) => {
    if (index < 2) socket.destroy();
    else afterHandshake(socket, () => {});
  });
  t.after(() => server.close());
  const store = await TcpStoreClient.connect({ host: "127.0.0.1", port: server.port });
  store.close();
  assert.equal(server.sockets.length, 3);
});

test("PrefixStore puts its prefix before every key, nests, and strips it from lists", async (t) => {
  const { store } = await pair(t);
  const outer = new PrefixStore("outer", store);
  const inner = new PrefixStore("inner//", outer);
  await inner.set("k", "v");
  assert.equal(text(await store.get("outer/inner///k")), "v");
  assert.equal(await inner.add("n", 1), 1n);
  assert.equal(text(await inner.compareSet("k", "v", "w")), "w");
  await inner.append("k", "x");
  assert.equal(text(await inner.get("k")), "wx");
  assert.equal(text((await inner.peek("k"))!), "wx");
  assert.equal(await inner.check(["k", "n"]), true);
  await inner.wait(["k"]);
  await inner.multiSet([["a", "1"]]);
  assert.deepEqual((await inner.multiGet(["a", "n"])).map(text), ["1", "1"]);
  await inner.queuePush("q", "item");
  assert.equal(await inner.queueLen("q"), 1);
  assert.equal(text(await inner.queuePop("q")), "item");
  await store.set("outerk", "not inside");
  assert.deepEqual((await inner.listKeys()).sort(), ["a", "k", "n"]);
  assert.deepEqual((await outer.listKeys()).sort(), ["inner///a", "inner///k", "inner///n"]);
  assert.equal(await inner.numKeys(), 4, "of the whole server");
  assert.equal(await inner.deleteKey("k"), true);
});

test("PrefixStore's barrier is a counter and a key, and lets everybody through", async (t) => {
  const { store, other } = await pair(t);
  const [one, two] = [new PrefixStore("p", store), new PrefixStore("p", other)];
  await Promise.all([one.barrier("b", 2), two.barrier("b", 2)]);
  assert.deepEqual((await store.listKeys()).sort(), ["p/b/last_member", "p/b/num_members"]);
});

/** What our client is to do for a recorded operation, and what it is to answer. */
const SAME: Readonly<Record<string, (s: TcpStoreClient, row: Recorded) => Promise<unknown>>> = {
  set: (s) => s.set("k1", "hello"),
  set_empty_value: (s) => s.set("kempty", ""),
  set_empty_key: (s) => s.set("", "v"),
  get_present: async (s) => assert.equal(text(await s.get("k1")), "hello"),
  get_absent_set_later: async (s) => assert.equal(text(await s.get("lk")), "v"),
  get_after_cancel: async (s) => assert.equal(text(await s.get("k1")), "hello"),
  get_absent_timeout: (s) =>
    assert.rejects(s.get("nokey", { timeoutMs: 20 }), failure("wait-timeout")),
  cas_absent_expected_empty: async (s) =>
    assert.equal(text(await s.compareSet("cas1", "", "new")), "new"),
  cas_absent_expected_nonempty: async (s) =>
    assert.equal(text(await s.compareSet("cas2", "exp", "new")), "exp"),
  cas_absent_check: async (s) => assert.equal(await s.check(["cas2"]), false),
  cas_mismatch: async (s) => assert.equal(text(await s.compareSet("cas1", "zzz", "new3")), "new2"),
  cas_emptyvalue_expected_empty: async (s) =>
    assert.equal(text(await s.compareSet("kempty", "", "filled")), "filled"),
  add_new: async (s) => assert.equal(await s.add("ctr", 5), 5n),
  add_pos: async (s) => assert.equal(await s.add("ctr", 37), 42n),
  add_neg: async (s) => assert.equal(await s.add("ctr", -100), -58n),
  add_zero: async (s) => assert.equal(await s.add("ctr", 0), -58n),
  add_big: async (s) => assert.equal(await s.add("big", 2n ** 62n), 2n ** 62n),
  add_on_value_42xyz: async (s) => assert.equal(await s.add("ws", 1), 43n),
  add_on_nonint: (s) => assert.rejects(s.add("nonint", 1), failure("closed")),
  get_counter: async (s) => assert.equal(text(await s.get("ctr")), "-58"),
  check_one_present: async (s) => assert.equal(await s.check(["k1"]), true),
  check_one_missing: async (s) => assert.equal(await s.check(["nope"]), false),
  check_zero_keys: async (s) => assert.equal(await s.check([]), true),
  check_many_present: async (s) => assert.equal(await s.check(["k1", "ctr", "cas1"]), true),
  check_many_one_missing: async (s) => assert.equal(await s.check(["k1", "nope", "cas1"]), false),
  wait_present: (s) => s.wait(["k1"]),
  wait_many_present: (s) => s.wait(["k1", "ctr"]),
  wait_later: (s) => s.wait(["wl"]),
  wait_many_later: (s) => s.wait(["wm1", "k1", "wm2"]),
  wait_append_wakes: (s) => s.wait(["wa"]),
  wait_multiset_wakes: (s) => s.wait(["wms"]),
  wait_cas_wakes: (s, row) => wait(s, "wcas", row),
  wait_cas_lie_wakes: (s, row) => wait(s, "wcas3", row),
  wait_timeout: (s) =>
    assert.rejects(s.wait(["never1", "k1"], { timeoutMs: 20 }), failure("wait-timeout")),
  delete_true: async (s) => assert.equal(await s.deleteKey("k1"), true),
  delete_false: async (s) => assert.equal(await s.deleteKey("k1"), false),
  append_new: (s) => s.append("ap", "abc"),
  append_more: (s) => s.append("ap", "def"),
  get_appended: async (s) => assert.equal(text(await s.get("ap")), "abcdef"),
  multi_set: (s) => s.multiSet([["m1", "a"], ["m2", ""], ["m3", "ccc"]]),
  num_keys: async (s) => assert.equal(await s.numKeys(), 20),
  list_keys: async (s) => assert.equal((await s.listKeys()).length, 19),
  queue_push2: (s) => s.queuePush("q", "item2"),
  queue_len: async (s) => assert.equal(await s.queueLen("q"), 2),
  queue_len_absent: async (s) => assert.equal(await s.queueLen("q_absent"), 0),
  queue_pop_nonblock: async (s) =>
    assert.equal(text(await s.queuePop("q", { block: false })), "item1"),
  queue_pop_empty_nonblock: (s) =>
    assert.rejects(s.queuePop("q", { block: false }), failure("queue-empty")),
  queue_pop_block_later: async (s) => assert.equal(text(await s.queuePop("q2")), "late"),
  queue_pop_block_timeout: (s) =>
    assert.rejects(s.queuePop("q3", { timeoutMs: 20 }), failure("wait-timeout")),
  check_queue_key: async (s) => assert.equal(await s.check(["q5"]), true),
  delete_queue: async (s) => assert.equal(await s.deleteKey("q5"), false),
  barrier_ws2: (s) => s.barrier("b2", 2),
  barrier_timeout: (s) =>
    assert.rejects(s.barrier("b3", 2, { timeoutMs: 20 }), failure("wait-timeout")),
  barrier_default_timeout_reuse: (s) => s.barrier("b1", 1),
  get_barrier_key: async (s) => assert.equal(text(await s.get("b3")), "1"),
  prefix_set: (s) => pfx(s).set("a", "1"),
  prefix_get: async (s) => assert.equal(text(await pfx(s).get("a")), "1"),
  prefix_nested_add: async (s) =>
    assert.equal(await new PrefixStore("inner", pfx(s)).add("n", 1), 1n),
  prefix_wait: (s) => pfx(s).wait(["a"]),
  prefix_multi_get: async (s) => assert.deepEqual((await pfx(s).multiGet(["a"])).map(text), ["1"]),
  prefix_num_keys: async (s) => assert.equal(await pfx(s).numKeys(), 25),
  prefix_list_keys: async (s) => assert.deepEqual(await pfx(s).listKeys(), ["a", "inner/n"]),
  prefix_barrier: (s) => pfx(s).barrier("bb", 1),
};
const pfx = (s: Store): Store => new PrefixStore("pfx", s);
/** The two servers differ here: one wakes, the other is cancelled. */
const wait = (s: TcpStoreClient, key: string, row: Recorded): Promise<void> =>
  said(row, "C").endsWith("0c")
    ? assert.rejects(s.wait([key], { timeoutMs: 20 }), failure("wait-timeout"))
    : s.wait([key]);
/** Local operations, and those of a connection's start, which have a test of their own. */
const NOT_CALLS = new Set(["connect", "connect_wait_for_workers", "clone"]);

test("for every recorded operation our client sends the very bytes of torch's, and reads its server's", async (t) => {
  let rows = 0;
  for (const row of recorded) {
    if (row.exchange === undefined || NOT_CALLS.has(row.op)) continue;
    const call = SAME[row.op];
    assert(call !== undefined, `no call for ${row.op}`);
    const turns = row.exchange.map(([side, hex]) => ({ side, hex: hex ?? "" }));
    let heardAll = "";
    // Plays the server's side: what follows a client's turn is said when that turn was heard.
    const store = await scripted(t, (socket, _bytes, everything) => {
      heardAll = everything.toString("hex");
      let due = "";
      for (const { side, hex } of turns) {
        if (side === "C") due += hex;
        else if (heardAll === due && hex !== "") socket.write(Buffer.from(hex, "hex"));
        else if (heardAll === due && side === "S-eof") socket.end();
        else if (heardAll.length < due.length) return;
      }
    });
    await call(store, row);
    await until(() => heardAll.length >= said(row, "C").length);
    assert.equal(heardAll, said(row, "C"), row.op);
    store.close();
    rows++;
  }
  assert.equal(rows, 90);
});

test("the start of a connection is VALIDATE and PING in one write, then the worker's ADD, as torch does it", async (t) => {
  const row = recorded.find((each) => each.op === "connect_wait_for_workers" && each.libuv)!;
  const writes: string[] = [];
  const server = await ScriptedServer.listen((socket) =>
    socket.on("data", (chunk: Buffer) => {
      const hex = chunk.toString("hex");
      writes.push(hex);
      socket.write(Buffer.from(writes.length === 1 ? hex.slice(12) : "0100000000000000", "hex"));
    })
  );
  t.after(() => server.close());
  const store = await TcpStoreClient.connect({ host: "127.0.0.1", port: server.port });
  t.after(() => store.close());
  assert.equal(await store.joinWorkers(), 1);
  const pid = Buffer.alloc(4);
  pid.writeUInt32LE(process.pid);
  const [opening, join] = row.exchange!.filter(([side]) => side === "C").map(([, hex]) => hex!);
  assert.deepEqual(writes, [opening!.slice(0, 12) + pid.toString("hex"), join]);
});

test("a client's value of every byte and a server's are the same bytes", async (t) => {
  const { server, store } = await pair(t);
  const raw = await RawClient.validated(server.port);
  t.after(() => raw.close());
  const every = hexOf(
    fromHex(Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0")).join("")),
  );
  await store.set("all", Buffer.from(every, "hex"), { confirm: true });
  raw.write("03" + "0400000000000000" + hexOf("/all"));
  await raw.said("0001000000000000" + every);
});
