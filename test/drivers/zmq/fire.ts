/** Throws bytes at a port as strangers do: random ones, HTTP, old protocols, cut greetings. */
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";

const noise = (n: number): Buffer => {
  const bytes = Buffer.alloc(1 + (n % 200));
  for (let i = 0; i < bytes.length; i++) bytes[i] = (n * 31 + i * 131 + ((n * i) >> 3)) & 0xff;
  return bytes;
};
const GREETING = Buffer.concat([
  Buffer.from([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0]),
  Buffer.from("NULL"),
  Buffer.alloc(48),
]);

/** What a stranger writes first. */
export const VOLLEYS: readonly ((n: number) => Buffer)[] = [
  noise,
  () => Buffer.from("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n"),
  () => Buffer.from([0x01, 0x00, 0x06, 0x00, 0x68, 0x65, 0x6c, 0x6c, 0x6f]), // ZMTP 1: anonymous, one frame
  () => Buffer.from([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1, 5, 0, 0]), // ZMTP 2
  (n) => GREETING.subarray(0, 1 + (n % 63)), // ZMTP 3, cut
  () => Buffer.concat([GREETING, Buffer.from([0x00, 0x01, 0x41])]), // ZMTP 3, a frame before READY
];

/** Fires until stopped; says how many connections were made. */
export function fireAt(
  port: number,
  parallel = 12,
): { aim(port: number): void; stop(): Promise<number> } {
  let stopped = false;
  let made = 0;
  let n = 0;
  const open = new Set<Socket>();
  const next = (): void => {
    if (stopped) return;
    const volley = VOLLEYS[n % VOLLEYS.length]!(n++);
    const socket = connect(port, "127.0.0.1");
    open.add(socket);
    socket.on("connect", () => {
      made++;
      socket.write(volley);
      setTimeout(() => socket.destroy(), n % 7);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      open.delete(socket);
      setTimeout(next, 1);
    });
  };
  for (let i = 0; i < parallel; i++) next();
  return {
    aim: (next) => void (port = next),
    stop: async () => {
      stopped = true;
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => setTimeout(resolve, 20));
      return made;
    },
  };
}
