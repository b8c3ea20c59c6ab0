import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { ClusterError, Coordinator } from "../../../src/coordinator.ts";
import { causeSince } from "../../../src/drivers/launchers/first-cause.ts";

const RECORDED = "test/data/vllm-output/0.12.0-failed.txt";

test("the first cause is looked for from where this life's output begins", () => {
  assert.equal(causeSince(RECORDED, 0), "IndexError: list index out of range");
  assert.equal(causeSince(RECORDED, statSync(RECORDED).size), null);
  assert.equal(causeSince("/nowhere/log", 0), null);
});

test("a failed start-up shows the first cause before the last lines", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "mf-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const program = join(directory, "engine");
  const more = "i=0; while [ $i -lt 40 ]; do echo waited for rank 1; i=$((i+1)); done";
  writeFileSync(program, `cat ${process.cwd()}/${RECORDED}; ${more}; exit 1\n`);
  const coordinator = await Coordinator.start({
    cluster: { dataParallelSize: 1 },
    directory,
    launches: [{
      id: "e",
      ranks: [0],
      argv: ["sh", program],
      env: {},
      cwd: null,
      inherit: true,
    }],
  });
  t.after(() => coordinator.close());
  await assert.rejects(coordinator.ready(), ClusterError);
  const { tail } = coordinator.status().failure!;
  assert.deepEqual([tail[0], tail.at(-1)], [
    "IndexError: list index out of range",
    "waited for rank 1",
  ]);
});
