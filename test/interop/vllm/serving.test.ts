/** Real engines while they serve: our coordinator, our bus, requests and waves, utilities, and an engine that dies. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sendSignal } from "../../../src/drivers/process-table.ts";
import { utilities } from "../../../src/protocol/mod.ts";
import { recordings } from "../../golden/recording.ts";
import { FrontEnd } from "./front-end.ts";
import { pidOf, until, VERSIONS } from "./head.ts";

for (const vllm of VERSIONS) {
  const options = vllm.missing ? { skip: vllm.missing } : { timeout: 900_000 };

  test(
    `vLLM ${vllm.version}: two mixture-of-experts ranks serve under our coordinator`,
    options,
    async (t) => {
      // Requests as vLLM's own front-end encoded them, and what was answered when they were recorded.
      const recording = recordings().find((r) => r.name === `${vllm.version}/moe`)!;
      const [one, two] = recording.lines.filter((l) =>
        l.way === "to" && l.socket === "input" && l.frames[0]![0] === 0
      ).map((l) => l.frames);
      const tokens = vllm.generation === "0.12" ? [457, 9, 457, 9, 457] : [296, 0, 485, 0, 485];

      const front = await FrontEnd.open(t, vllm, "moe");
      assert.equal(front.place, "formed", JSON.stringify(front.startup.failure));
      await until(() => front.firstFrames.size === 2, "both engines can be addressed");
      await front.subscribe();

      await t.test("utilities, and the engine's own words about one that it has not", async () => {
        const paused = await front.call(0, utilities.isSchedulerPaused());
        if (vllm.generation === "0.12") {
          assert.equal(paused.type, "failed");
          assert.match(
            (paused as { failure: string }).failure,
            /^Call to is_scheduler_paused method failed: .* has no attribute/,
          );
        } else assert.deepEqual(paused, { type: "replied", value: false });
        const reset = await front.call(1, { method: "reset_prefix_cache", args: [] });
        assert.deepEqual(reset, { type: "replied", value: true });
      });

      await t.test("a request through the bus: the tokens come back, and the wave ends", async () => {
        await front.add(0, one!);
        await front.wake(0, 0);
        await until(() => front.finished.has("one"), "the request has ended");
        assert.deepEqual(front.tokens.get("one"), tokens);
        await until(() => front.wave === 1, "the wave has ended");
        await until(
          () => front.published.some((p) => p.wave === 1 && !p.running),
          "that is published",
        );
        assert.ok(
          front.published.some((p) => p.counts?.some((row) => row.running + row.waiting > 0)),
          "the load was published while it ran",
        );
      });

      await t.test("a request of a wave that has passed: its engine begins the next one by itself", async () => {
        await front.add(1, two!);
        await until(() => front.finished.has("two"), "the request has ended");
        assert.deepEqual(front.tokens.get("two"), tokens);
        await until(() => front.wave >= 2, "the second wave has ended");
      });

      const noPause = vllm.generation === "0.12" ? { skip: "0.12 has no pause_scheduler" } : {};
      await t.test("all ranks pause together, and go on", noPause, async () => {
        const both = (utility: Parameters<FrontEnd["call"]>[1]) =>
          Promise.all([0, 1].map((rank) => front.call(rank, utility)));
        const said = (value: null | boolean) => [0, 1].map(() => ({ type: "replied", value }));
        assert.deepEqual(await both(utilities.pauseScheduler("keep")), said(null));
        assert.deepEqual(await both(utilities.isSchedulerPaused()), said(true));
        assert.deepEqual(await both(utilities.resumeScheduler()), said(null));
        assert.deepEqual(await both(utilities.isSchedulerPaused()), said(false));
      });

      await t.test("nothing that was said was strange to us", () => {
        assert.deepEqual(front.strange, []);
      });

      await t.test("an engine that dies while serving is a failure that names it", async () => {
        const pid = pidOf(readFileSync(join(front.logs, "vllm-1.log"), "utf8"), 1)!;
        const killed = performance.now();
        sendSignal(pid, "SIGKILL");
        await until(() => front.startup.failure !== null, "it is noticed", 60_000);
        const { code, of, phase } = front.startup.failure!;
        assert.deepEqual([code, of, phase], ["engine-exited", "rank/1/engine", "serve"]);
        // Long before the command that we started ends, which takes vLLM 10 to 20 seconds.
        t.diagnostic(`noticed after ${Math.round(performance.now() - killed)} ms`);
      });
    },
  );
}
