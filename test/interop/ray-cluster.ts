import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, openSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

const RAY = ".venv/bin/ray";
/**
 * `ray` without its client server, which nobody here needs: it gives the rest 30 s to start, and takes everything down
 * with it when a busy machine needs longer.
 */
const COMMAND = [
  ".venv/bin/python",
  "-c",
  "import ray.scripts.scripts as s; s.get_ray_client_dependency_error = lambda: 'off'; s.main()",
];
/** Why there is no Ray to test with; false when there is. */
export const withoutRay: string | false = existsSync(RAY)
  ? false
  : `${RAY} is missing: bash test/interop/setup.sh ray`;

export const freePort = (host: string): Promise<number> =>
  new Promise((done) => {
    const server = createServer();
    server.listen(0, host, () => {
      const { port } = server.address() as { port: number };
      server.close(() => done(port));
    });
  });

/** A Ray that runs already (the dashboard's URL), with the two nodes below: quicker while a test is written. */
const RUNNING = process.env["MUSTER_TEST_RAY"];

/** A real Ray on this machine: a head with 8 pretend GPUs on 127.0.0.2, and a second node with 4 on 127.0.0.3. */
export class RayCluster {
  readonly url: string;
  readonly #processes: ChildProcess[];
  readonly #directory: string;

  private constructor(url: string, processes: ChildProcess[], directory: string) {
    this.url = url;
    this.#processes = processes;
    this.#directory = directory;
  }

  static async start(): Promise<RayCluster> {
    if (RUNNING !== undefined) return new RayCluster(RUNNING, [], "");
    return await RayCluster.#start().catch(() => RayCluster.#start());
  }

  /** Ray gives its parts 30 s to find each other, which a busy machine may miss: see the second try above. */
  static async #start(): Promise<RayCluster> {
    const directory = await mkdtemp(join(tmpdir(), "mr-"));
    const [gcs, dashboard, agent, agent2] = await Promise.all([
      freePort("127.0.0.2"),
      freePort("127.0.0.1"),
      freePort("127.0.0.2"),
      freePort("127.0.0.3"),
    ]);
    const url = `http://127.0.0.1:${dashboard}`;
    const log = openSync(join(directory, "muster.log"), "a");
    const head = ray(
      log,
      ["--head", `--port=${gcs}`, "--num-cpus=2", "--num-gpus=8", "--node-ip-address=127.0.0.2"],
      ["--dashboard-host=127.0.0.1", `--dashboard-port=${dashboard}`, `--temp-dir=${directory}`],
      [`--dashboard-agent-listen-port=${agent}`],
      ["--disable-usage-stats"],
    );
    const cluster = new RayCluster(url, [head], directory);
    try {
      await cluster.#answers(1);
      cluster.#processes.push(ray(
        log,
        [`--address=127.0.0.2:${gcs}`, "--num-cpus=2", "--num-gpus=4"],
        ["--node-ip-address=127.0.0.3", `--dashboard-agent-listen-port=${agent2}`],
        ["--min-worker-port=21000", "--max-worker-port=21999"],
      ));
      await cluster.#answers(2);
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  async #answers(nodes: number): Promise<void> {
    for (let i = 0; i < 240; i++) {
      const answer = await fetch(`${this.url}/api/v0/nodes`).then((r) => r.json()).catch(() =>
        null
      ) as
        | { data?: { result?: { result?: { state: string }[] } } }
        | null;
      const alive = answer?.data?.result?.result?.filter((n) => n.state === "ALIVE").length ?? 0;
      if (alive >= nodes) return;
      if (this.#processes.some((p) => p.exitCode !== null)) break;
      await new Promise((done) => setTimeout(done, 500));
    }
    const said = readFileSync(join(this.#directory, "muster.log"), "utf8").split("\n").slice(-12);
    throw new Error(`Ray did not come up with ${nodes} nodes; it said:\n${said.join("\n")}`);
  }

  /** Stops what was started here; never `ray stop`, which looks for processes by name. */
  async stop(): Promise<void> {
    for (const child of this.#processes.reverse()) {
      const gone = new Promise<void>((done) => child.once("exit", () => done()));
      if (child.exitCode === null && child.signalCode === null) {
        process.kill(child.pid!, "SIGTERM");
        const force = setTimeout(() => process.kill(-child.pid!, "SIGKILL"), 20_000);
        await gone;
        clearTimeout(force);
      }
    }
    if (this.#directory === "") return;
    await rm(this.#directory, { recursive: true, force: true });
  }
}

const ray = (log: number, ...args: string[][]): ChildProcess =>
  spawn(COMMAND[0]!, [
    ...COMMAND.slice(1),
    "start",
    "--block",
    "--object-store-memory=104857600",
    ...args.flat(),
  ], {
    detached: true,
    stdio: ["ignore", log, log],
    env: {
      ...process.env,
      RAY_enable_metrics_collection: "0",
      RAY_JOB_START_TIMEOUT_SECONDS: "20",
      RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT: "120",
    },
  });
