import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  PrefixStore,
  TcpStoreClient,
  type TcpStoreError,
  TcpStoreServer,
} from "../../src/drivers/tcpstore/mod.ts";
import { missing, peer } from "./python.ts";

const options = { skip: missing, timeout: 300_000 };
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

for (const flavour of ["libuv", "legacy"] as const) {
  test(
    `torch's ${flavour} client finds no difference between our server and torch's`,
    options,
    async (t) => {
      const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
      t.after(() => server.close());
      const theirs = peer("tcpstore_server.py", "libuv");
      t.after(() => theirs.stop());
      const [onOurs, onTheirs] = await Promise.all([
        peer("tcpstore_client.py", server.port, flavour).output,
        theirs.firstLine.then((port) => peer("tcpstore_client.py", port, flavour).output),
      ]).then((all) => all.map((json) => JSON.parse(json) as Record<string, unknown>));
      assert.deepEqual(onOurs, onTheirs);
      // And the report is what it should be, whoever made it.
      const raised = Object.entries(onOurs!).filter(([, answer]) => /Error$/.test(String(answer)));
      assert.deepEqual(Object.fromEntries(raised), {
        wait_timeout: "DistStoreError",
        get_timeout: "DistStoreError",
        ...(flavour === "libuv" ? { queue_empty: "QueueEmptyError" } : {
          queue_push: "NotImplementedError",
          queue_len: "NotImplementedError",
          queue_pop: "NotImplementedError",
          queue_empty: "NotImplementedError",
        }),
        barrier_timeout: "DistStoreError",
        add_to_word: "DistNetworkError",
        key_too_long: "DistNetworkError",
      });
      assert.equal(Object.keys(onOurs!).length, flavour === "libuv" ? 56 : 55);
      assert.equal(onOurs!.get_many_megabytes, 8 * 1024 * 1024);
      assert.deepEqual(
        onOurs!.add_wraps,
        ["9223372036854775807", "-9223372036854775808"].map(Number),
      );
      assert.deepEqual(onOurs!.multi_get, ["333", "1", ""]);
      const { closed } = server.stats;
      assert.deepEqual([closed["not-an-integer"], closed["key-too-long"]], [1, 1]);
    },
  );
}

for (const flavour of ["libuv", "legacy"] as const) {
  test(`our client does every operation on torch's ${flavour} server`, options, async (t) => {
    const theirs = peer("tcpstore_server.py", flavour);
    t.after(() => theirs.stop());
    const where = { host: "127.0.0.1", port: Number(await theirs.firstLine), timeoutMs: 20_000 };
    const store = await TcpStoreClient.connect(where);
    const other = await store.clone();
    t.after(() => [store, other].forEach((each) => each.close()));

    await store.set("k", "value");
    assert.equal(text(await store.get("k")), "value");
    assert.equal(text((await store.peek("k"))!), "value");
    assert.equal(await store.peek("none"), undefined);
    const large = Buffer.alloc(8 * 1024 * 1024, 0xa5);
    await store.set("large", large, { confirm: true });
    assert.deepEqual(Buffer.compare(await store.get("large"), large), 0);
    await store.set("l".repeat(8191), "", { confirm: true });
    assert.equal(text(await store.compareSet("cas", "lie", "new")), "lie");
    assert.equal(text(await store.compareSet("cas", "", "new")), "new");
    assert.equal(text(await store.compareSet("cas", "new", "newer")), "newer");
    assert.equal(await store.add("n", 2n ** 62n), 2n ** 62n);
    assert.equal(await store.add("n", 2n ** 62n), -(2n ** 63n));
    assert.equal(await store.check(["k", "n"]), true);
    assert.equal(await store.check(["k", "none"]), false);
    assert.equal(await store.check([]), true);
    const woken = store.wait(["w1", "w2"]);
    await other.set("w1", "");
    await other.add("w2", 1);
    await woken;
    const got = store.get("later");
    await other.append("later", "come");
    assert.equal(text(await got), "come");
    const waits = [
      () => store.wait(["never"], { timeoutMs: 50 }),
      () => store.get("never", { timeoutMs: 50 }),
    ];
    for (const wait of waits) {
      await assert.rejects(wait, (error: TcpStoreError) => error.code === "wait-timeout");
    }
    const stop = new AbortController();
    const abandoned = store.wait(["never"], { signal: stop.signal });
    setTimeout(() => stop.abort(), 20);
    await assert.rejects(abandoned, (error: TcpStoreError) => error.code === "aborted");
    await store.append("a", "abc");
    await store.append("a", "def", { confirm: true });
    assert.equal(text(await store.get("a")), "abcdef");
    await store.multiSet([["m1", "1"], ["m2", ""], ["m3", "333"]]);
    assert.deepEqual((await store.multiGet(["m3", "m2", "m1"])).map(text), ["333", "", "1"]);
    assert.equal(await store.numKeys(), 12);
    const keys = (await store.listKeys()).sort();
    assert.deepEqual(keys.map((key) => key.slice(0, 5)), [
      "a",
      "cas",
      "k",
      "large",
      "later",
      "lllll",
      "m1",
      "m2",
      "m3",
      "n",
      "w1",
      "w2",
    ]);
    assert.equal(await store.deleteKey("k"), true);
    assert.equal(await store.deleteKey("k"), false);
    await store.ping();
    await Promise.all([store.barrier("b", 2), other.barrier("b", 2)]);
    await assert.rejects(
      store.barrier("b3", 3, { timeoutMs: 50 }),
      (error: TcpStoreError) => error.code === "wait-timeout",
    );
    const prefix = new PrefixStore("inner", new PrefixStore("outer", store));
    await prefix.set("k", "v");
    assert.equal(text(await store.get("outer/inner/k")), "v");
    assert.deepEqual(await prefix.listKeys(), ["k"]);
    await prefix.barrier("b", 1);
    assert.equal(await store.joinWorkers(), 1);
    await store.awaitWorkers(1);
    assert.deepEqual(await Promise.all(Array.from({ length: 500 }, () => store.add("c", 1))), [
      ...Array.from({ length: 500 }, (_, i) => BigInt(i + 1)),
    ]);

    if (flavour === "libuv") {
      await store.queuePush("q", "one");
      await store.queuePush("q", "two");
      assert.equal(await store.queueLen("q"), 2);
      assert.equal(text(await store.queuePop("q")), "one");
      assert.equal(text(await store.queuePop("q", { block: false })), "two");
      const late = store.queuePop("q");
      await other.queuePush("q", "late");
      assert.equal(text(await late), "late");
      await assert.rejects(
        store.queuePop("q", { block: false }),
        (error: TcpStoreError) => error.code === "queue-empty",
      );
    } else {
      const third = await store.clone();
      await assert.rejects(third.queueLen("q"), (error: TcpStoreError) => error.code === "closed");
    }
    await store.set("word", "abc");
    await assert.rejects(store.add("word", 1), (error: TcpStoreError) => error.code === "closed");
    await assert.rejects(store.ping(), (error: TcpStoreError) => error.code === "closed");
    await other.ping();
  });
}

test(
  "torch's server that ends is noticed, by who waits and by who does not",
  options,
  async (t) => {
    const theirs = peer("tcpstore_server.py", "libuv");
    t.after(() => theirs.stop());
    const store = await TcpStoreClient.connect({
      host: "127.0.0.1",
      port: Number(await theirs.firstLine),
    });
    const waiting = store.wait(["never"]);
    const noticed = assert.rejects(waiting, (error: TcpStoreError) => error.code === "closed");
    await theirs.stop();
    await noticed;
    assert.equal(store.failure?.code, "closed");
  },
);

for (const [size, how] of [[2, "store"], [4, "store"], [2, "env"], [4, "env"]] as const) {
  const name = `init_process_group("gloo") with ${size} processes on our server (${how})`;
  test(name, options, async (t) => {
    const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
    t.after(() => server.close());
    const ranks = Array.from({ length: size }, (_, rank) => rank);
    const peers = ranks.map((rank) => peer("tcpstore_gloo.py", server.port, rank, size, how));
    t.after(() => Promise.all(peers.map((each) => each.stop())));
    const reports = await Promise.all(peers.map((each) => each.output));
    for (const [rank, report] of reports.entries()) {
      assert.deepEqual(JSON.parse(report), {
        all_reduce: [size === 2 ? 3 : 10],
        all_gather: ranks.map((each) => each * 10),
        new_group: rank < 2 ? 11 : rank + 5,
        objects: ranks.map((each) => `rank ${each}`),
      });
    }
    assert.deepEqual(server.stats.closed, {});
    assert(server.stats.keys > 0);
  });
}
