/** Case 28 of the reported inputs: two launches on one host choose their ports at the same moment, a thousand times. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bindEngineBus } from "../../../src/drivers/zmq/engine-bus.ts";
import { bindHandshakeRouter } from "../../../src/drivers/zmq/handshake-router.ts";
import { type Context, makeContext } from "../../../src/drivers/zmq/sockets.ts";

const ROUNDS = 1000;

/** What one launch binds: where engines shake hands, and a bus. Ports are chosen by binding, so that nobody can have them too. */
async function launch(context: Context): Promise<{ endpoints: string[]; close: () => void }> {
  const unheard = () => {};
  const [handshake, bus] = await Promise.all([
    bindHandshakeRouter({
      address: "tcp://127.0.0.1:0",
      expects: () => true,
      context,
      onMessage: unheard,
      onMalformed: unheard,
      onStrangers: unheard,
    }),
    bindEngineBus({
      input: "tcp://127.0.0.1:0",
      output: "tcp://127.0.0.1:0",
      clientIndex: 0,
      expects: () => true,
      context,
      onFirstFrame: unheard,
      onNotification: unheard,
      onEngineDead: unheard,
      onMalformed: unheard,
      onStrangers: unheard,
    }),
  ]);
  return {
    endpoints: [handshake.endpoint, bus.endpoints.input, bus.endpoints.output],
    close: () => {
      handshake.close();
      bus.close();
    },
  };
}

test(`two launches at once, ${ROUNDS} times: 6 sockets are bound for real, and no two have the same port`, async (t) => {
  const ports = new Set<string>();
  let context = makeContext(1024);
  for (let round = 1; round <= ROUNDS; round++) {
    // A closed socket is given back a moment later: a context has room for those of a while.
    if (round % 50 === 0) context = makeContext(1024);
    const launches = await Promise.all([launch(context), launch(context)]);
    const endpoints = launches.flatMap((l) => l.endpoints);
    assert.equal(new Set(endpoints).size, 6, `round ${round}: ${endpoints}`);
    for (const endpoint of endpoints) ports.add(endpoint);
    for (const { close } of launches) close();
    await new Promise((resolve) => setTimeout(resolve, 1)); // closed sockets are given back
  }
  t.diagnostic(`${6 * ROUNDS} binds, ${ports.size} different ports`);
});
