import { Command } from "commander";
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { planCommand } from "../../src/cli/commands/plan.ts";
import { FakeRay } from "../drivers/ray/fake-ray.ts";
import type { Preflight } from "../../src/planning/mod.ts";

/** Runs `muster plan` in this process: what it wrote, and its exit code. */
async function run(...argv: string[]): Promise<{ out: string; err: string; code: number }> {
  let [out, err] = ["", ""];
  const program = new Command("muster").exitOverride().configureOutput({
    writeOut: (text) => out += text,
    writeErr: (text) => err += text,
  });
  planCommand(program);
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    await program.parseAsync(["plan", ...argv], { from: "user" });
    return { out, err, code: Number(process.exitCode) };
  } catch (error) {
    return { out, err, code: (error as { exitCode: number }).exitCode };
  } finally {
    process.exitCode = before;
  }
}

const TWO = ["--node", "head=10.0.0.1,devices=8", "--node", "b=10.0.0.2,devices=8"];

test("the page: verdict, nodes, why, commands", async () => {
  const { out, code } = await run(
    ...["--data-parallel-size", "4", "--tensor-parallel-size", "4", "--no-probe", ...TWO],
  );
  assert.equal(code, 0);
  const lines = out.split("\n");
  assert.equal(
    lines[0],
    "4 ranks of 4 GPUs on 2 nodes, internal load balancing   ✓ can start",
  );
  assert.match(
    out,
    /^head +10\.0\.0\.1 +0-1 +0,1,2,3 \| 4,5,6,7 +front-end, coordinator +internal/m,
  );
  assert.match(out, /^b +10\.0\.0\.2 +2-3 +0,1,2,3 \| 4,5,6,7 +engines +internal +nothing/m);
  assert.match(
    out,
    /^# on b\nVLLM_HOST_IP=10\.0\.0\.2 .* vllm serve MODEL --data-parallel-size 4 \\$/m,
  );
  assert.ok(lines.every((line) => line.length <= 120), "lines fit a terminal");
});

test("a plan that cannot start has exit code 1, what is wrong, and no commands", async () => {
  const { out, code } = await run(
    ...["--data-parallel-size", "2", "--data-parallel-size-local", "1", "--no-probe"],
  );
  assert.equal(code, 1);
  assert.match(out, /✗ cannot start {2}\(1 error\)/);
  assert.match(out, /loopback-with-remote/);
  assert.doesNotMatch(out, /COMMANDS/);
});

test("--json has the whole plan", async () => {
  const { out, code } = await run("--data-parallel-size", "4", "--no-probe", "--json", ...TWO);
  const plan = JSON.parse(out) as Preflight;
  assert.equal(code, 0);
  assert.equal(plan.ok, true);
  assert.deepEqual(plan.processes.map((p) => p.command.argv[0]), ["vllm"]);
  assert.deepEqual(plan.findings.map((f) => f.code), ["node-without-ranks"]);
});

test("a file describes the deployment, flags win over it", async () => {
  const directory = mkdtempSync(join(tmpdir(), "mp-"));
  const file = join(directory, "deployment.json");
  writeFileSync(file, JSON.stringify({ dataParallelSize: 2, nodes: [{ name: "a", devices: 4 }] }));
  const { out } = await run("--config", file, "--data-parallel-size", "4", "--no-probe", "--json");
  rmSync(directory, { recursive: true });
  assert.equal((JSON.parse(out) as Preflight).processes[0]?.ranks, "0-3");
});

test("the nodes of a Ray cluster, with what is free on them", async () => {
  const ray = await FakeRay.open(4, 2);
  const { out, code } = await run(
    ...["--ray", ray.url, "--data-parallel-size", "3", "--tensor-parallel-size", "2", "--no-probe"],
    ...["--ray-dp-pack-strategy", "fill", "--data-parallel-address", "10.0.0.1"],
  );
  await ray.close();
  assert.equal(code, 0, out);
  assert.match(out, /^3 ranks of 2 GPUs on 2 nodes, internal load balancing on Ray/);
  assert.match(out, /^10\.0\.0\.1 \(master\) +4 of 4 +4 +0 1 +the master takes 2 ranks$/m);
  assert.match(out, /^10\.0\.0\.2 +2 of 2 +2 +2 +as many as fit: 1 rank$/m);
  const nobody = await run("--ray", "http://127.0.0.1:1");
  assert.equal(nobody.code, 2);
  assert.match(nobody.err, /--ray http:\/\/127\.0\.0\.1:1: GET .* ECONNREFUSED/);
});

test("a wrong question has exit code 2 and says what was wrong", async () => {
  const size = await run("--data-parallel-size", "two"); // 1 is commander's; `main` makes it 2
  assert.equal(size.code, 1);
  assert.match(size.err, /--data-parallel-size <n>' argument 'two' is invalid/);
  const zero = await run("--data-parallel-size", "0");
  assert.equal(zero.code, 2);
  assert.match(zero.err, /--data-parallel-size \(0\): must be a whole number from 1 to 65536/);
  const node = await run("--node", "a=10.0.0.1,gpus=8");
  assert.equal(node.code, 2);
  assert.match(node.err, /gpus is none of devices, ranks, port/);
  const file = await run("--config", "/nowhere.json");
  assert.equal(file.code, 2);
  assert.match(file.err, /nowhere\.json: ENOENT/);
  const program = await run("--front-end", "nginx");
  assert.match(program.err, /--front-end is muster or vllm/);
});
