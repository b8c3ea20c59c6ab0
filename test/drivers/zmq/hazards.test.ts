import assert from "node:assert/strict";
import { test } from "node:test";
import { fireAt } from "./fire.ts";
import { type Ended, run } from "./support.ts";

/** Closes a ROUTER `count` times under fire, in a process of its own. */
async function closeUnderFire(
  kind: "muster" | "plain",
  count: number,
): Promise<Ended & { made: number }> {
  let fire: ReturnType<typeof fireAt> | undefined;
  const ended = await run("close-under-fire.ts", [kind, String(count)], (line) => {
    const port = /^port (\d+)$/.exec(line)?.[1];
    if (port === undefined) return;
    if (fire === undefined) fire = fireAt(Number(port));
    else fire.aim(Number(port));
  });
  return { ...ended, made: await fire?.stop() ?? 0 };
}

test("a ROUTER closed 200 times while strangers throw bytes at it: the process survives", async (t) => {
  const ended = await closeUnderFire("muster", 200);
  t.diagnostic(`${ended.made} connections of strangers`);
  assert.equal(ended.signal, null, ended.output);
  assert.equal(ended.code, 0, ended.output);
  assert.match(ended.output, /survived/);
  assert.ok(ended.made > 200, `${ended.made} connections`);
});

test("a ROUTER closed with 1,500 connections to be told of: the process and its other sockets go on", async () => {
  const ended = await run("close-after-crowd.ts", []);
  assert.equal(ended.output, "crowd 0\nheard\n");
  assert.equal(ended.code, 0);
});

test("without a ZAP domain libzmq aborts the process, which is why every socket has one", async (t) => {
  // About one close in two to ten aborts: a thousand that all survive would mean that the hazard is gone.
  for (let attempt = 1; attempt <= 5; attempt++) {
    const ended = await closeUnderFire("plain", 200);
    t.diagnostic(`attempt ${attempt}: ended by ${ended.signal ?? ended.code}`);
    if (/survived/.test(ended.output)) continue;
    assert.notEqual(ended.code, 0);
    assert.match(ended.output, /Resource temporarily unavailable|zmtp_engine|abort/i);
    return;
  }
  assert.fail("1,000 closes without a ZAP domain, and not one abort");
});
