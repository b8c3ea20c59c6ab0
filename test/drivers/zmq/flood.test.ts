import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as zmq from "zeromq";
import { encodeEngineHandshake, wireRank } from "../../../src/protocol/mod.ts";
import { bindHandshakeRouter } from "../../../src/drivers/zmq/handshake-router.ts";
import { connectDealer } from "../../../src/drivers/zmq/sockets.ts";
import type { Strangers } from "../../../src/drivers/zmq/strangers.ts";
import { until } from "../../until.ts";

const HOSTILE = 2_000;
const hello = encodeEngineHandshake({ type: "hello", local: true, headless: false });
const ready = encodeEngineHandshake({ type: "ready", local: true, headless: false });

/** Random bytes, or a real message with a byte changed or its end cut off. */
const frame = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.tuple(fc.constantFrom(hello, ready), fc.nat(60), fc.integer({ min: 0, max: 255 }), fc.nat(40))
    .map(([bytes, at, byte, cut]) => {
      const copy = Uint8Array.from(bytes);
      copy[at % copy.length] = byte;
      return copy.subarray(0, Math.max(0, copy.length - Math.max(0, cut - 20)));
    }),
);
const message = fc.tuple(fc.nat(7), fc.array(frame, { minLength: 1, maxLength: 3 }));

test("2,000 hostile messages through a real socket: all accounted for, and an engine forms up", async () => {
  let heard = 0;
  let malformed = 0;
  const engineHeard: string[] = [];
  const strangers: Strangers[] = [];
  const router = await bindHandshakeRouter({
    address: "tcp://127.0.0.1:0",
    expects: (rank) => rank < 4,
    onMessage: (rank, message) => {
      if (rank === 0) engineHeard.push(message.type);
      else heard++;
    },
    onMalformed: () => malformed++,
    onStrangers: (report) => strangers.push(report),
  });
  // Known ranks 1 to 3, an unknown rank, and identities that are nobody's.
  const identities = [
    [1, 0],
    [2, 0],
    [3, 0],
    [200, 1],
    [1],
    [1, 2, 3],
    new Array(20).fill(9),
    new Array(255).fill(1),
  ];
  const peers = identities.map((identity) => {
    const dealer = new zmq.Dealer({
      routingId: Uint8Array.from(identity as number[]) as never,
      linger: 0,
      sendTimeout: 0,
      zapDomain: "test",
    });
    dealer.connect(router.endpoint);
    return dealer;
  });
  for (const [who, frames] of fc.sample(message, { numRuns: HOSTILE, seed: 5 })) {
    for (;;) {
      try {
        await peers[who]!.send(frames);
        break;
      } catch { // its pipe is full; let the router read
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
  }
  const engine = connectDealer({ address: router.endpoint, rank: wireRank(0) });
  await engine.send([hello]);
  await engine.send([ready]);
  await until(() => engineHeard.length === 2, "the honest engine");
  const reported = () => strangers.reduce((sum, s) => sum + s.count, 0);
  await until(() => heard + malformed + reported() >= HOSTILE, "all");
  for (const dealer of peers) dealer.close();
  engine.close();
  router.close();
  assert.deepEqual(engineHeard, ["hello", "ready"]);
  const connections = strangers.filter((s) => s.kind === "connection");
  assert.deepEqual(connections, [], "each of them spoke ZMTP 3");
  assert.equal(heard + malformed + reported(), HOSTILE);
  const inputs = heard + malformed + strangers.length;
  assert.ok(inputs <= 150, `${inputs} inputs of ${HOSTILE} messages`);
  assert.ok(strangers.length <= 30, `${strangers.length} reports of ${reported()} strangers`);
});
