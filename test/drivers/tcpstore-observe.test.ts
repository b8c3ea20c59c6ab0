import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type KeyChange,
  KeyObservation,
  type ObserveOptions,
  POLL_PAUSES_MS,
  TcpStoreClient,
  TcpStoreServer,
} from "../../src/drivers/tcpstore/mod.ts";
import { afterHandshake, ScriptedServer } from "./tcpstore-raw.ts";
import { until } from "../until.ts";

const hex = (text: string): string => Buffer.from(text).toString("hex");

interface Scene {
  readonly server: TcpStoreServer;
  readonly store: TcpStoreClient;
  readonly changes: KeyChange[];
  readonly lost: string[];
  /** The pauses between polls, in the order in which they were asked for; each lasts 1 ms. */
  readonly pauses: number[];
  observe(options: Partial<ObserveOptions> & Pick<ObserveOptions, "keys">): KeyObservation;
}

async function scene(t: TestContext): Promise<Scene> {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  const where = { host: "127.0.0.1", port: server.port };
  const store = await TcpStoreClient.connect(where);
  t.after(() => store.close());
  const [changes, lost, pauses]: [KeyChange[], string[], number[]] = [[], [], []];
  return {
    server,
    store,
    changes,
    lost,
    pauses,
    observe: (options) => {
      const observation = KeyObservation.start({
        ...where,
        onChange: (change) => changes.push(change),
        onLost: (reason) => lost.push(reason.code),
        pause: async (ms) => {
          pauses.push(ms);
          await sleep(1);
        },
        ...options,
      });
      t.after(() => observation.close());
      return observation;
    },
  };
}

for (const mode of ["wait", "poll"] as const) {
  test(`${mode}: each key is reported once, when it comes, with its value in hex`, async (t) => {
    const { server, store, changes, observe, lost } = await scene(t);
    await store.set("pre/there", "before", { confirm: true });
    observe({ mode, prefix: "pre", keys: ["there", "a", "b", "c"] });
    await until(() => changes.length === 1);
    if (mode === "wait") await until(() => server.stats.waiting === 3);
    await store.set("pre/b", "1");
    await until(() => changes.length === 2);
    await store.set("pre/a", "\xff");
    await until(() => changes.length === 3);
    await store.set("pre/a", "written again, which is none of its business");
    await store.append("pre/c", "");
    await until(() => changes.length === 4);
    // All are known: nothing is waited for or polled any more.
    await until(() => server.stats.connections === 1);
    assert.deepEqual(changes, [
      { key: "there", value: hex("before") },
      { key: "b", value: hex("1") },
      { key: "a", value: hex("\xff") },
      { key: "c", value: "" },
    ]);
    assert.deepEqual(lost, []);
  });

  test(`${mode}: a followed key is reported with every new value, and when it goes`, async (t) => {
    const { store, changes, pauses, observe } = await scene(t);
    observe({ mode, keys: [], follow: ["phase"] });
    const values = ["preparing", "committing", "completed"];
    for (const [i, value] of values.entries()) {
      await store.set("phase", value, { confirm: true });
      await until(() => changes.length === i + 1);
      // The same value again is no change, however often it is looked at.
      await store.set("phase", value, { confirm: true });
      const looks = pauses.length;
      await until(() => pauses.length > looks + 5);
    }
    await store.deleteKey("phase");
    await until(() => changes.length === 4);
    await store.set("phase", "preparing");
    await until(() => changes.length === 5);
    assert.deepEqual(changes, [
      ...values.map((value) => ({ key: "phase", value: hex(value) })),
      { key: "phase", value: null },
      { key: "phase", value: hex("preparing") },
    ]);
  });

  test(`${mode}: a store that ends is reported once, and nothing after it`, async (t) => {
    const { server, store, changes, observe, lost } = await scene(t);
    observe({ mode, keys: ["a", "b"], connectMs: 200, retry: false });
    await store.set("a", "1");
    await until(() => changes.length === 1);
    await server.close();
    await until(() => lost.length > 0);
    await sleep(20);
    assert.equal(lost.length, 1);
    assert.match(lost[0]!, /^(closed|connect-failed)$/);
    assert.equal(changes.length, 1);
  });

  test(`${mode}: after close nothing is reported, and no connection remains`, async (t) => {
    const { server, store, changes, lost, observe } = await scene(t);
    const observation = observe({ mode, keys: ["a"], follow: ["b"] });
    await until(() => server.stats.connections >= 2);
    observation.close();
    observation.close();
    await store.set("a", "1", { confirm: true });
    await until(() => server.stats.connections === 1);
    await sleep(20);
    assert.deepEqual([changes, lost], [[], []]);
  });
}

test("wait: nothing is polled, and each key has a connection of its own", async (t) => {
  const { server, observe, pauses, store } = await scene(t);
  await store.ping();
  observe({ keys: ["a", "b", "c"] });
  await until(() => server.stats.waiting === 3);
  assert.equal(server.stats.connections, 4);
  const { requests } = server.stats;
  await sleep(50);
  assert.equal(server.stats.requests, requests);
  assert.deepEqual(pauses, []);
});

test("wait: more keys than waits are polled, and wait in their turn", async (t) => {
  const { server, store, observe, changes, pauses } = await scene(t);
  observe({ keys: ["a", "b", "c", "d"], maxWaits: 2 });
  await until(() => server.stats.waiting === 2);
  await until(() => pauses.length > 3);
  await store.set("d", "polled");
  await until(() => changes.length === 1);
  await store.set("a", "waited for");
  await until(() => changes.length === 2);
  await until(() => server.stats.waiting === 2);
  await store.multiSet([["b", ""], ["c", ""]]);
  await until(() => changes.length === 4);
  assert.deepEqual(changes.map(({ key }) => key).slice(0, 2), ["d", "a"]);
  await until(() => server.stats.connections === 1);
});

test("wait: where a wait cannot be had, the key is polled", async (t) => {
  // This server hangs up on whoever waits, and serves CHECK and GET.
  let present = false;
  let hungUp = 0;
  const server = await ScriptedServer.listen((socket) =>
    afterHandshake(socket, (bytes) => {
      if (bytes[0] === 6) {
        hungUp++;
        socket.destroy();
      } else if (bytes[0] === 5) socket.write(present ? "\x00" : "\x01");
      else if (bytes[0] === 3) socket.write(Buffer.from("0100000000000000" + "76", "hex"));
    })
  );
  t.after(() => server.close());
  const { observe, changes, lost, pauses } = await scene(t);
  observe({ port: server.port, keys: ["a"] });
  await until(() => pauses.length > 3);
  present = true;
  await until(() => changes.length === 1);
  assert.deepEqual(changes, [{ key: "a", value: "76" }]);
  assert.deepEqual([hungUp, lost], [1, []]);
});

test("wait: a WAIT that is renewed still sees its key", async (t) => {
  const { server, store, observe, changes } = await scene(t);
  observe({ keys: ["a"], renewMs: 10 });
  await until(() => server.stats.requests > 20);
  assert.equal(server.stats.connections, 2);
  await store.set("a", "1");
  await until(() => changes.length === 1);
});

test("poll: the pauses are the original's, and start again after a change", async (t) => {
  assert.deepEqual(POLL_PAUSES_MS, [100, 200, 400, 800]);
  const { store, observe, changes, pauses } = await scene(t);
  observe({ mode: "poll", keys: ["a", "b"] });
  await until(() => pauses.length >= 6);
  const before = pauses.length;
  await store.set("a", "1");
  await until(() => changes.length === 1);
  await until(() => pauses.length >= before + 8);
  assert.deepEqual(pauses.slice(0, 6), [100, 200, 400, 800, 800, 800]);
  const again = pauses.indexOf(100, 1);
  assert.deepEqual(pauses.slice(again, again + 5), [100, 200, 400, 800, 800]);
});

test("waiting and polling report the same changes for the same writes", async (t) => {
  const { store, observe } = await scene(t);
  const keys = Array.from({ length: 20 }, (_, i) => `E/commit_ready/${i}`);
  const seen: Record<string, KeyChange[]> = { wait: [], poll: [] };
  for (const mode of ["wait", "poll"] as const) {
    observe({ mode, keys, onChange: (change) => seen[mode]!.push(change) });
  }
  for (const key of [...keys].reverse()) await store.set(key, `value of ${key}`);
  await until(() => seen.wait!.length >= 20 && seen.poll!.length >= 20);
  const inOrder = (changes: KeyChange[]): string[] =>
    changes.map((each) => JSON.stringify(each)).sort();
  assert.deepEqual(inOrder(seen.wait!), inOrder(seen.poll!));
  assert.equal(new Set(inOrder(seen.wait!)).size, 20);
});
