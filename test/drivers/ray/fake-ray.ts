import { type ChildProcess, spawn } from "node:child_process";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";

export interface FakeNode {
  readonly id: string;
  readonly ip: string;
  readonly gpus: number;
  alive: boolean;
}

interface FakeJob {
  readonly id: string;
  readonly entrypoint: string;
  readonly node: string | null;
  readonly gpus: number;
  readonly env: Record<string, string>;
  readonly metadata: Record<string, string>;
  status: string;
  message: string;
  errorType: string | null;
  exitCode: number | null;
  stopAsked: boolean;
  devices: number[];
  output: string;
  child: ChildProcess | null;
}

/**
 * Ray's HTTP as it was observed, on two or three pretend nodes of this host: jobs are real processes, in a session of
 * their own, with the devices that are free; its manners (405 for browsers, a stopped PENDING job that starts later
 * all the same, processes left behind by a lost node) are the real one's.
 */
export class FakeRay {
  readonly nodes: FakeNode[];
  readonly jobs: Map<string, FakeJob> = new Map();
  /** Every POST that submitted a job, as it came. */
  readonly submitted: Record<string, unknown>[] = [];
  token: string | null = null;
  /** Too old for label selectors. */
  old = false;
  /** So many submissions are accepted, and their answer is lost. */
  loseAnswers = 0;
  /** The text of free resources stands still from now on, as it does for seconds. */
  frozen: Record<string, string> | null = null;
  readonly #server: Server;
  readonly #children: Set<ChildProcess> = new Set();

  private constructor(nodes: FakeNode[], server: Server) {
    this.nodes = nodes;
    this.#server = server;
  }

  static open(...gpus: number[]): Promise<FakeRay> {
    return new Promise((done) => {
      const nodes = gpus.map((n, i) => ({
        id: `node${i}`,
        ip: `10.0.0.${i + 1}`,
        gpus: n,
        alive: true,
      }));
      const server = createServer((request, response) => void ray.#serve(request, response));
      const ray = new FakeRay(nodes, server);
      server.listen(0, "127.0.0.1", () => done(ray));
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Processes of jobs that still run, whatever Ray says of their jobs. */
  get processes(): number {
    return [...this.#children].filter((c) => c.exitCode === null && c.signalCode === null).length;
  }

  async close(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode === null && child.signalCode === null) kill(-child.pid!, "SIGKILL");
    }
    this.#server.closeAllConnections?.();
    await new Promise<void>((done) => this.#server.close(() => done()));
  }

  /** The node is lost: its jobs fail without an exit code, and their processes live on. */
  loseNode(id: string): void {
    this.nodes.find((n) => n.id === id)!.alive = false;
    for (const job of this.jobs.values()) {
      if (job.node !== id || job.status !== "RUNNING") continue;
      job.status = "FAILED";
      job.errorType = "JOB_SUPERVISOR_ACTOR_DIED";
      job.message =
        "Job supervisor actor died: its node has died.\nTraceback (most recent call last):";
    }
  }

  /** The whole process tree of a job's entrypoint, killed from outside. */
  killEntrypoint(id: string): void {
    kill(this.jobs.get(id)!.child!.pid!, "SIGKILL");
  }

  #used(node: FakeNode): FakeJob[] {
    return [...this.jobs.values()].filter((j) => j.node === node.id && j.status === "RUNNING");
  }

  usage(): Record<string, string> {
    return Object.fromEntries(this.nodes.map((node) => {
      const used = this.#used(node).reduce((sum, job) => sum + job.gpus, 0);
      return [node.id, `0.0/8.0 CPU\n${used.toFixed(1)}/${node.gpus}.0 GPU\n0B/22.47GiB memory`];
    }));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk as Uint8Array);
    const body = new TextDecoder().decode(Uint8Array.from(chunks.flatMap((c) => [...c])));
    const url = new URL(request.url ?? "/", "http://ray");
    const send = (status: number, answer: unknown) => {
      response.statusCode = status;
      response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
    };
    if (this.token !== null) {
      const given = request.headers.authorization;
      if (given === undefined) return send(401, "Unauthorized");
      if (given !== `Bearer ${this.token}`) return send(403, "Forbidden");
    }
    if (request.method !== "GET" && request.headers["sec-fetch-mode"] !== undefined) {
      return send(405, `'${request.method}' method not allowed for browser traffic.`);
    }
    const route = `${request.method} ${url.pathname}`;
    const [, , , id = "", verb] = url.pathname.split("/");
    if (route === "GET /api/version") return send(200, { version: "4", ray_version: "2.58.0" });
    if (route === "GET /api/v0/nodes") {
      return send(
        200,
        this.#rows(this.nodes.map((n) => this.#nodeRow(n))),
      );
    }
    if (route === "GET /api/v0/actors") return send(200, this.#rows(this.#actorRows()));
    if (route === "GET /nodes") {
      return send(200, { data: { nodeLogicalResources: this.frozen ?? this.usage() } });
    }
    if (route === "GET /api/v0/logs/file") {
      const name = /^job-driver-(.*)\.log$/.exec(url.searchParams.get("filename") ?? "")?.[1] ?? "";
      return send(200, this.jobs.get(name)?.output ?? "");
    }
    if (route === "GET /api/jobs/") return send(200, [...this.jobs.values()].map(jobRow));
    if (route === "POST /api/jobs/") return this.#submit(JSON.parse(body), response, send);
    const job = this.jobs.get(id);
    if (job === undefined) return send(404, `Job ${id} does not exist`);
    if (request.method === "GET") return send(200, jobRow(job));
    if (request.method === "DELETE") {
      if (["PENDING", "RUNNING"].includes(job.status)) return send(500, "it is not over");
      this.jobs.delete(id);
      return send(200, { deleted: true });
    }
    if (verb === "stop") return send(200, { stopped: this.#stop(job) });
    send(404, "no such route");
  }

  #rows = (rows: unknown[]): unknown => ({
    result: true,
    data: { result: { total: rows.length, num_filtered: rows.length, result: rows } },
  });

  #nodeRow = (n: FakeNode): unknown => ({
    node_id: n.id,
    node_ip: n.ip,
    is_head_node: n === this.nodes[0],
    state: n.alive ? "ALIVE" : "DEAD",
    resources_total: { CPU: 8, GPU: n.gpus, [`node:${n.ip}`]: 1 },
  });

  #actorRows = (): unknown[] =>
    [...this.jobs.values()].map((job) => ({
      state: ["PENDING", "RUNNING"].includes(job.status) ? "ALIVE" : "DEAD",
      node_id: job.status === "PENDING" ? null : job.node,
      name: `_ray_internal_job_actor_${job.id}`,
      required_resources: { GPU: job.gpus },
    }));

  #submit(
    spec: Record<string, unknown>,
    response: ServerResponse,
    send: (status: number, answer: unknown) => void,
  ): void {
    const id = String(spec["submission_id"]);
    this.submitted.push(spec);
    if (this.old && spec["entrypoint_label_selector"] !== undefined) {
      const error = "TypeError: unexpected keyword argument 'entrypoint_label_selector'";
      return send(400, `Traceback (most recent call last):\n  File "job.py"\n${error}`);
    }
    if (this.jobs.has(id)) {
      return send(
        500,
        `Traceback ...\nValueError: Job with submission_id ${id} already exists. Please use a different submission_id.`,
      );
    }
    const selector = spec["entrypoint_label_selector"] as Record<string, string> | undefined;
    const pins = Object.keys((spec["entrypoint_resources"] ?? {}) as object);
    const ip = pins.find((k) => k.startsWith("node:"))?.slice(5);
    const job: FakeJob = {
      id,
      entrypoint: String(spec["entrypoint"] ?? "true"),
      node: selector?.["ray.io/node-id"] ?? this.nodes.find((n) => n.ip === ip)?.id ?? null,
      gpus: Number(spec["entrypoint_num_gpus"] ?? 0),
      env: (spec["runtime_env"] as { env_vars: Record<string, string> } | undefined)?.env_vars ??
        {},
      metadata: spec["metadata"] as Record<string, string>,
      status: "PENDING",
      message: "Job has not started yet.",
      errorType: null,
      exitCode: null,
      stopAsked: false,
      devices: [],
      output: "",
      child: null,
    };
    this.jobs.set(id, job);
    this.#schedule();
    if (this.loseAnswers > 0) {
      this.loseAnswers--;
      response.destroy();
    } else send(200, { job_id: id, submission_id: id });
  }

  #schedule(): void {
    for (const job of this.jobs.values()) {
      const node = this.nodes.find((n) => n.id === job.node && n.alive);
      if (job.status !== "PENDING" || node === undefined) continue;
      const taken = new Set(this.#used(node).flatMap((j) => j.devices));
      const free = [...Array(node.gpus).keys()].filter((d) => !taken.has(d));
      if (free.length < job.gpus) continue;
      job.devices = free.slice(0, job.gpus);
      this.#run(job);
    }
  }

  #run(job: FakeJob): void {
    job.status = "RUNNING";
    job.message = "Job is currently running.";
    const child = spawn("/bin/sh", ["-c", job.entrypoint], {
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...job.env, CUDA_VISIBLE_DEVICES: job.devices.join(",") },
    });
    job.child = child;
    this.#children.add(child);
    const collect = (chunk: Uint8Array) => job.output += new TextDecoder().decode(chunk);
    child.stdout!.on("data", collect);
    child.stderr!.on("data", collect);
    child.on("exit", (code, signal) => {
      if (job.status !== "RUNNING") return;
      job.status = job.stopAsked ? "STOPPED" : code === 0 ? "SUCCEEDED" : "FAILED";
      if (!job.stopAsked) {
        job.exitCode = code ?? -({ SIGKILL: 9, SIGTERM: 15, SIGSEGV: 11 }[signal as string] ?? 1);
        job.message = `Job entrypoint command failed with exit code ${job.exitCode}`;
      }
      this.#schedule();
    });
    if (job.stopAsked) setTimeout(() => this.#stop(job), 300);
  }

  #stop(job: FakeJob): boolean {
    if (!["PENDING", "RUNNING"].includes(job.status)) return false;
    job.stopAsked = true;
    if (job.status === "PENDING") return true; // and it starts later all the same
    const pid = job.child!.pid!;
    kill(-pid, "SIGTERM");
    const grace = Number(job.env["RAY_JOB_STOP_WAIT_TIME_S"] ?? 3) * 1000;
    setTimeout(() => kill(-pid, "SIGKILL"), grace).unref();
    return true;
  }
}

const jobRow = (job: FakeJob) => ({
  type: "SUBMISSION",
  submission_id: job.id,
  status: job.status,
  message: job.message,
  error_type: job.errorType,
  driver_exit_code: job.exitCode,
  driver_node_id: job.node,
  metadata: job.metadata,
});

function kill(pid: number, signal: "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(pid, signal);
  } catch { /* it is gone */ }
}
