/** What is watched of a process is watched by the next coordinator too: its output, and the engines that it names there. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Coordinator, type CoordinatorOptions } from "../../src/coordinator.ts";
import { sendSignal } from "../../src/drivers/process-table.ts";
import { referenceEngines } from "../../src/testing/mod.ts";
import type { ClusterStatus, FailureRecord, RankState } from "../../src/view/mod.ts";

/** One rank, started by way of `sh -c script`, by one coordinator after another. */
class Lives {
  readonly directory: string = mkdtempSync(join(tmpdir(), "mw-"));
  readonly #options: CoordinatorOptions;
  current!: Coordinator;

  constructor(
    t: TestContext,
    { script, loadMs, output, ...more }: Partial<CoordinatorOptions> & {
      readonly script: (folder: string) => string;
      readonly loadMs: number;
      readonly output?: "vllm";
    },
  ) {
    this.#options = {
      cluster: { dataParallelSize: 1 },
      journal: join(this.directory, "run"),
      leaseMs: 60_000,
      launches: (topology) =>
        referenceEngines(topology, () => ["--boot-ms", "0", "--load-ms", `${loadMs}`]).map((
          launch,
        ) => ({
          ...launch,
          argv: ["sh", "-c", script(this.directory), "sh", ...launch.argv],
          ...(output === undefined ? {} : { output }),
        })),
      ...more,
    };
    t.after(async () => {
      await this.current.close();
      rmSync(this.directory, { recursive: true, force: true });
    });
  }

  /** A coordinator, when it has the process and the rank is so. */
  async open(state: RankState): Promise<ClusterStatus> {
    this.current = await Coordinator.start(this.#options);
    await this.until(({ ranks, failure }) => ranks[0]!.state === state || failure !== null);
    return this.current.status();
  }

  /** The coordinator goes, its process stays. */
  async leave(): Promise<void> {
    await this.current.detach();
  }

  /** Resolves when the status is so. */
  until(holds: (status: ClusterStatus) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!holds(this.current.status())) return;
        off();
        resolve();
      };
      const off = this.current.subscribe(look);
      look();
    });
  }

  async failure(): Promise<FailureRecord> {
    await this.until(({ failure }) => failure !== null);
    return this.current.status().failure!;
  }
}

test("the output of an adopted process is watched: it goes on, and when it stops that is a failure", async (t) => {
  const chatter = (quiet: string) =>
    `while [ ! -e "${quiet}" ]; do echo on; sleep 0.2; done & exec "$@"`;
  const lives = new Lives(t, {
    script: (folder) => chatter(join(folder, "quiet")),
    loadMs: 600_000,
    limits: { progressMs: 8000 },
  });
  const before = await lives.open("connected");
  await lives.leave();

  const { pid } = (await lives.open("connected")).processes[0]!;
  assert.equal(pid, before.processes[0]!.pid);
  const since = lives.current.status().processes[0]!.progressAt ?? 0;
  await lives.until(({ processes: [process] }) => (process!.progressAt ?? 0) > since);
  writeFileSync(join(lives.directory, "quiet"), "");
  const { code, sentence } = await lives.failure();
  assert.equal(code, "engine-silent");
  assert.equal(sentence, `Process engine-0 (rank 0, pid ${pid}) wrote nothing for 8 s.`);
});

test("an engine that the output of an adopted process names is still seen to end by itself", async (t) => {
  const script = (folder: string) =>
    `"$@" & engine=$!; while [ ! -e "${folder}/speak" ]; do sleep 0.1; done; ` +
    'echo "(EngineCore_DP0 pid=$engine) INFO Starting to load model m"; sleep 600';
  const lives = new Lives(t, { script, loadMs: 0, output: "vllm" });
  await lives.open("ready");
  await lives.leave();

  await lives.open("ready");
  const heard = new Promise((resolve) =>
    lives.current.observe(({ type }) => type === "launch-step" && resolve(type))
  );
  writeFileSync(join(lives.directory, "speak"), "");
  await heard;
  const log = readFileSync(join(lives.current.logs, "engine-0.log"), "utf8");
  sendSignal(Number(/EngineCore_DP0 pid=(\d+)/.exec(log)![1]), "SIGKILL");
  const { code, rank, phase } = await lives.failure();
  assert.deepEqual([code, rank, phase], ["engine-exited", 0, "serve"]);
});
