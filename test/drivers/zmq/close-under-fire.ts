/**
 * A process that binds and closes a ROUTER again and again while somebody throws bytes at its port. Arguments: `muster`
 * (our sockets) or `plain` (without a ZAP domain), and how often. It says each port, and "survived" at the end.
 */
import process from "node:process";
import * as zmq from "zeromq";
import { bindRouter } from "../../../src/drivers/zmq/sockets.ts";

const [kind, count] = process.argv.slice(2);
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

async function bindOurs(address: string): Promise<{ endpoint: string; close(): void }> {
  return await bindRouter({ address, onMessage: () => {}, onRefusedConnection: () => {} });
}

function bindPlain(address: string): Promise<{ endpoint: string; close(): void }> {
  const socket = new zmq.Router({ linger: 0, receiveTimeout: 0, sendTimeout: 0 });
  socket.bindSync(address.replace(/:0$/, ":*"));
  return Promise.resolve({ endpoint: socket.lastEndpoint!, close: () => socket.close() });
}

const bind = kind === "plain" ? bindPlain : bindOurs;
for (let i = 0; i < Number(count); i++) {
  // A fresh port each time: a connection of a stranger could have taken the last one as its own.
  const router = await bind("tcp://127.0.0.1:0");
  console.log(`port ${router.endpoint.split(":").pop()}`);
  await sleep(8);
  router.close();
}
console.log("survived");
process.exit(0);
