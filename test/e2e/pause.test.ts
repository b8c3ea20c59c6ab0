/** Pause and resume of a whole cluster, and a rank that never answers. */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { Coordinator, GroupCallError } from "../../src/mod.ts";
import { referenceEngines } from "../../src/testing/mod.ts";

test("all ranks pause and resume together; who does not answer is named, and asking again is harmless", async () => {
  const coordinator = await Coordinator.start({
    cluster: { dataParallelSize: 3, moe: true },
    launches: (topology) => referenceEngines(topology, () => ["--boot-ms", "0", "--load-ms", "0"]),
  });
  try {
    await assert.rejects(coordinator.pause(), /await ready\(\) first/);
    const { processes } = await coordinator.ready();
    await coordinator.pause("keep");
    await coordinator.pause("keep");
    await coordinator.resume();
    await coordinator.resume();
    // Stopped, it lives and answers nothing.
    const { pid } = processes.find((p) => p.ranks[0] === 1)!;
    process.kill(pid!, "SIGSTOP");
    try {
      await assert.rejects(
        coordinator.pause("keep", { deadlineMs: 2000 }),
        (error: GroupCallError) => {
          assert.equal(error.code, "rank-unanswered");
          // A pause is collective: no rank is done while one of them is silent.
          assert.deepEqual(error.unanswered.map((u) => u.rank).sort(), [0, 1, 2]);
          assert.deepEqual(error.silent, [1]);
          assert.match(
            error.message,
            /Silent: rank 1\. Alive and waiting for the others: ranks \d and \d\./,
          );
          return true;
        },
      );
    } finally {
      process.kill(pid!, "SIGCONT");
    }
    await coordinator.pause("keep");
    await coordinator.resume();
  } finally {
    await coordinator.close();
  }
});
