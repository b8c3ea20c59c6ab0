import { createHash, randomUUID } from "node:crypto";
import type { JobSpec, RayApi } from "./api.ts";
import { RayError } from "./error.ts";
import { entrypointOf, GUARD_SCRIPT, GUARD_VARIABLE } from "./guard.ts";
import type { RayOrder } from "./launcher.ts";

/** What all jobs of a launcher have in common. */
export interface JobTerms {
  readonly fleet: string;
  readonly lease: { readonly host: string; readonly port: number } | null;
  readonly leaseMs: number;
  readonly graceMs: number;
  /** Wall clock, milliseconds: a job that starts later must not. */
  readonly notAfterMs: number;
}

/** A launch as a job: its id, its guarded entrypoint, and what identifies it later. */
export function specOf(order: RayOrder, terms: JobTerms): JobSpec {
  const id = jobIdOf(terms.fleet, order.id);
  const graceSeconds = Math.max(1, Math.ceil(terms.graceMs / 1000));
  return {
    id,
    node: order.node,
    ip: order.ip,
    resources: order.resources,
    entrypoint: entrypointOf({
      id,
      lease: terms.lease,
      notAfter: Math.ceil(terms.notAfterMs / 1000),
      leaseSeconds: terms.leaseMs / 1000,
      graceSeconds,
      cwd: order.cwd,
      argv: order.argv,
    }),
    // Ray's own force comes after the guard's, which knows how the rank ended.
    env: {
      ...order.env,
      [GUARD_VARIABLE]: GUARD_SCRIPT,
      RAY_JOB_STOP_WAIT_TIME_S: String(graceSeconds + Math.ceil(terms.leaseMs / 4000) + 2),
    },
    metadata: {
      launcher: "muster",
      fleet: terms.fleet,
      launch: order.id,
      ranks: order.ranks.join(","),
      order: hashOf(order),
      submission: randomUUID(),
    },
  };
}

/** Ray takes letters, digits, `-` and `_`; everything else, and `_` itself, becomes `_` and its code. */
const jobIdOf = (fleet: string, id: string): string =>
  `${fleet}-${id.replace(/[^A-Za-z0-9-]/g, (c) => `_${c.charCodeAt(0).toString(16)}`)}`;

const hashOf = ({ id, ranks, argv, env, cwd, node, resources }: RayOrder): string =>
  createHash("sha256").update(JSON.stringify({ id, ranks, argv, env, cwd, node, resources }))
    .digest("hex").slice(0, 16);

const MOST_TRIES = 3;

/**
 * Submits a job so that it exists exactly once. After an answer that does not say whether it arrived, the id is
 * looked up: this submission is ours, none is submitted again, another job of that id is refused.
 */
export async function submitOnce(api: RayApi, spec: JobSpec): Promise<void> {
  for (let attempt = 1;; attempt++) {
    let trouble: RayError;
    try {
      return await api.submit(spec);
    } catch (error) {
      if (!(error instanceof RayError)) throw error;
      if (error.code === "ray-refused" || error.code === "ray-unauthorised") throw error;
      trouble = error;
    }
    const job = await api.job(spec.id).catch(() => null);
    if (job?.metadata["submission"] === spec.metadata["submission"]) return;
    if (job !== null) {
      throw new RayError("ray-refused", `another job has the id ${spec.id}; launches need new ids`);
    }
    if (attempt === MOST_TRIES) throw trouble;
  }
}
