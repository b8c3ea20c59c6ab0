/** An engine that stands still while the others commit: pausing is collective, so all of them wait, and somebody has to say for whom. */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { Coordinator } from "../../src/coordinator.ts";
import { ScalingFailed } from "../../src/host/scaler.ts";
import { joiningEngine, referenceEngines } from "../../src/testing/mod.ts";

const FAST = ["--boot-ms", "0", "--load-ms", "0", "--quiet"];

test(
  "an engine that is frozen during the commit is named among all that wait, and the operation completes once it goes on",
  {
    timeout: 120_000,
  },
  async () => {
    await using coordinator = await Coordinator.start({
      cluster: { dataParallelSize: 3, moe: true },
      launches: (topology) => referenceEngines(topology, () => FAST),
      scaling: {
        joiner: joiningEngine(FAST),
        settleMs: 2_000,
        limits: { utilityMs: 500, retryMs: 50 },
      },
    });
    const { ranks } = await coordinator.ready();
    // Nobody asks the engine that is to leave before the commit.
    const pid = ranks[2]!.pid!;
    process.kill(pid, "SIGSTOP");
    const operation = await coordinator.scale(2);
    try {
      await coordinator.scaling!.until(() =>
        operation.record().participants.filter((p) => p.state.includes(".pausing")).length === 3 ||
        undefined
      );
      await operation.abort("it takes too long");
      await assert.rejects(operation.completed(), (error: ScalingFailed) => {
        assert.equal(error.code, "scaling-in-doubt");
        const { phase, waitingFor, silentEngines } = error.record;
        assert.deepEqual([phase, waitingFor, silentEngines], ["inDoubt", [0, 1, 2], [2]]);
        assert.match(
          error.message,
          /It waits for ranks 0, 1, 2\. The engine of rank 2 does not answer at all/,
        );
        return true;
      });
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await coordinator.scaling!.until(() => operation.record().phase === "completed" || undefined);
    const { effectiveSize, safeToDelete } = operation.record();
    assert.deepEqual([effectiveSize, safeToDelete], [2, [2]]);
  },
);
