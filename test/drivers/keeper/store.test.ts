import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { KeeperClient } from "../../../src/drivers/keeper/mod.ts";
import { sendSignal } from "../../../src/drivers/process-table.ts";
import { TcpStoreClient, type TcpStoreError } from "../../../src/drivers/tcpstore/mod.ts";
import { controller, gone, keep, placeFor, scratch } from "./support.ts";
import { until } from "../../until.ts";

const quiet = { exited: () => {}, lost: () => {} };
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

test("a store that the keeper hosts survives the coordinator, with its keys and its connections", async (t) => {
  const directory = scratch(t);
  const place = placeFor(t, directory);
  const services = [{ id: "control", kind: "tcpstore", options: { host: "127.0.0.1" } }];
  const first = await controller(t, { place, leaseMs: 20_000, launches: [], services });
  const { host, port } = first.services[0]!.info as { host: string; port: number };
  const store = await TcpStoreClient.connect({ host, port });
  const waits = await store.clone();
  t.after(() => [store, waits].forEach((each) => each.close()));
  await store.set("epoch", "1");
  const waiting = waits.get("later");

  sendSignal(first.process.pid!, "SIGKILL");
  await until(() => first.process.signalCode !== null, "the coordinator is dead");
  assert.equal(text(await store.get("epoch")), "1", "the connection is the same");

  const settings = { fence: 2, leaseMs: 0, expect: first.keeper };
  const second = await KeeperClient.connect(place, settings, quiet);
  t.after(() => second.detach());
  assert.deepEqual(second.welcome.services, [first.services[0]]);
  const again = await second.startService("control", "tcpstore", { host: "127.0.0.1" });
  assert.deepEqual(again.info, { host, port }, "the same id again is the same store");
  await store.set("later", "after the crash");
  assert.equal(text(await waiting), "after the crash");

  assert.equal(await second.stopService("control"), true);
  await assert.rejects(store.get("epoch"), (error: TcpStoreError) => error.code === "closed");
  second.detach();
  await until(() => gone(first.keeper), "the keeper has ended");
});

test("what cannot be hosted says why, and leaves the id free", async (t) => {
  const { client } = await keep(t);
  const cases: [unknown, RegExp][] = [
    [{ port: 70_000 }, /port must be a whole number from 0 to 65535, not 70000/],
    [{ host: 7 }, /host must be a string/],
    [{ ports: 1 }, /a store has no option ports \(there are host and port\)/],
    [[], /the options of a store are an object with host and port/],
    [{ host: "203.0.113.7" }, /EADDRNOTAVAIL|EINVAL/],
  ];
  for (const [options, message] of cases) {
    await assert.rejects(client.startService("s", "tcpstore", options), {
      code: "keeper-service-failed",
      message,
    });
  }
  const { info } = await client.startService("s", "tcpstore", null);
  const { port } = info as { port: number };
  const store = await TcpStoreClient.connect({ host: "127.0.0.1", port });
  assert.equal(await store.add("n", 1), 1n);
  store.close();
});
