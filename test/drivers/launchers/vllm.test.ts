import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test, type TestContext } from "node:test";
import { LocalLauncher } from "../../../src/drivers/launchers/local.ts";
import { headlessCommand, VllmLauncher } from "../../../src/drivers/launchers/vllm.ts";
import { causeIn, readVllmLine, VLLM_STEPS } from "../../../src/drivers/launchers/vllm-output.ts";

const recorded = (name: string): string[] =>
  readFileSync(`test/data/vllm-output/${name}.txt`, "utf8").split("\n");

const node = {
  model: "some/model",
  size: 4,
  firstRank: 2,
  ranks: 2,
  address: "10.0.0.1",
  rpcPort: 29550,
  flags: ["--enable-expert-parallel"],
};

test("the command of a node is the form that a foreign head can use", () => {
  assert.equal(
    headlessCommand(node).join(" "),
    "vllm serve some/model --headless --data-parallel-size 4 --data-parallel-size-local 2 " +
      "--data-parallel-start-rank 2 --data-parallel-address 10.0.0.1 --data-parallel-rpc-port 29550 " +
      "--enable-expert-parallel",
  );
});

for (
  const [version, skipped] of [
    ["0.12.0-dense", []],
    ["0.32.0-moe", ["warming-up"]],
  ] as const
) {
  test(`the output of a real start of ${version} is read step by step, for both ranks`, () => {
    const steps = recorded(version).map(readVllmLine).filter((p) => p !== null);
    const seen = [...new Set(steps.map((p) => p.step))];
    assert.deepEqual(seen, VLLM_STEPS.filter((s) => !(skipped as readonly string[]).includes(s)));
    for (const rank of [0, 1]) {
      assert.ok(
        steps.some((p) => p.rank === rank && p.step === "allocating-cache"),
        `rank ${rank}`,
      );
    }
  });
}

test("the first cause of a failed start is found among the tracebacks of those who waited for it", () => {
  assert.equal(causeIn(recorded("0.12.0-failed")), "IndexError: list index out of range");
  assert.equal(causeIn(recorded("0.32.0-moe")), null);
});

/** A `vllm` that says what a real one said, and then stays or ends. */
function pretend(directory: string, output: string, then: string): string {
  const file = join(directory, "vllm");
  writeFileSync(
    file,
    `#!/bin/sh\ncat ${process.cwd()}/test/data/vllm-output/${output}.txt\n${then}\n`,
  );
  chmodSync(file, 0o700);
  return file;
}

async function launcher(t: TestContext): Promise<{ vllm: VllmLauncher; directory: string }> {
  const directory = mkdtempSync(join(tmpdir(), "mv-"));
  const vllm = new VllmLauncher(await LocalLauncher.open({ logs: join(directory, "logs") }));
  t.after(async () => {
    await vllm.close(200);
    rmSync(directory, { recursive: true, force: true });
  });
  return { vllm, directory };
}

test("a launch reports its steps while it starts, and its ranks and cause when it fails", async (t) => {
  const { vllm, directory } = await launcher(t);
  const program = pretend(directory, "0.12.0-failed", "sleep 0.5; exit 1");
  const steps: string[] = [];
  vllm.progress((id, { step, rank }) => steps.push(`${id} ${rank ?? "-"} ${step}`));
  const ended = new Promise((resolve) => vllm.exited(resolve));
  await vllm.start({ id: "n1", node: { ...node, program }, env: {}, cwd: null });
  const { ranks, end } = await ended as { ranks: number[]; end: unknown };
  assert.deepEqual([ranks, end], [[2, 3], { kind: "exit", code: 1 }]);
  assert.ok(steps.includes("n1 - launching"), steps.join());
  assert.ok(steps.includes("n1 0 loading-weights"), steps.join());
  assert.equal(vllm.cause("n1"), "IndexError: list index out of range");
});

test("without vllm on the path nothing is started, and the error says what to do", async (t) => {
  const { vllm, directory } = await launcher(t);
  await assert.rejects(
    vllm.start({ id: "n1", node, env: { PATH: directory }, cwd: null }),
    {
      code: "program-missing",
      message: /^vLLM's command cannot be started: vllm was not found in PATH .*pip install vllm/,
    },
  );
});
