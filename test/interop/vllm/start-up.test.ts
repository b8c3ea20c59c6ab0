/** Real engines form up with Muster as their head, or do not and are told apart. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import process from "node:process";
import { test } from "node:test";
import { ClusterError } from "../../../src/coordinator.ts";
import { selfCommand } from "../../../src/drivers/keeper/mod.ts";
import { sendSignal } from "../../../src/drivers/process-table.ts";
import { ENVIRONMENT, head, model, pidOf, SMALL, until, VERSIONS } from "./head.ts";

/** Why the cluster did not form up. */
async function failure(ready: Promise<unknown>): Promise<ClusterError> {
  const error = await ready.then(() => null, (e) => e);
  assert.ok(error instanceof ClusterError, `a cluster error, not ${error}`);
  return error;
}

for (const vllm of VERSIONS) {
  const options = vllm.missing ? { skip: vllm.missing } : { timeout: 600_000 };
  const named = (what: string): string => `vLLM ${vllm.version}: ${what}`;

  test(
    named("muster serve starts two dense ranks in one process, and they form up"),
    options,
    async (t) => {
      const { directory, model: path } = model(t, "dense");
      const [program, ...self] = selfCommand();
      const serve = spawn(program!, [
        ...self,
        "serve",
        "--launch",
        "vllm",
        "--vllm",
        vllm.command,
        "--model",
        path,
        "--generation",
        vllm.generation,
        "--data-parallel-size",
        "2",
        "--data-parallel-address",
        "127.0.0.1",
        "--data-parallel-rpc-port",
        "0",
        "--directory",
        directory,
        "--engine-args",
        SMALL.join(" "),
        "--once",
        "--json",
      ], {
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, ...ENVIRONMENT },
      });
      let out = "";
      serve.stdout!.on("data", (chunk) => out += chunk);
      const code = await new Promise((resolve) => serve.on("close", resolve));
      const status = JSON.parse(out);
      assert.deepEqual([code, status.failure], [0, null], out);
      // 1 GiB a rank of 2 layers with 2 heads of 32 in 16 bits, 128 tokens a block.
      assert.deepEqual(status.blocks, { sum: 32_768, min: 16_384, max: 16_384 });
    },
  );

  test(named("one mixture-of-experts rank in each of two processes"), options, async (t) => {
    const { coordinator } = await head(t, { vllm, kind: "moe", perLaunch: 1 });
    const status = await coordinator.ready();
    assert.deepEqual(status.ranks.map((r) => [r.rank, r.state, r.launch]), [
      [0, "ready", "vllm-0"],
      [1, "ready", "vllm-1"],
    ]);
    assert.deepEqual(status.notes, []);
    assert.deepEqual(status.strangers, []);
  });

  test(
    named("an engine killed while it loads is named, and nothing is left"),
    options,
    async (t) => {
      const { coordinator, said } = await head(t, { vllm, kind: "moe", perLaunch: 1 });
      await until(
        () => coordinator.status().ranks[1]!.state === "connected",
        "rank 1 has said HELLO",
      );
      await until(() => pidOf(said("vllm-1"), 1) !== null, "rank 1 has said its pid");
      sendSignal(pidOf(said("vllm-1"), 1)!, "SIGKILL");
      const { record } = await failure(coordinator.ready());
      // Its parent, the command that we started, ends too and says with what.
      assert.deepEqual([record.code, record.rank, record.phase], ["engine-exited", 1, "load"]);
      assert.match(
        record.sentence,
        /^Rank 1 \(process vllm-1, pid \d+\) exited with code \d+ while loading/,
      );
    },
  );

  test(named("a rank with another configuration is found by its hash"), options, async (t) => {
    const { coordinator } = await head(t, {
      vllm,
      kind: "moe",
      perLaunch: 1,
      // In the hash of every release, and without an effect on how the ranks talk to each other.
      launches: ([first, second]) => [
        first!,
        { ...second!, argv: [...second!.argv, "--dbo-decode-token-threshold", "33"] },
      ],
    });
    const { record } = await failure(coordinator.ready());
    assert.equal(record.code, "configuration-mismatch");
  });

  test(named("a rank that is left out is missing at the deadline"), options, async (t) => {
    const { coordinator } = await head(t, {
      vllm,
      kind: "moe",
      perLaunch: 1,
      launches: ([first]) => [first!],
      limits: { connectMs: 120_000 },
    });
    const { record } = await failure(coordinator.ready());
    assert.deepEqual([record.code, record.rank, record.phase], ["engine-late", 1, "connect"]);
    assert.deepEqual(record.missing.map((m) => m.rank), [0, 1]);
  });
}
