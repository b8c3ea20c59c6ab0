import assert from "node:assert/strict";
import { test } from "node:test";
import { KeptStores } from "../../src/drivers/kept-stores.ts";
import { TcpStoreClient, type TcpStoreError } from "../../src/drivers/tcpstore/mod.ts";
import { keep } from "./keeper/support.ts";

const connect = (port: number): Promise<TcpStoreClient> =>
  TcpStoreClient.connect({ host: "127.0.0.1", port, retry: false });

test("with a keeper, stores outlive the coordinator, and the next one can end them by their port", async (t) => {
  const { client } = await keep(t);
  const first = new KeptStores(() => Promise.resolve(client));
  const [one, two] = [await first.serve("7.0"), await first.serve("9.1")];
  assert.notEqual(one, two);
  const stores = [await connect(one), await connect(two)];
  t.after(() => stores.forEach((store) => store.close()));
  await first.close();
  assert.equal(await stores[0]!.add("n", 1), 1n, "the coordinator has ended, its stores have not");

  const next = new KeptStores(() => Promise.resolve(client));
  assert.equal(await next.serve("9.1"), two, "asked again for the same one, it is the same one");
  await next.stop(one);
  await assert.rejects(stores[0]!.ping(), (error: TcpStoreError) => error.code === "closed");
  await stores[1]!.ping();
  const services = await client.services();
  assert.deepEqual(services.map(({ kind, info }) => [kind, (info as { port: number }).port]), [
    ["tcpstore", two],
  ]);
});

test("without a keeper, stores are of this process and end with it", async () => {
  const stores = new KeptStores(() => Promise.resolve(undefined));
  const [one, two] = [await stores.serve("7.0"), await stores.serve("9.1")];
  const client = await connect(one);
  await stores.stop(one);
  await assert.rejects(client.ping(), (error: TcpStoreError) => error.code === "closed");
  await stores.stop(one); // Again: nothing to end.
  const other = await connect(two);
  await stores.close();
  await assert.rejects(other.ping(), (error: TcpStoreError) => error.code === "closed");
});
