import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { type ObservedKeys, StoreKeysDriver } from "../../src/drivers/tcpstore/driver.ts";
import { TcpStoreClient, TcpStoreServer } from "../../src/drivers/tcpstore/mod.ts";
import type { Typed } from "../../src/kernel/mod.ts";
import { until } from "../until.ts";

const hex = (text: string): string => Buffer.from(text).toString("hex");

for (const mode of ["wait", "poll"] as const) {
  test(`observed keys are a resource, and changes are inputs of whoever holds it (${mode})`, async (t) => {
    const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
    t.after(() => server.close());
    const store = await TcpStoreClient.connect({ host: "127.0.0.1", port: server.port });
    t.after(() => store.close());
    const inputs: [string, Typed][] = [];
    const driver = new StoreKeysDriver();
    t.after(() => driver.close());
    driver.start({
      fence: 1,
      input: (to, event) => inputs.push([to, event]),
      outcome: () => assert.fail("there are no calls"),
      observe: () => assert.fail("there are no observations"),
    });
    const resource = (...keys: string[]): ObservedKeys => ({
      type: "store.keys",
      host: "127.0.0.1",
      port: server.port,
      prefix: "epoch",
      keys,
      mode,
      connectMs: 500,
    });
    const one = { holder: "rank/0/scaling/a", key: "votes" };
    const two = { holder: "rank/1/scaling/a", key: "votes" };
    driver.hold({ ...one, resource: resource("vote/0", "vote/1") });
    driver.hold({ ...two, resource: resource("vote/1") });
    driver.hold({ ...two, resource: resource("vote/1") }); // Again: nothing changes.
    await store.set("epoch/vote/1", "commit");
    await until(() => inputs.length === 2);
    const changed = { type: "keyChanged", key: "vote/1", value: hex("commit") };
    assert.deepEqual(inputs.sort(), [[one.holder, changed], [two.holder, changed]]);

    driver.release({ ...one, resource: resource("vote/0", "vote/1") });
    await store.set("epoch/vote/0", "abort", { confirm: true });
    driver.hold({ ...two, resource: resource("vote/0") }); // Changed: what it names now is observed.
    await until(() => inputs.length === 3);
    assert.deepEqual(inputs[2], [two.holder, { ...changed, key: "vote/0", value: hex("abort") }]);

    driver.hold({ ...two, resource: resource("never") });
    await until(() => server.stats.connections === 2);
    await server.close();
    await until(() => inputs.length === 4);
    const [to, lost] = inputs[3]! as [string, Typed & { code: string }];
    assert.deepEqual([to, lost.type], [two.holder, "keysLost"]);
    assert.match(lost.code, /^(closed|connect-failed)$/);
  });
}
