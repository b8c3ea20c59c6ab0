import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { probe } from "../../src/drivers/preflight-probe.ts";
import type { Questions } from "../../src/planning/mod.ts";

const questions = (q: Partial<Questions>): Questions => ({
  names: [],
  ports: [],
  directories: [],
  variable: "CUDA_VISIBLE_DEVICES",
  ...q,
});
const listening = (options: object): Promise<Server> =>
  new Promise((done) => {
    const server = createServer((socket) => socket.destroy());
    server.listen(options, () => done(server));
  });
const closed = (server: Server): Promise<void> => new Promise((done) => server.close(() => done()));

test("a port is in use while somebody listens, and free afterwards", async () => {
  const server = await listening({ port: 0, host: "127.0.0.1" });
  const port = (server.address() as AddressInfo).port;
  const ask = async () =>
    (await probe(questions({ ports: [{ host: "127.0.0.1", port }] }))).ports[0]?.state;
  assert.equal(await ask(), "in-use");
  await closed(server);
  assert.equal(await ask(), "free");
});

test("an address of another host is not here", async () => {
  const { ports, interfaces } = await probe(
    questions({ ports: [{ host: "192.0.2.1", port: 29550 }] }),
  );
  assert.equal(ports[0]?.state, "not-here");
  assert.ok(interfaces.includes("127.0.0.1"));
});

test("a name that stands for something, and one that stands for nothing", async () => {
  const { resolutions } = await probe(questions({ names: ["localhost", "nowhere.invalid"] }));
  assert.ok(resolutions["localhost"]!.addresses.length > 0);
  assert.deepEqual(resolutions["nowhere.invalid"]!.addresses, []);
  assert.ok(resolutions["nowhere.invalid"]!.error);
});

test("directories: missing, a file, and one with a live socket; other people's sockets do not count", async () => {
  const directory = await mkdtemp(join(tmpdir(), "mp-"));
  const live = await listening({ path: join(directory, "r0-handshake") });
  const foreign = await listening({ path: join(directory, "their.sock") });
  const { directories } = await probe(
    questions({ directories: [directory, join(directory, "none"), "/etc/hosts"] }),
  );
  await Promise.all([closed(live), closed(foreign)]);
  await rm(directory, { recursive: true });
  assert.deepEqual(directories, [
    {
      path: directory,
      state: "writable",
      sockets: [{ path: join(directory, "r0-handshake"), state: "live" }],
    },
    { path: join(directory, "none"), state: "missing", sockets: [] },
    { path: "/etc/hosts", state: "not-a-directory", sockets: [] },
  ]);
});
