import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { freePorts } from "../../src/drivers/ports.ts";

test("drawn ports are different and can be bound", async () => {
  const ports = await freePorts(5, "127.0.0.1");
  assert.equal(new Set(ports).size, 5);
  for (const port of ports) {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", resolve);
    });
    await new Promise((resolve) => server.close(resolve));
  }
});

test("for a host that is not this one, ports of this one are taken", async () => {
  assert.equal((await freePorts(2, "192.0.2.77")).length, 2);
});
