import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { type AddressInfo, connect, createServer } from "node:net";
import { test } from "node:test";
import { onChunk } from "../../src/drivers/tcpstore/chunks.ts";
import { TcpStoreClient, TcpStoreServer } from "../../src/drivers/tcpstore/mod.ts";

const MIB = 1024 * 1024;
const deno = "Deno" in globalThis;

interface Heard {
  readonly how: string;
  readonly bytes: number;
  readonly digest: string;
  readonly longest: number;
}

/** Sends 8 MiB to a server that pauses now and then, and answers what it heard until the end of the stream. */
function hear(inPlace: boolean, sent: Buffer): Promise<Heard> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      const hash = createHash("sha256");
      let [bytes, longest] = [0, 0];
      const how = onChunk(socket, (chunk) => {
        hash.update(chunk);
        bytes += chunk.length;
        longest = Math.max(longest, chunk.length);
        if (bytes % 7 === 0) {
          socket.pause();
          setTimeout(() => socket.resume(), 1);
        }
      }, inPlace);
      socket.on("error", reject);
      socket.on("close", () => {
        server.close();
        resolve({ how, bytes, digest: hash.digest("hex"), longest });
      });
    });
    server.listen(0, "127.0.0.1", () => {
      const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
      client.on("error", reject);
      client.end(sent);
    });
  });
}

test("chunks that are read in place and chunks that come as events are the same bytes", async () => {
  const sent = Buffer.alloc(8 * MIB);
  for (let i = 0; i < sent.length; i += 4) sent.writeUInt32LE(Math.imul(i, 0x9e3779b1) >>> 0, i);
  const digest = createHash("sha256").update(sent).digest("hex");
  for (const inPlace of [true, false]) {
    const heard = await hear(inPlace, sent);
    assert.deepEqual([heard.bytes, heard.digest], [sent.length, digest]);
    assert(heard.longest <= 64 * 1024, `a chunk of ${heard.longest} bytes`);
    assert.equal(heard.how, inPlace && !deno ? "in place" : "events");
  }
});

test("connections whose chunks share the buffer do not see each other's bytes", async (t) => {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  // Each says half a request, then the other half: what is left of the first must have been copied.
  const count = 50;
  const sockets = await Promise.all(
    Array.from({ length: count }, () =>
      new Promise<ReturnType<typeof connect>>((resolve) => {
        const socket = connect(server.port, "127.0.0.1", () => resolve(socket));
      })),
  );
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  const requests = sockets.map((_, i) => {
    const key = Buffer.from(`/key/${i}`);
    const head = Buffer.alloc(9);
    head[0] = 1;
    head.writeUInt32LE(key.length, 1);
    const value = Buffer.alloc(1000, i);
    const length = Buffer.alloc(8);
    length.writeUInt32LE(value.length, 0);
    return Buffer.concat([Buffer.from("00cef7853c", "hex"), head, key, length, value]);
  });
  sockets.forEach((socket, i) => socket.write(requests[i]!.subarray(0, 500)));
  while (server.stats.bufferedBytes < count * (500 - 5)) await new Promise((r) => setTimeout(r, 5));
  sockets.forEach((socket, i) => socket.write(requests[i]!.subarray(500)));
  while (server.stats.keys < count) await new Promise((r) => setTimeout(r, 5));
  const store = await TcpStoreClient.connect({ host: "127.0.0.1", port: server.port });
  for (let i = 0; i < count; i++) {
    assert.deepEqual(Buffer.from(await store.get(`key/${i}`)), Buffer.alloc(1000, i));
  }
  store.close();
});
