/**
 * A process whose ROUTER is closed before it has read what became of 1,500 connections. It says "heard" when another ROUTER of the same
 * process still hears an engine.
 */
import { spawnSync } from "node:child_process";
import process from "node:process";
import { bindRouter, connectDealer } from "../../../src/drivers/zmq/sockets.ts";
import { wireRank } from "../../../src/protocol/mod.ts";

const CROWD = `import("node:net").then(({ connect }) => {
  const port = Number(process.argv.at(-1));
  let left = 1500;
  const next = () => {
    if (left-- > 0) connect(port, "127.0.0.1", function () { this.destroy(); }).on("close", next);
  };
  for (let i = 0; i < 10; i++) next();
})`;
const flags = "Deno" in globalThis ? ["eval"] : ["-e"];

const crowded = await bindRouter({
  address: "tcp://127.0.0.1:0",
  onMessage: () => {},
  onRefusedConnection: () => {},
});
await new Promise((resolve) => setTimeout(resolve, 20)); // it is watched from the next turn on
const port = crowded.endpoint.split(":").pop()!;
// While this waits, nobody reads what the library has to tell about them.
const { status } = spawnSync(process.execPath, [...flags, CROWD, port]);
console.log(`crowd ${status}`);
crowded.close();

const router = await bindRouter({
  address: "tcp://127.0.0.1:0",
  onMessage: () => {
    console.log("heard");
    process.exit(0);
  },
});
await connectDealer({ address: router.endpoint, rank: wireRank(0) }).send([Uint8Array.of(1)]);
setTimeout(() => {
  console.log("nothing is heard any more");
  process.exit(1);
}, 20_000);
