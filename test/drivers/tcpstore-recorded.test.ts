import assert from "node:assert/strict";
import { test } from "node:test";
import { TcpStoreClient, TcpStoreServer } from "../../src/drivers/tcpstore/mod.ts";
import { type Recorded, recorded, said } from "../protocol/tcpstore-recorded.ts";
import { RawClient, VALIDATE } from "./tcpstore-raw.ts";
import { until } from "../until.ts";

type Prepare = (other: TcpStoreClient) => Promise<unknown>;

/** What the recording's store held when the operation was made. */
const BEFORE: Readonly<Record<string, Prepare>> = {
  get_present: (s) => s.set("k1", "hello"),
  get_after_cancel: (s) => s.set("k1", "hello"),
  cas_mismatch: (s) => s.set("cas1", "new2"),
  cas_emptyvalue_expected_empty: (s) => s.set("kempty", ""),
  add_zero: (s) => s.add("ctr", -58),
  add_pos: (s) => s.add("ctr", 5),
  add_neg: (s) => s.add("ctr", 42),
  get_counter: (s) => s.add("ctr", -58),
  add_on_value_42xyz: (s) => s.set("ws", "  42xyz"),
  add_on_nonint: (s) => s.set("nonint", "abc"),
  check_one_present: (s) => s.set("k1", "hello"),
  check_many_present: (s) => s.multiSet([["k1", ""], ["ctr", ""], ["cas1", ""]]),
  check_many_one_missing: (s) => s.multiSet([["k1", ""], ["cas1", ""]]),
  wait_present: (s) => s.set("k1", "hello"),
  wait_many_present: (s) => s.multiSet([["k1", ""], ["ctr", ""]]),
  wait_many_later: (s) => s.set("k1", ""),
  wait_timeout: (s) => s.set("k1", ""),
  delete_true: (s) => s.set("k1", "hello"),
  append_more: (s) => s.append("ap", "abc"),
  get_appended: (s) => s.set("ap", "abcdef"),
  num_keys: (s) => s.multiSet(Array.from({ length: 20 }, (_, i) => [`k${i}`, ""])),
  prefix_num_keys: (s) => s.multiSet(Array.from({ length: 25 }, (_, i) => [`k${i}`, ""])),
  queue_push2: (s) => s.queuePush("q", "item1"),
  queue_len: (s) => s.queuePush("q", "item1").then(() => s.queuePush("q", "item2")),
  queue_pop_nonblock: (s) => s.queuePush("q", "item1").then(() => s.queuePush("q", "item2")),
  check_queue_key: (s) => s.queuePush("q5", "item"),
  delete_queue: (s) => s.queuePush("q5", "item"),
  get_barrier_key: (s) => s.add("b3", 1),
  prefix_get: (s) => s.set("pfx/a", "1"),
  prefix_wait: (s) => s.set("pfx/a", "1"),
  prefix_multi_get: (s) => s.set("pfx/a", "1"),
};
/** What another client did while the operation waited. */
const MEANWHILE: Readonly<Record<string, Prepare>> = {
  get_absent_set_later: (s) => s.set("lk", "v"),
  wait_later: (s) => s.set("wl", "v"),
  wait_many_later: (s) => s.set("wm1", "").then(() => s.add("wm2", 1)),
  wait_append_wakes: (s) => s.append("wa", "v"),
  wait_multiset_wakes: (s) => s.multiSet([["wms", ""]]),
  wait_cas_wakes: (s) => s.compareSet("wcas", "", "v"),
  queue_pop_block_later: (s) => s.queuePush("q2", "late"),
  barrier_ws2: (s) => s.barrier("b2", 2),
};
/** Rows that our server answers otherwise, or that have an answer of their own moment. */
const NOT_HERE: Readonly<Record<string, string>> = {
  connect: "the nonce: see the test of the start",
  connect_wait_for_workers: "the nonce: see the test of the start",
  clone: "a connection of its own: see the test of the start",
  list_keys: "hash order",
  prefix_list_keys: "hash order",
  wait_cas_lie_wakes: "libuv's wakes although the key does not exist, ours does not",
};
/** Torch's legacy server never wakes for a compare_set; ours does as libuv's. */
const LIBUV_ONLY = new Set(["wait_cas_wakes"]);

async function replay(row: Recorded): Promise<void> {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  const other = await TcpStoreClient.connect({ host: "127.0.0.1", port: server.port });
  const client = await RawClient.open(server.port);
  try {
    await BEFORE[row.op]?.(other);
    await other.ping(); // What was written before is served before.
    client.write(VALIDATE);
    let expected = "";
    let meanwhile = MEANWHILE[row.op];
    for (const [side, hex = ""] of row.exchange!) {
      if (side === "C") {
        const { requests } = server.stats;
        client.write(hex);
        if (meanwhile !== undefined) {
          await until(() => server.stats.waiting === 1);
          void meanwhile(other);
          meanwhile = undefined;
        } else await until(() => server.stats.requests > requests);
      } else if (side === "S") {
        expected += hex;
        await client.said(expected);
      } else if (side === "S-eof") await client.closed();
    }
    assert.equal(client.hex, said(row, "S"), row.op);
  } finally {
    client.close();
    other.close();
    await server.close();
  }
}

test("everything that torch's client was recorded to say is answered by our server byte for byte", async () => {
  let rows = 0;
  for (const row of recorded) {
    if (row.exchange === undefined || NOT_HERE[row.op] !== undefined) continue;
    if (LIBUV_ONLY.has(row.op) && !row.libuv) continue;
    await replay(row).catch((error: Error) => assert.fail(`${row.op}: ${error.message}`));
    rows++;
  }
  assert.equal(rows, 85);
});

test("the recorded start of a connection is answered with its own nonce, and a worker is counted", async (t) => {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  for (const op of ["connect", "clone", "connect_wait_for_workers"]) {
    const row = recorded.find((each) => each.op === op && each.libuv)!;
    const client = await RawClient.open(server.port);
    t.after(() => client.close());
    client.write(said(row, "C"));
    await client.said(said(row, "S"));
  }
  const store = await TcpStoreClient.connect({ host: "127.0.0.1", port: server.port });
  t.after(() => store.close());
  assert.equal(await store.joinWorkers(), 2);
});
