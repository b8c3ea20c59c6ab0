/**
 * Round trips between one ROUTER and its engines, every socket waiting before its peer is there. The guard of the one
 * seam in `readiness.ts`: with a native wait on Deno, one engine with one message in flight hangs at once, and eight
 * end in a crash within a few thousand round trips.
 *
 *     npm run soak:deno            100,000 round trips on Deno
 */
import process from "node:process";
import { wireRank } from "../../../src/protocol/mod.ts";
import { bindRouter, connectDealer, type ZmqSocket } from "../../../src/drivers/zmq/sockets.ts";
import { inDirectory } from "./support.ts";

/** How many engines speak at once, how many messages of each are on their way, and who waits for whom. */
export type Shape = {
  readonly engines: number;
  readonly inFlight: number;
  readonly first: "router" | "engines";
};
export const LONE: Shape = { engines: 1, inFlight: 1, first: "router" };
export const CROWD: Shape = { engines: 8, inFlight: 16, first: "engines" };

/**
 * Runs `count` round trips over ipc; resolves with the number of answers that came back in order, and rejects when none
 * comes for five seconds.
 */
export async function soak(count: number, shape: Shape): Promise<number> {
  let inOrder = 0;
  await inDirectory(async (directory) => {
    const address = `ipc://${directory}/soak`;
    const open: ZmqSocket[] = [];
    const bind = async () => {
      const router = await bindRouter({
        address,
        onMessage: (frames) => void router.send(frames),
      });
      open.push(router);
    };
    const connect = () =>
      Promise.all(Array.from({ length: shape.engines }, (_, rank) => {
        const each = Math.ceil(count / shape.engines);
        const asking = ask(address, rank, each, shape.inFlight, () => inOrder++);
        open.push(asking.socket);
        return asking.finished;
      }));
    // Whoever is first has been waiting for a while when the other appears.
    const settle = () => new Promise((resolve) => setTimeout(resolve, 300));
    try {
      if (shape.first === "router") await bind().then(settle);
      const finished = connect();
      if (shape.first === "engines") await settle().then(bind);
      await progressing(finished, () => inOrder, count);
    } finally {
      for (const socket of open) socket.close();
    }
  });
  return inOrder;
}

/** One engine that keeps `inFlight` numbers on their way until `count` have come back. */
function ask(
  address: string,
  rank: number,
  count: number,
  inFlight: number,
  inOrder: () => void,
): { socket: ZmqSocket; finished: Promise<void> } {
  let sent = 0;
  let next = 0;
  let done: () => void = () => {};
  const send = () => {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, sent++);
    void socket.send([bytes]);
  };
  const socket = connectDealer({
    address,
    rank: wireRank(rank),
    onMessage: ([answer]) => {
      const { buffer, byteOffset } = answer!;
      if (new DataView(buffer, byteOffset, 4).getUint32(0) === next) inOrder();
      if (++next === count) done();
      else if (sent < count) send();
    },
  });
  for (let i = 0; i < inFlight; i++) send();
  return { socket, finished: new Promise((resolve) => done = resolve) };
}

/** Waits, and rejects when five seconds pass without progress. */
function progressing(
  finished: Promise<unknown>,
  progress: () => number,
  of: number,
): Promise<unknown> {
  let watch: ReturnType<typeof setInterval> | undefined;
  const hung = new Promise<never>((_, reject) => {
    let before = -1;
    watch = setInterval(() => {
      if (progress() === before) reject(new Error(`hung after ${before} of ${of} round trips`));
      before = progress();
    }, 5_000);
  });
  return Promise.race([finished, hung]).finally(() => clearInterval(watch));
}

if (process.argv[2] !== undefined && /soak\.ts$/.test(process.argv[1] ?? "")) {
  for (const [shape, count] of [[LONE, 10_000], [CROWD, Number(process.argv[2])]] as const) {
    const started = performance.now();
    const answered = await soak(count, shape);
    const rate = Math.round(count / (performance.now() - started) * 1000);
    const megabytes = Math.round(process.memoryUsage().rss / 1e6);
    console.log(
      `${shape.engines} x ${shape.inFlight}: ${answered} of ${count} round trips in order, ${rate} a second, ` +
        `${megabytes} MB`,
    );
    if (answered !== count) process.exitCode = 1;
  }
}
