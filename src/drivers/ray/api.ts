import type { NodeSnapshot, Resources } from "../../planning/mod.ts";
import { RayError } from "./error.ts";
import { type Answer, failed, jsonOf, type RayAddress, RayHttp } from "./http.ts";
import { type ActorRow, type NodeRow, type OwnClaim, snapshotOf } from "./resources.ts";

/** A job as Ray tells of it. */
export interface Job {
  readonly id: string;
  readonly status: "PENDING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "STOPPED";
  readonly message: string;
  readonly errorType: string | null;
  /** Null while it runs, when it was stopped, and when its supervisor or node died. */
  readonly exitCode: number | null;
  readonly nodeId: string | null;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A job to submit. */
export interface JobSpec {
  /** Letters, digits, `-` and `_` only: others leave a record behind that cannot be removed. */
  readonly id: string;
  readonly entrypoint: string;
  /** Ray's node id: the job runs there or not at all. */
  readonly node: string;
  /** The node's address, to pin with where the server is too old for label selectors. */
  readonly ip: string;
  readonly resources: Resources;
  readonly env: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
}

export const isOver = (job: Job): boolean => job.status !== "PENDING" && job.status !== "RUNNING";

const ID = /^[A-Za-z0-9_-]+$/;
/** A placement group's own resource (`GPU_group_0_<id>`) in a job crashes the node's raylet. */
const RESOURCE = /^(?!.*_group_)[A-Za-z][\w.:]*$/;
/** Ray's own cap of its state lists. */
const MOST_ROWS = 10_000;

/** What Ray's HTTP offers of nodes and jobs, typed; every failure is a {@link RayError}. */
export class RayApi {
  readonly http: RayHttp;
  /** Servers that do not know label selectors are pinned to by address. */
  #labels = true;

  constructor(address: RayAddress) {
    this.http = new RayHttp(address);
  }

  /** The server's version, which also shows that somebody answers. */
  async version(): Promise<{ ray: string; session: string | null }> {
    const answer = jsonOf(await this.http.get("/api/version"), "asking Ray's version") as {
      ray_version?: string;
      session_name?: string;
    };
    if (typeof answer.ray_version !== "string") {
      throw new RayError("ray-unexpected", `${this.http.url.origin} does not answer like Ray`);
    }
    return { ray: answer.ray_version, session: answer.session_name ?? null };
  }

  /** Every node with what is free on it. */
  async snapshot(own: readonly OwnClaim[] = []): Promise<NodeSnapshot[]> {
    const [nodes, usage, actors] = await Promise.all([
      this.#rows<NodeRow>("nodes"),
      this.http.get("/nodes?view=summary&nocache=1"),
      this.#rows<ActorRow>("actors"),
    ]);
    const summary = jsonOf(usage, "asking what is free") as {
      data?: { nodeLogicalResources?: Record<string, string> };
    };
    const text = summary.data?.nodeLogicalResources;
    if (text === undefined) {
      throw new RayError("ray-unexpected", "Ray's node summary has no logical resources");
    }
    return snapshotOf(nodes, text, actors, own);
  }

  async #rows<Row>(kind: "nodes" | "actors"): Promise<Row[]> {
    const answer = jsonOf(
      await this.http.get(`/api/v0/${kind}?detail=true&limit=${MOST_ROWS}`),
      `listing ${kind}`,
    ) as { data?: { result?: { result?: Row[]; num_filtered?: number } } };
    const list = answer.data?.result;
    if (!Array.isArray(list?.result)) {
      throw new RayError("ray-unexpected", `Ray's list of ${kind} has no rows`);
    }
    if (list.result.length < (list.num_filtered ?? 0)) {
      throw new RayError(
        "ray-unexpected",
        `Ray lists ${list.result.length} of ${list.num_filtered} ${kind}: too many for its state API`,
      );
    }
    return list.result;
  }

  /** Submits a job. Whether a failed submission arrived must be looked up: see `job`. */
  async submit(spec: JobSpec): Promise<void> {
    if (!ID.test(spec.id)) throw new RayError("ray-refused", `${spec.id} is no id for a job`);
    const wrong = Object.keys(spec.resources).find((name) => !RESOURCE.test(name));
    if (wrong !== undefined) {
      throw new RayError("ray-refused", `a job cannot ask for the resource ${wrong}`);
    }
    const answer = await this.http.post("/api/jobs/", this.#body(spec));
    if (answer.status === 200) return;
    if (this.#labels && answer.status === 400 && answer.text.includes("label_selector")) {
      this.#labels = false;
      return await this.submit(spec);
    }
    throw failed(answer, `submitting ${spec.id}`);
  }

  #body(spec: JobSpec): Record<string, unknown> {
    const { GPU: gpus, CPU: cpus, ...others } = spec.resources;
    const resources = this.#labels ? others : { ...others, [`node:${spec.ip}`]: 0.001 };
    return {
      submission_id: spec.id,
      entrypoint: spec.entrypoint,
      ...(gpus === undefined ? {} : { entrypoint_num_gpus: gpus }),
      ...(cpus === undefined ? {} : { entrypoint_num_cpus: cpus }),
      ...(Object.keys(resources).length ? { entrypoint_resources: resources } : {}),
      ...(this.#labels ? { entrypoint_label_selector: { "ray.io/node-id": spec.node } } : {}),
      runtime_env: { env_vars: spec.env },
      metadata: spec.metadata,
    };
  }

  /** A job, or null when Ray knows none of that id. */
  async job(id: string): Promise<Job | null> {
    const answer = await this.http.get(`/api/jobs/${id}`);
    return answer.status === 404 ? null : jobOf(jsonOf(answer, `looking up ${id}`));
  }

  /** Every submitted job that Ray knows, also other people's. */
  async jobs(): Promise<Job[]> {
    const rows = jsonOf(await this.http.get("/api/jobs/"), "listing jobs");
    if (!Array.isArray(rows)) throw new RayError("ray-unexpected", "Ray's list of jobs is no list");
    return rows.filter((row) => row?.submission_id != null).map(jobOf);
  }

  /** Asks for the end of a job. One that is still PENDING starts later all the same: its entrypoint must look. */
  async stop(id: string): Promise<void> {
    const answer = await this.http.post(`/api/jobs/${id}/stop`);
    if (answer.status !== 200 && answer.status !== 404) throw failed(answer, `stopping ${id}`);
  }

  /** Forgets a job that is over; false when Ray will not (yet). */
  async forget(id: string): Promise<boolean> {
    const answer: Answer = await this.http.delete(`/api/jobs/${id}`);
    return answer.status === 200 || answer.status === 404;
  }

  /** The last lines of a job's output. Not every node can be asked: then the lines say so. */
  async tail(id: string, nodeId: string | null, lines: number): Promise<string[]> {
    if (nodeId === null) return [];
    const answer = await this.http.get(
      `/api/v0/logs/file?node_id=${nodeId}&filename=job-driver-${id}.log&lines=${lines}`,
    );
    if (answer.status !== 200) {
      return [`(Ray cannot read the log of ${id}: its node does not answer)`];
    }
    return answer.text.replace(/\n$/, "").split("\n").slice(-lines);
  }
}

function jobOf(row: unknown): Job {
  const r = row as Record<string, unknown>;
  const known = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"];
  if (typeof r !== "object" || r === null || !known.includes(r["status"] as string)) {
    throw new RayError(
      "ray-unexpected",
      `Ray tells of a job with the status ${String(r?.["status"])}`,
    );
  }
  return {
    id: String(r["submission_id"]),
    status: r["status"] as Job["status"],
    message: typeof r["message"] === "string" ? r["message"] : "",
    errorType: typeof r["error_type"] === "string" ? r["error_type"] : null,
    exitCode: typeof r["driver_exit_code"] === "number" ? r["driver_exit_code"] : null,
    nodeId: typeof r["driver_node_id"] === "string" ? r["driver_node_id"] : null,
    metadata: (r["metadata"] ?? {}) as Record<string, string>,
  };
}
