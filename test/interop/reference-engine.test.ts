import assert from "node:assert/strict";
import { test } from "node:test";
import { inDirectory } from "../drivers/zmq/support.ts";
import { Muster } from "../e2e/support.ts";
import { Peer, type Said } from "./engine-peer.ts";

type Utility = [call: number, failure: string | null, result: [type: null, value: unknown] | null];

/** Reference engines as processes, and a front-end that knows nothing of us but the wire. */
async function served(
  engines: number,
  flags: string,
  body: (
    front: Peer,
    call: (rank: number, method: string, ...args: unknown[]) => Promise<Utility>,
  ) => Promise<void>,
  engineFlags = "",
): Promise<void> {
  await inDirectory(async (directory) => {
    const front = new Peer("frontend.py", [
      ...["--engines", String(engines), "--local", "--ipc", "--directory", directory],
      ...flags.split(" ").filter((flag) => flag !== ""),
    ]);
    const processes: Muster[] = [];
    let calls = 2n ** 63n + 1n;
    const call = async (rank: number, method: string, ...args: unknown[]): Promise<Utility> => {
      const id = String(calls++);
      const mine = () => front.heard("output").map((said) => said.utility as Utility | null);
      const before = mine().length;
      front.tell({ do: "utility", rank, method, args, call: id });
      const answer = () => mine().slice(before).find((u) => u !== null && BigInt(u[0]) > 2n ** 62n);
      await front.until(`the reply to ${method}`, () => answer() !== undefined);
      return answer()!;
    };
    try {
      await front.until("bound", () => front.heard("bound").length === 1);
      const [bound] = front.heard("bound");
      for (let rank = 0; rank < engines; rank++) {
        const args = ["engine", "--rank", String(rank), "--handshake", String(bound!.handshake)];
        processes.push(
          new Muster([
            ...args,
            "--local",
            "--load-ms",
            "20",
            ...engineFlags.split(" ").filter((f) => f !== ""),
          ]),
        );
      }
      await front.until("every READY", () => front.heard("ready").length === engines, 40_000);
      await body(front, call);
      assert.deepEqual(front.heard("error"), [], front.errors);
    } finally {
      for (const engine of processes) engine.kill();
      await Promise.all(processes.map((engine) => engine.ended));
      await front.stop();
    }
  });
}

const value = (answer: Utility): unknown => answer[2]?.[1];
const finished = (front: Peer): Said[] =>
  front.heard("output").filter((said) => said.finished !== null);

test("a front-end with the original's rules takes our engines for real ones: handshake, first frame, utilities", async () => {
  await served(2, "", async (front, call) => {
    assert.deepEqual(front.heard("hello").map((said) => said.message), [
      { status: "HELLO", local: true, headless: false },
      { status: "HELLO", local: true, headless: false },
    ]);
    const ready = front.heard("ready")[0]!.message as Record<string, unknown>;
    assert.equal(ready.num_gpu_blocks, 1000);
    await front.until("first frames", () => front.heard("first_frame").length === 2);
    assert.equal(value(await call(0, "is_scheduler_paused")), false);
    const unknown = await call(0, "no_such_method");
    assert.match(unknown[1]!, /^Call to no_such_method method failed: /);
    const bad = await call(1, "pause_scheduler", "nope", false);
    assert.equal(bad[1], "Call to pause_scheduler method failed: Invalid pause mode: nope");
  });
});

test("requests are served with the real encoder on the other side, and aborted", async () => {
  await served(1, "", async (front) => {
    front.tell({ do: "add", rank: 0, id: "r1", wave: 0 });
    await front.until("r1", () => finished(front).length === 1);
    assert.deepEqual(finished(front)[0]!.finished, ["r1"]);
    const outputs = front.heard("output").flatMap((said) => said.outputs as unknown[][]);
    assert.ok(outputs.length > 0 && outputs.every((output) => output[0] === "r1"));
    assert.equal(outputs.at(-1)![5], 1, "ended by its length");
    // Tensors beside the main frame do not matter to it, and an ABORT of nobody is harmless.
    front.tell({ do: "add", rank: 0, id: "r2", wave: 0, aux: ["00".repeat(300)] });
    front.tell({ do: "abort", rank: 0, ids: ["nobody"] });
    await front.until("r2", () => finished(front).length === 2);
  });
});

test("waves with a coordinator of the peer: barrier, statistics, wake-up, and the end of the wave", async () => {
  await served(2, "--coordinator", async (front) => {
    front.tell({ do: "add", rank: 1, id: "r1", wave: 0 });
    front.tell({ do: "wave", wave: 0, exclude: 1 });
    await front.until(
      "the end of wave 0",
      () => front.heard("report").some((said) => said.wave_complete === 0),
    );
    assert.ok(finished(front).length === 1);
    const reports = front.heard("report");
    const complete = reports.filter((said) => said.wave_complete !== null);
    assert.deepEqual(complete.map((said) => said.engine), [0], "rank 0 tells it, once");
    const stats = reports.filter((said) => said.stats !== null && said.engine === 1);
    assert.ok(stats.length >= 2, "statistics while it runs and when it is done");
    const last = stats.at(-1)!.stats as Record<string, unknown>;
    assert.deepEqual([last.num_running_reqs, last.num_waiting_reqs], [0, 0]);
    assert.equal(typeof last.kv_cache_usage, "number");
  });
});

test("pause is agreed by all ranks, and a wake-up does not undo it", async () => {
  await served(2, "--coordinator", async (front, call) => {
    front.tell({
      do: "utility",
      rank: 0,
      method: "pause_scheduler",
      args: ["keep", false],
      call: "5",
    });
    front.tell({
      do: "utility",
      rank: 1,
      method: "pause_scheduler",
      args: ["keep", false],
      call: "6",
    });
    const replies = () =>
      front.heard("output").map((said) => (said.utility as Utility | null)?.[0]).filter((id) =>
        id === 5 || id === 6
      );
    await front.until("both replies", () => replies().length === 2);
    front.tell({ do: "wave", wave: 0, exclude: null as never });
    assert.equal(value(await call(0, "is_scheduler_paused")), true);
    assert.equal(value(await call(1, "is_scheduler_paused")), true);
  });
});
