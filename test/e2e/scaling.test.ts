/** A cluster of processes that scales over HTTP, as an operator does it. */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { Muster, muster } from "./support.ts";

const FAST = ["--engine-args", "--boot-ms 0 --load-ms 50"];

test("muster serve, scale, status: three processes become two over HTTP, a refusal says why, the service ends cleanly", async () => {
  const serve = new Muster([
    "serve",
    "--launch",
    "reference",
    "--data-parallel-size",
    "3",
    "--moe",
    "--max-size",
    "4",
    "--http",
    "0",
    ...FAST,
  ]);
  try {
    const [, url] = await serve.said(/the API is at (\S+)/);
    await serve.said(/cluster formed/);
    const scaled = await muster("scale", "2", "--url", url!, "--drain-timeout", "60s");
    assert.deepEqual([scaled.code, scaled.out], [0, "Scaled to 2 data parallel engines\n"]);
    const status = await muster("status", "--url", url!);
    // The leaver may still be on its way out.
    assert.match(status.out, /2\/2 ready/);
    assert.match(status.out, /safe to delete: ranks 2/);
    const refused = await muster("scale", "9", "--url", url!);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /--elastic-ep-max-dp-size is 4/);
    assert.match((await muster("abort", "--url", url!)).out, /no operation runs/);
    const anew = await muster("restart-engines", "--url", url!);
    assert.deepEqual([anew.code, anew.out], [0, "all engines start anew\n"]);
    await serve.said(/cluster regrouping[\s\S]*cluster formed/);
    assert.match((await muster("status", "--url", url!)).out, /2\/2 ready/);
  } finally {
    process.kill(serve.child.pid!, "SIGTERM");
  }
  const { code, out } = await serve.ended;
  assert.equal(code, 0);
  assert.match(out, /stopped: 3 processes ended, none is left/);
});

test("muster scale: nobody answers", async () => {
  const { code, err } = await muster("scale", "2", "--url", "http://127.0.0.1:1");
  assert.notEqual(code, 0);
  assert.match(err, /nobody answers at http:\/\/127.0.0.1:1/);
});
