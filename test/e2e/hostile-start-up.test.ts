import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import * as zmq from "zeromq";
import { Coordinator } from "../../src/coordinator.ts";
import { encode, encodeEngineHandshake, wireRank } from "../../src/protocol/mod.ts";
import { connectDealer } from "../../src/drivers/zmq/sockets.ts";
import { ReferenceEngine } from "../../src/testing/reference-engine.ts";
import { fireAt } from "../drivers/zmq/fire.ts";
import { until } from "../until.ts";

const hello = encodeEngineHandshake({ type: "hello", local: false, headless: true });

/** A coordinator on tcp that awaits two engines of other nodes, with its journal in a file. */
async function awaiting(
  body: (
    parts: { coordinator: Coordinator; endpoint: string; journal: () => string[] },
  ) => Promise<void>,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "mh-"));
  const coordinator = await Coordinator.start({
    cluster: {
      dataParallelSize: 2,
      dataParallelSizeLocal: 0,
      dataParallelAddress: "127.0.0.1",
      dataParallelRpcPort: 0,
      allowLoopback: true,
      rpcBasePath: directory,
    },
    journal: join(directory, "journal"),
  });
  const journal = () =>
    readdirSync(join(directory, "journal")).filter((name) => name.endsWith(".jsonl"))
      .flatMap((name) => readFileSync(join(directory, "journal", name), "utf8").split("\n"))
      .filter((line) => line !== "");
  try {
    await until(() => coordinator.status().endpoints["handshake"] !== undefined, "the socket");
    const endpoint = (coordinator.status().endpoints["handshake"] as { bind: string }).bind;
    await body({ coordinator, endpoint, journal });
  } finally {
    await coordinator.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

const engine = (rank: number, endpoint: string): Promise<ReferenceEngine> =>
  ReferenceEngine.start({
    rank: wireRank(rank),
    handshakes: [endpoint],
    behaviour: {
      contacts: [{ local: false, headless: true }],
      blocks: 5,
      bootMs: 0,
      loadMs: 10,
      initMs: 60_000,
      exitCode: 1,
      faults: [],
    },
  });

async function formsUp(coordinator: Coordinator, endpoint: string): Promise<void> {
  const engines = await Promise.all([0, 1].map((rank) => engine(rank, endpoint)));
  try {
    const status = await coordinator.ready();
    assert.equal(status.ready, 2);
    assert.equal(status.failure, null);
  } finally {
    await Promise.all(engines.map((e) => e.close()));
  }
}

const peer = (endpoint: string, identity: Uint8Array): zmq.Dealer => {
  const dealer = new zmq.Dealer({
    routingId: identity as never,
    linger: 0,
    sendTimeout: 0,
    sendHighWaterMark: 0,
    zapDomain: "test",
  });
  dealer.connect(endpoint);
  return dealer;
};

/** ZMTP 3.0 by hand: a READY command with an identity of `size` bytes, then a message. */
function rawIdentity(port: number, size: number): Promise<void> {
  const property = (name: string, value: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(value.length);
    return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), length, value]);
  };
  const body = Buffer.concat([
    Buffer.from([5]),
    Buffer.from("READY"),
    property("Socket-Type", Buffer.from("DEALER")),
    property("Identity", Buffer.alloc(size, 7)),
  ]);
  const header = Buffer.alloc(9);
  header[0] = 0x06; // a long command
  header.writeBigUInt64BE(BigInt(body.length), 1);
  const greeting = Buffer.concat([
    Buffer.from([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0]),
    Buffer.from("NULL"),
    Buffer.alloc(48),
  ]);
  const message = Buffer.concat([Buffer.from([0x00, hello.length]), hello]);
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(Buffer.concat([greeting, header, body, message]));
      setTimeout(() => socket.destroy(), 150);
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve());
  });
}

test("case 13: identities of 20 random bytes and of 64 KiB, HTTP, 1 and 3 frames, empty bodies, what is no map: start-up goes on", async () => {
  await awaiting(async ({ coordinator, endpoint, journal }) => {
    const port = Number(endpoint.split(":").pop());
    const fire = fireAt(port, 4);
    for (const size of [20, 255, 256, 65_536]) await rawIdentity(port, size);
    const nobody = peer(endpoint, Buffer.from("twenty random bytes!"));
    const known = peer(endpoint, Uint8Array.of(1, 0));
    await nobody.send(hello);
    await known.send([hello, hello]);
    await known.send(new Uint8Array(0));
    await known.send(encode([1, 2, 3]));
    await known.send(encode({ status: 7, local: "x", headless: null }));
    await known.send(hello.subarray(0, 11));
    await known.send(new Uint8Array(2 << 20)); // more than a frame may be: it is disconnected
    await until(
      () => journal().filter((l) => l.includes('"malformed"')).length >= 4,
      "refusals in the journal",
    );
    known.close();
    nobody.close();
    await formsUp(coordinator, endpoint);
    await fire.stop();
    const kinds = coordinator.status().strangers.map((s) => s.kind);
    assert.ok(kinds.includes("identity") && kinds.includes("frames"), kinds.join());
    const rank = coordinator.status().ranks.find((r) => r.rank === 1);
    assert.equal(rank?.state, "ready");
  });
});

test("cases 17 and 18: a remote HELLO with the wrong flags is refused by name and may be put right", async () => {
  await awaiting(async ({ coordinator, endpoint }) => {
    const wrong = connectDealer({ address: endpoint, rank: wireRank(0) });
    await wrong.send([encodeEngineHandshake({ type: "hello", local: false, headless: false })]);
    await until(() => coordinator.status().ranks.some((r) => r.refused !== null), "the refusal");
    const refused = coordinator.status().ranks.find((r) => r.rank === 0)?.refused;
    assert.match(JSON.stringify(refused), /headless/);
    wrong.close();
    await formsUp(coordinator, endpoint);
  });
});

test("a flood of 20,000 hostile messages from known and unknown ranks: formed up, and journal and memory are bounded", async (t) => {
  const peers: ReturnType<typeof peer>[] = [];
  t.after(() => peers.forEach((dealer) => dealer.close()));
  await awaiting(async ({ coordinator, endpoint, journal }) => {
    const before = process.memoryUsage().rss;
    const started = performance.now();
    // What two known ranks may say in that time (20 at once, then 5 a second), and so much may become records.
    const allowed = () => 2 * (20 + 5 * Math.ceil((performance.now() - started) / 1000));
    for (const id of [[1, 0], [0, 0], [9, 9], [1], [7, 7, 7]]) {
      peers.push(peer(endpoint, Uint8Array.from(id)));
    }
    const payload = fc.oneof(fc.uint8Array({ maxLength: 30 }), fc.constant(hello));
    const payloads = fc.sample(payload, { numRuns: 500, seed: 3 });
    for (let i = 0; i < 20_000; i++) {
      await peers[i % peers.length]!.send([payloads[i % payloads.length]!]);
      if (i % 500 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    // All of it, or as much as comes: a connection that starves for seconds is closed, and what it still held is gone.
    const counted = () => coordinator.status().strangers.reduce((sum, s) => sum + s.count, 0);
    let seen = { count: 0, at: performance.now() };
    await until(() => {
      const count = counted();
      if (count > seen.count) seen = { count, at: performance.now() };
      return count >= 20_000 - allowed() || performance.now() - seen.at > 10_000;
    }, "the last of it");
    assert.ok(counted() > 10_000, `${counted()} counted`);
    for (const dealer of peers) dealer.close();
    await new Promise((resolve) => setTimeout(resolve, 1_000)); // the flooding ranks may speak again
    await formsUp(coordinator, endpoint);
    const lines = journal();
    const grown = process.memoryUsage().rss - before;
    t.diagnostic(`${lines.length} records of 20,000 messages, ${Math.round(grown / 1e6)} MB`);
    // Each message is one record or two, and the strangers of each of three kinds are one a second.
    const most = 4 * allowed();
    assert.ok(lines.length < most, `${lines.length} records, at most ${most} in that time`);
    assert.ok(grown < 150e6, `${grown} bytes`);
  });
});
