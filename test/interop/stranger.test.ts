/**
 * Strangers at the scale-up handshake of ours, a real socket to which anybody can come while it scales up with an original rank. The original's
 * server ends with the first of them, and takes the operation with it (see the table in `scaling.test.ts`); ours goes on.
 */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { ScaleUpSocketDriver } from "../../src/drivers/scale-up-socket.ts";
import { OwnStores } from "../../src/drivers/scaling-store.ts";
import { MemoryEngines } from "../../src/testing/memory-engines.ts";
import { ScalingGroup } from "../../src/testing/scaling-group.ts";
import { Peer } from "./engine-peer.ts";
import { Originals } from "./originals.ts";
import { missing } from "./python.ts";

test(
  "a rank that nobody awaits and a peer that speaks something else come to our scale-up port: they are not answered, the new rank is, and everybody completes",
  {
    skip: missing,
    timeout: 120_000,
  },
  async (t) => {
    const originals = await Originals.start();
    t.after(() => originals.stop());
    const stores = new OwnStores("127.0.0.1");
    const controlPort = await stores.serve("control");
    const original = originals.rank({ rank: 1, from: 2, to: 3, controlPort, limitS: 60 });
    await original.ready();
    const engines = new MemoryEngines(2, [1]);
    const { host, ...group } = await start(engines, stores, controlPort);
    const peers: Peer[] = [];
    t.after(async () => {
      await Promise.all(peers.map((peer) => peer.stop()));
      original.close();
      await group.close();
      await engines.close();
      await stores.close();
    });

    const heard: { readonly type: string; readonly [key: string]: unknown }[] = [];
    const ended = new Promise<string>((resolve) =>
      host.subscribe(({ transitions, notes }) => {
        for (const { chart, event } of transitions) {
          if (chart === "scale-up-handshake") heard.push(event);
          if (chart === "topology" && event.type === "ended") {
            resolve((event["output"] as { outcome: string }).outcome);
          }
        }
        for (const note of notes) heard.push({ type: `not taken: ${note.what}` });
      })
    );
    const until = (type: string) =>
      new Promise<Record<string, unknown>>((resolve) => {
        const look = () => {
          const found = heard.find((event) => event.type === type);
          if (found === undefined) return;
          off();
          resolve(found);
        };
        const off = host.subscribe(look);
        look();
      });

    const theirs = original.scale();
    await host.submit("rank/0/topology", {
      type: "prepare",
      operation: "op",
      target: 3,
      remains: true,
      report: "",
      shared: false,
    });
    const endpoint = String((await until("listening"))["endpoint"]);

    const port = Number(endpoint.split(":").at(-1));
    const web = connect(port, "127.0.0.1", () => web.write("GET / HTTP/1.1\r\n\r\n"));
    web.on("error", () => {});
    const stranger = new Peer("engine.py", ["--ranks", "7", "--handshake", endpoint]);
    peers.push(stranger);
    await until("not taken: hello");

    const joining = ["--ranks", "2", "--handshake", endpoint, "--scale-up", "--load-ms", "60000"];
    const joiner = new Peer("engine.py", joining);
    peers.push(joiner);
    await joiner.until("the new rank is greeted", () => joiner.heard("init").length === 1);
    const config = joiner.heard("init")[0]!["parallel_config"] as Record<string, never>;
    engines.join([2], {
      size: config["data_parallel_size"]!,
      masterIp: config["data_parallel_master_ip"]!,
      masterPort: config["data_parallel_master_port"]!,
      masterPorts: config["_data_parallel_master_port_list"]!,
      storePort: config["_coord_store_port"]!,
    });
    assert.deepEqual([await ended, await theirs], ["completed", "completed"]);
    assert.deepEqual(stranger.heard("init"), []);
    web.destroy();
  },
);

async function start(
  engines: MemoryEngines,
  stores: OwnStores,
  controlPort: number,
): Promise<{ host: ScalingGroup["host"]; close: () => Promise<void> }> {
  const group = await ScalingGroup.start({
    size: 2,
    ranks: [0],
    limits: { prepareMs: 60_000, voteMs: 20_000, outcomeMs: 20_000, utilityMs: 5_000, retryMs: 50 },
    world: { engines, stores, controlPort },
    greeting: new ScaleUpSocketDriver(),
  });
  return { host: group.host, close: () => group.close() };
}
