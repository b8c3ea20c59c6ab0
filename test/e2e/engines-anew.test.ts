/** An operation that leaves engines with a reconfiguration they cannot abandon: all start anew, by policy or when they are told to. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Coordinator } from "../../src/coordinator.ts";
import type { Operation } from "../../src/host/scaler.ts";
import { joiningEngine, referenceEngines } from "../../src/testing/mod.ts";

const FAST = ["--boot-ms", "0", "--load-ms", "0"];

/** Two ranks; the first process that is to join them ends when it is told to, before it says anything. */
async function cluster(
  t: TestContext,
  enginesAfterAbort: "restart" | "hold",
): Promise<{ coordinator: Coordinator; failToJoin: () => Promise<Operation> }> {
  const directory = mkdtempSync(join(tmpdir(), "ma-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const joiner = joiningEngine(FAST);
  const marker = join(directory, "failed-once");
  const signal = join(directory, "fail-now");
  const coordinator = await Coordinator.start({
    cluster: { dataParallelSize: 2, moe: true },
    directory,
    launches: (topology) => referenceEngines(topology, () => FAST),
    scaling: {
      maxSize: 3,
      enginesAfterAbort,
      joiner: {
        ...joiner,
        argv: [
          "sh",
          "-c",
          `[ -e "${marker}" ] || { touch "${marker}"; until [ -e "${signal}" ]; do sleep 0.1; done; exit 9; }; exec "$@"`,
          "sh",
          ...joiner.argv,
        ],
      },
    },
  });
  t.after(() => coordinator.close());
  await coordinator.ready();
  const failToJoin = async () => {
    const operation = await coordinator.scale(3);
    await coordinator.scaling!.until(() => {
      const { participants } = operation.record();
      const waiting = participants.filter((p) => p.state === "preparing.awaitingEngines");
      return waiting.length === 2 || undefined;
    });
    writeFileSync(signal, "");
    await assert.rejects(operation.completed(), /process of new rank 2 ended with code 9/);
    return operation;
  };
  return { coordinator, failToJoin };
}

const pids = (coordinator: Coordinator): (number | null)[] =>
  coordinator.status().ranks.filter((r) => r.state === "ready").map((r) => r.pid);

test("by policy: a joiner dies, the engines that waited for it start anew, and the next operation succeeds", async (t) => {
  const { coordinator, failToJoin } = await cluster(t, "restart");
  const before = pids(coordinator);
  const failed = await failToJoin();
  assert.deepEqual(failed.record().enginesToRestart, [0, 1]);
  const status = await coordinator.ready();
  assert.deepEqual([status.phase, status.size, status.ready], ["formed", 2, 2]);
  assert.ok(
    !pids(coordinator).some((pid) => before.includes(pid)),
    "every engine is a new process",
  );
  const next = await coordinator.scale(3);
  assert.equal((await next.completed()).phase, "completed");
  assert.equal(coordinator.status().ready, 3);
});

test("held: the next operation is refused with the reason, and goes through once all engines were started anew", async (t) => {
  const { coordinator, failToJoin } = await cluster(t, "hold");
  const before = pids(coordinator);
  await failToJoin();
  assert.deepEqual(pids(coordinator), before, "they serve on");
  assert.deepEqual(coordinator.scaling!.status().unusable, [0, 1]);
  await assert.rejects(
    coordinator.scale(3),
    /^ScalingRefused: the engines of ranks 0, 1 hold a reconfiguration that they cannot abandon: all engines have to start anew first \(not done by itself: the policy is to hold them\)$/,
  );
  assert.equal(await coordinator.restartEngines(), null);
  await coordinator.ready();
  await (await coordinator.scale(3)).completed();
  // Once more, with a rank that had joined: it is launched like any other now.
  assert.equal(await coordinator.restartEngines(), null);
  assert.equal((await coordinator.ready()).ready, 3);
  const down = await (await coordinator.scale(2)).completed();
  assert.deepEqual(down.safeToDelete, [2]);
  assert.equal(coordinator.status().failure, null);
});
