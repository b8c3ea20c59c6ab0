import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import process from "node:process";

/** Longest chunk, and the size of the buffer that all sockets share. */
const CHUNK_BYTES = 64 * 1024;

/** What Node's sockets have beside their documented members: see `onChunk`. */
interface Internals {
  readonly _handle?: { useUserBuffer?(buffer: Uint8Array): void } | null;
  [name: symbol]: unknown;
}

interface Names {
  readonly buffer: symbol;
  readonly callback: symbol;
}

let shared: Buffer | undefined;

/**
 * Has `take` called with each chunk that a socket reads. The bytes are lent: they are gone when `take` returns.
 *
 * Node allocates 64 KiB for every read and builds a `Buffer` and a stream event around it, which is a third of the
 * time that this server spends on a small request. A client socket can be given a buffer to read into instead (the
 * documented option `onread` of `net.connect`); a socket that a server accepts cannot. So the same two members that
 * `onread` sets are set here, if this Node has them; all sockets share one buffer, since chunks are taken at once.
 * Where they are missing (some later Node), on Deno, and when `inPlace` is false, chunks come as `data` events.
 *
 * Call it before the socket has read anything. `pause` and `resume` work either way.
 */
export function onChunk(
  socket: Socket,
  take: (chunk: Uint8Array) => void,
  inPlace: boolean = true,
): "in place" | "events" {
  const inside = socket as unknown as Internals;
  const names = inPlace ? namesIn(inside) : undefined;
  const handle = inside._handle;
  if (names === undefined || typeof handle?.useUserBuffer !== "function") {
    socket.on("data", take);
    return "events";
  }
  const buffer = shared ??= Buffer.allocUnsafeSlow(CHUNK_BYTES);
  handle.useUserBuffer(buffer);
  inside[names.buffer] = buffer;
  inside[names.callback] = (length: number): boolean => {
    take(buffer.subarray(0, length));
    return true;
  };
  return "in place";
}

let known: Names | null | undefined;

/** The names of the members that `onread` sets, looked up once. */
function namesIn(socket: Internals): Names | undefined {
  if (process.versions["deno"] !== undefined) return undefined;
  if (known === undefined) {
    const symbols = Object.getOwnPropertySymbols(socket);
    const named = (text: string) => symbols.find((each) => each.description === text);
    const [buffer, callback] = [named("kBuffer"), named("kBufferCb")];
    known = buffer === undefined || callback === undefined ? null : { buffer, callback };
  }
  return known ?? undefined;
}
