/** Scaling over real stores: the machines in a host, TCPStore servers on ephemeral ports, engines in memory. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ScalingFailed, ScalingRefused } from "../../src/host/scaler.ts";
import { ScalingGroup, type ScalingGroupOptions } from "../../src/testing/scaling-group.ts";

async function withGroup(
  options: ScalingGroupOptions,
  act: (group: ScalingGroup) => Promise<void>,
): Promise<void> {
  const group = await ScalingGroup.start(options);
  try {
    await act(group);
  } finally {
    await group.close();
  }
}

test("four ranks become two, and the record says which ranks can be deleted", () =>
  withGroup({ size: 4 }, async ({ scaler, engines }) => {
    const operation = await scaler.scale(2);
    const record = await operation.completed();
    assert.equal(record.phase, "completed");
    assert.equal(record.effectiveSize, 2);
    assert.deepEqual(record.safeToDelete, [2, 3]);
    assert.equal(scaler.size, 2);
    assert.deepEqual([...engines.engines.values()].map((e) => e.gone), [false, false, true, true]);
  }));

test("two ranks become four: new ranks are greeted, and everybody serves in the new group", () =>
  withGroup({ size: 2 }, async ({ scaler, engines }) => {
    await (await scaler.scale(4)).completed();
    assert.equal(scaler.size, 4);
    assert.deepEqual([...engines.engines.values()].map((e) => e.size), [4, 4, 4, 4]);
    assert.deepEqual([...engines.engines.values()].map((e) => e.paused), [
      false,
      false,
      false,
      false,
    ]);
  }));

test("one rank becomes two, and one again", () =>
  withGroup({ size: 1 }, async ({ scaler }) => {
    await (await scaler.scale(2)).completed();
    await (await scaler.scale(1)).completed();
    assert.equal(scaler.size, 1);
  }));

test("four become six become three", () =>
  withGroup({ size: 4 }, async ({ scaler, engines }) => {
    await (await scaler.scale(6)).completed();
    const down = await (await scaler.scale(3)).completed();
    assert.deepEqual(down.safeToDelete, [3, 4, 5]);
    const serving = [...engines.engines.values()].filter((e) => !e.gone);
    assert.deepEqual(serving.map((e) => [e.rank, e.size]), [[0, 3], [1, 3], [2, 3]]);
  }));

test("with polls alone, as the original waits, the same happens", () =>
  withGroup({ size: 3, store: { waiting: "polls" } }, async ({ scaler }) => {
    await (await scaler.scale(2)).completed();
    assert.equal(scaler.size, 2);
  }));

test("the size that serves is reached at once; impossible targets are refused with the reason", () =>
  withGroup({ size: 3, maxSize: 4, experts: 8, redundant: 0 }, async ({ scaler }) => {
    const same = await scaler.scale(3);
    assert.equal((await same.completed()).phase, "completed");
    await assert.rejects(
      scaler.scale(5),
      (error) =>
        error instanceof ScalingRefused && error.code === "scaling-refused" &&
        error.message === "Cannot scale to data_parallel_size 5; --elastic-ep-max-dp-size is 4.",
    );
    await assert.rejects(scaler.scale(2), /cannot retain all model experts/);
    await assert.rejects(scaler.scale(0), /must be a positive integer/);
  }));

test("only the highest ranks can retire, and a refusal says so", () =>
  withGroup({ size: 4 }, async ({ scaler }) => {
    await assert.rejects(
      scaler.scale(2, { retire: [0, 3] }),
      /ranks 0, 3 cannot be retired: engines keep their ranks/,
    );
    const operation = await scaler.scale(2, { retire: [3, 2] });
    await operation.completed();
  }));

test("the same target again is the same operation, another is refused with the one that runs", () =>
  withGroup({ size: 3 }, async ({ scaler, engines }) => {
    engines.faults.set("1 reinitialize_distributed", "silent");
    const first = await scaler.scale(2);
    const again = await scaler.scale(2);
    assert.equal(again.id, first.id);
    await assert.rejects(
      scaler.scale(4),
      (error) =>
        error instanceof ScalingRefused && error.code === "scaling-conflict" &&
        error.running?.operation === first.id && error.running.target === 2,
    );
    await first.abort();
    await assert.rejects(first.completed(), ScalingFailed);
  }));

test("an engine that fails ends the operation everywhere, is named, and after its restart the next attempt works", () =>
  withGroup({ size: 3 }, async ({ scaler, engines }) => {
    engines.faults.set("1 reinitialize_distributed", "fails");
    const failed = await scaler.scale(2);
    await assert.rejects(
      failed.completed(),
      (error) =>
        error instanceof ScalingFailed && error.code === "scaling-failed" &&
        error.record.firstError?.rank === 1 && error.record.firstError.code === "engine-failed",
    );
    const { enginesToRestart, effectiveSize } = failed.record();
    assert.ok(enginesToRestart.includes(1));
    assert.equal(effectiveSize, 3);
    engines.faults.clear();
    for (const rank of enginesToRestart) engines.restart(rank, 3);
    await (await scaler.scale(2)).completed();
    assert.equal(scaler.size, 2);
  }));

test("an engine that refuses the commit makes every rank say failed, none completed", () =>
  withGroup({ size: 3 }, async ({ scaler, engines }) => {
    engines.faults.set("1 commit_prepared_elastic_ep", "fails");
    const operation = await scaler.scale(2);
    await assert.rejects(operation.completed(), /on demand/);
    assert.deepEqual(operation.record().enginesToRestart, [0, 1, 2]);
    assert.equal(scaler.size, 3);
  }));

test("a signal aborts, and the deadline of the whole does too", () =>
  withGroup({ size: 2 }, async ({ scaler, engines }) => {
    engines.faults.set("0 reinitialize_distributed", "silent");
    const controller = new AbortController();
    const first = await scaler.scale(1, { signal: controller.signal });
    controller.abort("enough");
    await assert.rejects(first.completed(), { message: "Scaling to 1 rank failed. Enough." });
    engines.restart(0, 2);
    const second = await scaler.scale(1, { deadlineMs: 50 });
    await assert.rejects(second.completed(), /within its deadline/);
    engines.faults.clear();
    engines.restart(0, 2);
    await (await scaler.scale(1)).completed();
  }));

test("an operation is observed while it runs, and found by its id afterwards", () =>
  withGroup({ size: 3 }, async ({ scaler }) => {
    const phases = new Set<string>();
    const operation = await scaler.scale(2, { operation: "down" });
    operation.onChange((record) => phases.add(record.phase));
    await operation.completed();
    assert.deepEqual([...phases], ["preparing", "committing", "completed"]);
    assert.equal(scaler.find("down")?.record().phase, "completed");
    const again = await scaler.scale(2, { operation: "down" });
    assert.equal((await again.completed()).phase, "completed");
    assert.equal(scaler.find("other"), undefined);
  }));

test("whoever waits for an operation is told when its coordinator ends before it does", async () => {
  const group = await ScalingGroup.start({ size: 2 });
  group.engines.faults.set("1 reinitialize_distributed", "silent");
  const operation = await group.scaler.scale(3);
  const waiting = assert.rejects(operation.completed(), { code: "host-closed" });
  await group.close();
  await waiting;
  await assert.rejects(operation.completed(), { code: "host-closed" });
});
