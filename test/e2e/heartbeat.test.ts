import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test, type TestContext } from "node:test";
import { ClusterError, Coordinator } from "../../src/coordinator.ts";
import { selfCommand } from "../../src/drivers/keeper/mod.ts";
import { sendSignal } from "../../src/drivers/process-table.ts";

/** A cluster of one engine that somebody else has started. */
async function foreign(t: TestContext): Promise<{ coordinator: Coordinator; pid: number }> {
  const coordinator = await Coordinator.start({
    cluster: {
      dataParallelSize: 1,
      dataParallelSizeLocal: 0,
      dataParallelAddress: "127.0.0.1",
      dataParallelRpcPort: 0,
      allowLoopback: true,
    },
    limits: { heartbeatEveryMs: 100, heartbeatWithinMs: 700 },
  });
  t.after(() => coordinator.close());
  while (coordinator.status().endpoints["handshake"] === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const handshake = coordinator.status().endpoints["handshake"]!["bind"]!;
  const [program, ...args] = selfCommand();
  const flags = ["--rank", "0", "--handshake", handshake, "--headless", "--boot-ms", "0"];
  const engine = spawn(program!, [...args, "engine", ...flags, "--load-ms", "0"], {
    stdio: "ignore",
  });
  t.after(() => sendSignal(engine.pid!, "SIGKILL"));
  await coordinator.ready();
  return { coordinator, pid: engine.pid! };
}

const failureOf = async (coordinator: Coordinator) => {
  while (coordinator.status().failure === null) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return coordinator.status().failure!;
};

test("a remote engine that hangs while serving is found by its heartbeat", async (t) => {
  const { coordinator, pid } = await foreign(t);
  // It lives and answers: nothing is reported.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  assert.equal(coordinator.status().failure, null);
  sendSignal(pid, "SIGSTOP");
  const { code, rank, phase, sentence } = await failureOf(coordinator);
  assert.deepEqual([code, rank, phase], ["engine-unresponsive", 0, "serve"]);
  assert.match(sentence, /^Rank 0 gave no sign of life for \d+ ms while serving\.$/);
  assert.ok(await coordinator.ready().then(() => false, (e) => e instanceof ClusterError));
});

test("a remote engine that is killed is found too, and why it cannot be asked", async (t) => {
  const { coordinator, pid } = await foreign(t);
  sendSignal(pid, "SIGKILL");
  const { code, sentence } = await failureOf(coordinator);
  assert.equal(code, "engine-unresponsive");
  assert.match(sentence, /while serving(: rank 0 is not connected)?\.$/);
});
