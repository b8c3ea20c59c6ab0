import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { alive, descendants, Muster, muster, pidsIn } from "./support.ts";
import { until } from "../until.ts";

const FAST = ["--engine-args", "--boot-ms 0 --load-ms 50"];
const TWO = ["serve", "--launch", "reference", "--data-parallel-size", "2", "--moe"];

test("muster demo: four engines as processes form up, become six, then three, and none is left", async () => {
  const demo = new Muster(["demo", "--load-ms", "100"]);
  await demo.said(/cluster formed/);
  const pids = pidsIn(demo.out);
  const { code, out } = await demo.ended;
  assert.equal(code, 0, out);
  assert.equal(pids.size, 4);
  for (const rank of [0, 1, 2, 3]) {
    assert.match(out, new RegExp(`rank ${rank} connected`));
    assert.match(out, new RegExp(`rank ${rank} ready`));
  }
  assert.match(out, /✓ 4 ranks formed up in/);
  assert.match(out, /KV cache blocks: 28500 in all, 9000 to 10000 a rank/);
  for (const rank of [4, 5]) assert.match(out, new RegExp(`rank ${rank} ready`));
  assert.match(
    out,
    /4 to 6 ranks: preparing\n[^]*4 to 6 ranks: committing\n[^]*4 to 6 ranks: completed after /,
  );
  for (const rank of [3, 4, 5]) {
    assert.match(out, new RegExp(`rank ${rank} leaving\n[^]*rank ${rank} left`));
  }
  assert.match(out, /6 to 3 ranks: completed after .*; ranks 3, 4 and 5 left/);
  assert.match(out, /stopped: 6 processes ended, none is left/);
  for (const pid of pids.values()) assert.equal(alive(pid), false);
});

test("the final status as JSON", async () => {
  const { code, out, err } = await muster(...TWO, ...FAST, "--once", "--json");
  assert.equal(code, 0, err);
  const status = JSON.parse(out);
  assert.equal(status.phase, "stopped");
  assert.deepEqual(status.ranks.map((r: { state: string }) => r.state), ["stopped", "stopped"]);
  assert.deepEqual(status.blocks, { sum: 2000, min: 1000, max: 1000 });
  assert.equal(status.failure, null);
});

test("an engine killed while it loads: rank, phase, signal, and its last lines", async () => {
  const serve = new Muster([...TWO, "--engine-args", "--load-ms 60000"]);
  await serve.said(/rank 1 connected/);
  process.kill(pidsIn(serve.out).get("engine-1")!, "SIGKILL");
  const { code, out } = await serve.ended;
  assert.equal(code, 1);
  assert.match(
    out,
    /✗ Rank 1 \(process engine-1, pid \d+\) was killed by SIGKILL while loading, after its HELLO and before its READY/,
  );
  assert.match(out, /its last lines:\n {2}│ engine 1: HELLO to ipc:/);
  assert.match(out, /code engine-exited/);
  assert.match(out, /stopped: 2 processes ended, none is left/);
});

test("an engine that exits before HELLO: its exit code", async () => {
  const fault = ["--engine-args", "--fault crash-before-hello --exit-code 7"];
  const { code, out } = await muster(...TWO, ...fault);
  assert.equal(code, 1);
  assert.match(out, /✗ Rank \d \(process engine-\d, pid \d+\) exited with code 7 before its HELLO/);
  assert.match(out, /crashed on demand/);
});

test("one engine left out: at the deadline a table of who is missing", async () => {
  const nobody = ["serve", "--data-parallel-size", "2", "--connect-limit", "300ms"];
  const { code, out } = await muster(...nobody);
  assert.equal(code, 1);
  assert.match(out, /✗ Rank \d never said HELLO within 300 ms; not ready: ranks 0 and 1\./);
  assert.match(out, /not ready:\n {2}│ rank 0 {2}\w+\n {2}│ rank 1 {2}\w+/);
});

test("a program that cannot be started is named", async () => {
  const { Coordinator, ClusterError } = await import("../../src/coordinator.ts");
  const coordinator = await Coordinator.start({
    cluster: { dataParallelSize: 1 },
    launches: [{
      id: "nothing",
      ranks: [0],
      argv: ["/nowhere/engine"],
      env: {},
      cwd: null,
      inherit: true,
    }],
  });
  try {
    await assert.rejects(coordinator.ready(), (error: InstanceType<typeof ClusterError>) => {
      assert.equal(error.code, "spawn-failed");
      assert.match(
        error.message,
        /The process nothing \(rank 0\) could not be started: \/nowhere\/engine does not exist\./,
      );
      return true;
    });
  } finally {
    await coordinator.close();
  }
});

test("kill -9 on the coordinator leaves no process behind", async () => {
  const serve = new Muster([...TWO, ...FAST]);
  await serve.said(/cluster formed/);
  const engines = [...pidsIn(serve.out).values()];
  const all = [...engines, ...engines.flatMap(descendants), ...descendants(serve.child.pid!)];
  assert.equal(engines.length, 2);
  assert.ok(engines.every(alive));
  serve.kill("SIGKILL");
  await serve.ended;
  await until(() => !all.some(alive), "every process is gone");
});

test("Ctrl-C stops cleanly", async () => {
  const serve = new Muster([...TWO, ...FAST]);
  await serve.said(/cluster formed/);
  const engines = [...pidsIn(serve.out).values()];
  serve.kill("SIGINT");
  const { code, out } = await serve.ended;
  assert.equal(code, 0, out);
  assert.match(out, /stopped: 2 processes ended, none is left/);
  assert.equal(engines.some(alive), false);
});

test("SIGTERM to the whole group and again from npm is one SIGTERM", async () => {
  const serve = new Muster([...TWO, ...FAST]);
  await serve.said(/cluster formed/);
  const engines = [...pidsIn(serve.out).values()];
  serve.kill("SIGTERM");
  await until(() => !engines.every(alive), "it has begun to stop");
  serve.kill("SIGTERM");
  const { code, out } = await serve.ended;
  assert.equal(code, 0, out);
  assert.match(out, /stopped: 2 processes ended, none is left/);
});
