import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Muster, muster } from "./support.ts";

test("a coordinator that is killed in the middle of a scaling says what was under way when it is back, and ends it", async (t) => {
  const journal = mkdtempSync(join(tmpdir(), "mk-"));
  t.after(() => rmSync(journal, { recursive: true, force: true }));
  const command = [
    ...["serve", "--launch", "reference", "--data-parallel-size", "2", "--moe"],
    ...["--max-size", "4", "--http", "0", "--journal", journal, "--lease", "60s"],
    ...["--engine-args", "--boot-ms 0 --load-ms 1500"],
  ];
  const first = new Muster(command);
  const [, url] = await first.said(/the API is at (\S+)/);
  await first.said(/✓ 2 ranks formed up in .*\n {2}KV cache blocks: 2000 in all, 1000 each/);
  const scaling = muster("scale", "3", "--url", url!);
  await first.said(/2 to 3 ranks: preparing/);
  await first.said(/rank 2 joining/);
  first.kill("SIGKILL");
  await first.ended;
  assert.match((await scaling).err, /went away before it answered/);

  const second = new Muster(command);
  await second.said(/2 to 3 ranks was under way: preparing.*; it goes on/);
  await second.said(/ranks serve on/);
  await second.said(/2 to 3 ranks: completed\n/);
  const [, again] = await second.said(/the API is at (\S+)/);
  assert.match((await muster("status", "--url", again!)).out, /3\/3 ready/);
  second.kill("SIGINT");
  const { code, out } = await second.ended;
  assert.equal(code, 0, out);
  assert.match(out, /stopped: 3 processes ended, none is left\n$/);
  assert.doesNotMatch(out, /formed up in/);
});
