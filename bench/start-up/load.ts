/**
 * Many engines in one process: each says HELLO when the line "go" comes in, and READY as soon as it has INIT. Arguments: the
 * handshake's address and how many.
 */
import process from "node:process";
import { encodeEngineHandshake, wireRank } from "../../src/protocol/mod.ts";
import { connectDealer, makeContext } from "../../src/drivers/zmq/sockets.ts";

const [address, count] = process.argv.slice(2);
const hello = encodeEngineHandshake({ type: "hello", local: false, headless: true });
const ready = encodeEngineHandshake({
  type: "ready",
  local: false,
  headless: true,
  numGpuBlocks: 1000,
  dpStatsAddress: null,
});

process.stdin.once("data", () => {
  const context = makeContext(2 * Number(count) + 64);
  const engines = Array.from({ length: Number(count) }, (_, rank) => {
    const engine = connectDealer({
      context,
      address: address!,
      rank: wireRank(rank),
      lingerMs: 2000,
      onMessage: () => void engine.send([ready]),
    });
    void engine.send([hello]);
    return engine;
  });
  process.stdin.once("end", () => {
    for (const engine of engines) engine.close();
    process.exit(0);
  });
});
process.stdin.resume();
console.log("here");
