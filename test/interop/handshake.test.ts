import assert from "node:assert/strict";
import { test } from "node:test";
import { BindError } from "../../src/drivers/zmq/sockets.ts";
import { bindHandshakeRouter } from "../../src/drivers/zmq/handshake-router.ts";
import {
  type EngineHandshake,
  type Init,
  parallelConfig,
  type Ready,
  type ScaleUpInit,
} from "../../src/protocol/mod.ts";
import { inDirectory } from "../drivers/zmq/support.ts";
import { Peer, withPeers } from "./engine-peer.ts";

const init = (inputs: string[], outputs: string[]): Init => ({
  addresses: {
    inputs,
    outputs,
    coordinatorInput: null,
    coordinatorOutput: null,
    frontendStatsPublish: "tcp://10.0.0.1:7",
  },
  parallelConfig: parallelConfig({
    masterIp: "10.0.0.1",
    masterPort: 29500,
    masterPortList: [29501, 29502],
    size: 4,
  }),
});

/** A handshake socket that answers every HELLO, with what it heard. */
async function frontEnd(address: string, answer: Init | ScaleUpInit, ranks = 4) {
  const heard: [number, EngineHandshake][] = [];
  const wrong: string[] = [];
  const router = await bindHandshakeRouter({
    address,
    expects: (rank) => rank < ranks,
    onMessage: (rank, message) => {
      heard.push([rank, message]);
      if (message.type === "hello") void router.sendInit(rank, answer);
    },
    onMalformed: (rank, refusal) => wrong.push(`${rank}: ${refusal.text}`),
    onStrangers: (strangers) => wrong.push(JSON.stringify(strangers)),
  });
  const readies = () => heard.filter(([, m]) => m.type === "ready") as [number, Ready][];
  return { router, heard, wrong, readies };
}

test("four real-encoder engines of each generation form up, and read what INIT says", async () => {
  const expected = {
    "0.12": { numGpuBlocks: 77, dpStatsAddress: "tcp://10.0.0.1:7", parallelConfigHash: "abc" },
    mid: { numGpuBlocks: 77, dpStatsAddress: "tcp://10.0.0.1:7", parallelConfigHash: "abc" },
    newest: { parallelConfigHash: "abc" },
  };
  for (const [generation, members] of Object.entries(expected)) {
    const answer = generation === "newest"
      ? init([], [])
      : { ...init([], []), parallelConfigHash: "abc" };
    const { router, heard, wrong, readies } = await frontEnd("tcp://127.0.0.1:0", answer);
    const peer = new Peer("engine.py", [
      ...["--ranks", "0-3", "--handshake", router.endpoint, "--generation", generation],
      ...["--headless", "--blocks", "77", "--hash", "abc"],
    ]);
    await withPeers([peer], async () => {
      await peer.until("four READYs", () => readies().length === 4);
      assert.deepEqual(
        heard.slice(0, 4).map(([, m]) => m),
        Array(4).fill({
          type: "hello",
          local: false,
          headless: true,
        }),
      );
      const ready = { type: "ready", local: false, headless: true, ...members };
      assert.deepEqual(readies().map(([, m]) => m), Array(4).fill(ready));
      assert.deepEqual(readies().map(([rank]) => rank).sort(), [0, 1, 2, 3]);
      const told = peer.heard("init");
      assert.equal(told.length, 4);
      assert.deepEqual(told[0]!.parallel_config, answer.parallelConfig);
      assert.deepEqual(
        told[0]!.keys,
        generation === "newest"
          ? ["addresses", "parallel_config"]
          : ["addresses", "parallel_config", "parallel_config_hash"],
      );
      assert.deepEqual(wrong, []);
    });
    router.close();
  }
});

test("two handshakes: rank 0's first, then the own front-end's, whose READY comes first", async () => {
  await inDirectory(async (directory) => {
    const head = await frontEnd("tcp://127.0.0.1:0", init(["ipc:///head"], ["ipc:///head-out"]));
    const order: string[] = [];
    const own = await frontEnd(
      `ipc://${directory}/own`,
      init([`ipc://${directory}/in`], [`ipc://${directory}/out`]),
    );
    const peer = new Peer("engine.py", [
      ...["--ranks", "3", "--handshake", head.router.endpoint],
      ...["--client-handshake", own.router.endpoint, "--hash", "abc"],
    ]);
    await withPeers([peer], async () => {
      await peer.until("both", () => head.readies().length === 1 && own.readies().length === 1);
      order.push(...head.heard.map(([, m]) => `head ${m.type} ${m.local} ${m.headless}`));
      order.push(...own.heard.map(([, m]) => `own ${m.type} ${m.local} ${m.headless}`));
      assert.deepEqual(order, [
        "head hello false false",
        "head ready false false",
        "own hello true false",
        "own ready true false",
      ]);
      assert.deepEqual(peer.heard("init").map((said) => said.contact), [0, 1]);
    });
    head.router.close();
    own.router.close();
  });
});

test("a joining rank reads the wrapped INIT of an external scale-up", async () => {
  const answer: ScaleUpInit = {
    engineMetadata: {
      ...init([], []),
      parallelConfig: parallelConfig({
        masterIp: "10.0.0.1",
        masterPort: 31005,
        masterPortList: [31001],
        size: 3,
        elasticEpMaxDpSize: 8,
        coordStorePort: 45556,
      }),
    },
    numRedundantExperts: 64,
  };
  const { router, readies } = await frontEnd("tcp://127.0.0.1:0", answer);
  const peer = new Peer("engine.py", [
    ...["--ranks", "2", "--handshake", router.endpoint, "--scale-up", "--coord-store-port", "5"],
  ]);
  await withPeers([peer], async () => {
    await peer.until("READY", () => readies().length === 1);
    const [told] = peer.heard("init");
    assert.equal(told!.redundant, 64);
    assert.deepEqual(told!.parallel_config, answer.engineMetadata.parallelConfig);
    assert.deepEqual(readies()[0]![1], {
      type: "ready",
      local: false,
      headless: false,
      coordStorePort: 5,
      numRedundantExperts: 0,
    });
  });
  router.close();
});

test("over IPv6, in brackets", async (t) => {
  const front = await frontEnd("tcp://[::1]:0", init(["tcp://[::1]:5001"], ["tcp://[::1]:5002"]), 1)
    .catch((error: unknown) => {
      if (!(error instanceof BindError)) throw error;
      t.skip(`this host has no ::1 (${error.message})`);
    });
  if (front === undefined) return;
  const peer = new Peer("engine.py", ["--ranks", "0", "--handshake", front.router.endpoint]);
  await withPeers([peer], async () => {
    await peer.until("READY", () => front.readies().length === 1);
    assert.deepEqual(peer.heard("error"), []);
  });
  front.router.close();
});
