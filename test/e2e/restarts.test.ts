import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Coordinator } from "../../src/coordinator.ts";
import { referenceEngines } from "../../src/testing/mod.ts";
import { muster } from "./support.ts";

test("an engine that crashes once while loading is started again, and the cluster forms up", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "mr-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const marker = join(directory, "crashed");
  const coordinator = await Coordinator.start({
    cluster: { dataParallelSize: 2 },
    directory,
    launches: (topology) =>
      referenceEngines(topology, () => ["--boot-ms", "0", "--load-ms", "50"]).map((launch) => ({
        ...launch,
        // The first life of rank 1 ends before it says anything.
        argv: launch.ranks[0] === 0 ? launch.argv : [
          "sh",
          "-c",
          `[ -e "${marker}" ] || { touch "${marker}"; echo not yet; exit 9; }; exec "$@"`,
          "sh",
          ...launch.argv,
        ],
        restarts: {
          budget: 1,
          calmMs: 60_000,
          backOff: { firstMs: 50, factor: 1, maxMs: 50 },
        },
      })),
  });
  t.after(() => coordinator.close());
  const status = await coordinator.ready();
  assert.deepEqual(status.ranks.map((r) => r.state), ["ready", "ready"]);
});

test("when every restart was in vain the failure is the last exit", async () => {
  const { code, out } = await muster(
    ...["serve", "--launch", "reference", "--data-parallel-size", "1"],
    ...["--restarts", "2", "--restart-after", "10ms"],
    ...["--engine-args", "--fault crash-before-hello --exit-code 7"],
  );
  assert.equal(code, 1);
  assert.equal(out.match(/process engine-0 runs, pid/g)?.length, 3, out);
  assert.match(out, /✗ Rank 0 \(process engine-0, pid \d+\) exited with code 7 before its HELLO/);
});
