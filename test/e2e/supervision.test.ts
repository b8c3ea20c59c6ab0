import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ClusterError, Coordinator } from "../../src/coordinator.ts";
import { sendSignal } from "../../src/drivers/process-table.ts";
import { referenceEngines } from "../../src/testing/mod.ts";

test("an engine that dies while serving ends readiness; its record survives a restart, word for word", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "ms-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const open = () =>
    Coordinator.start({
      cluster: { dataParallelSize: 2 },
      journal: join(directory, "run"),
      launches: (topology) =>
        referenceEngines(topology, () => ["--boot-ms", "0", "--load-ms", "0"]),
    });
  const first = await open();
  t.after(() => first.close());
  const { ranks } = await first.ready();
  const failed = new Promise((resolve) =>
    first.subscribe(() => first.status().failure !== null && resolve(null))
  );
  const killed = performance.now();
  sendSignal(ranks[1]!.pid!, "SIGKILL");
  await failed;
  t.diagnostic(`noticed after ${Math.round(performance.now() - killed)} ms`);
  const { failure } = first.status();
  assert.match(
    failure!.sentence,
    /^Rank 1 \(process engine-1, pid \d+\) was killed by SIGKILL while serving, /,
  );
  await assert.rejects(first.ready(), ClusterError);
  await first.close();

  const second = await open();
  t.after(() => second.close());
  assert.deepEqual(second.status().failure, failure);
  await assert.rejects(second.ready(), ClusterError);
});

test("an engine whose parent lives on is seen to end by itself, where the parent speaks as vLLM's command does", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "ms-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const coordinator = await Coordinator.start({
    cluster: { dataParallelSize: 1 },
    directory,
    launches: (topology) =>
      referenceEngines(topology, () => ["--boot-ms", "0", "--load-ms", "0"]).map((launch) => ({
        ...launch,
        output: "vllm" as const,
        argv: [
          "sh",
          "-c",
          '"$@" & echo "(EngineCore_DP0 pid=$!) INFO Starting to load model m"; sleep 60',
          "sh",
          ...launch.argv,
        ],
      })),
  });
  t.after(() => coordinator.close());
  const steps: unknown[] = [];
  coordinator.observe((seen) => seen.type === "launch-step" && steps.push(seen));
  await coordinator.ready();
  const log = readFileSync(join(coordinator.logs, "engine-0.log"), "utf8");
  const pid = Number(/EngineCore_DP0 pid=(\d+)/.exec(log)![1]);
  // What names the process is a step too.
  while (steps.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  const failed = new Promise((resolve) =>
    coordinator.subscribe(() => coordinator.status().failure !== null && resolve(null))
  );
  const killed = performance.now();
  sendSignal(pid, "SIGKILL");
  await failed;
  t.diagnostic(`noticed after ${Math.round(performance.now() - killed)} ms`);
  assert.deepEqual(steps, [
    { type: "launch-step", launch: "engine-0", rank: 0, step: "loading-weights" },
  ]);
  const { code, rank, phase, sentence } = coordinator.status().failure!;
  assert.deepEqual([code, rank, phase], ["engine-exited", 0, "serve"]);
  assert.match(
    sentence,
    /^Rank 0 \(process engine-0, pid \d+\) ended with a status that nobody knows any more while serving/,
  );
});
