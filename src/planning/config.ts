import { z } from "zod";
import { flagOf, type Planned, type Refusal } from "./refusal.ts";

/** The largest data-parallel size: an identity on the wire is a rank in two bytes. */
export const MAX_DP_SIZE = 65_536;

/** Which releases of vLLM the engines come from (section 2.5): they differ in a few rules. */
export type Generation = "0.12" | "mid" | "newest";
export type Backend = "mp" | "ray";
/** How Ray placement groups are laid out (`VLLM_RAY_DP_PACK_STRATEGY`). */
export type PackStrategy = "strict" | "fill" | "span";

/**
 * What one process of a data-parallel deployment is told. Names are vLLM's flags in camelCase, meanings are
 * vLLM's meanings; what is not one of its flags says so.
 */
export interface ClusterConfig {
  /** The model, as `vllm serve` takes it. Muster only hands it on. */
  readonly model?: string;
  /** How many ranks there are in all (N). */
  readonly dataParallelSize: number;
  /** How many of them run on this node (L). Unset: all; one with Ray and `span`, or with an external load balancer. */
  readonly dataParallelSizeLocal?: number;
  /** This process is one rank behind an external load balancer. */
  readonly dataParallelRank?: number;
  /** The first of this node's ranks. Not zero and not headless: hybrid load balancing. */
  readonly dataParallelStartRank?: number;
  /** Offline: one process and one engine per rank, no server (`VLLM_DP_RANK_LOCAL`). */
  readonly dataParallelRankLocal?: number;
  readonly dataParallelExternalLb: boolean;
  readonly dataParallelHybridLb: boolean;
  /** One external-load-balancer child per local rank, at port, port + 1, ... */
  readonly dataParallelMultiPortExternalLb: boolean;
  readonly dataParallelBackend: Backend;
  /** Where the head node is reached by the others (MIP). */
  readonly dataParallelAddress: string;
  /** The port of the handshake on the head node; 0 takes a free one where nobody else must know it. */
  readonly dataParallelRpcPort: number;
  /** Where the ranks meet: the host of rank 0's engine. Unset: `dataParallelAddress`. */
  readonly dataParallelMasterIp?: string;
  /** This node's own address (`VLLM_HOST_IP`), where it is not the head. */
  readonly hostIp?: string;
  /** Engines only: the front-end is on another node. */
  readonly headless: boolean;
  /** How many API server processes share the engines. */
  readonly apiServerCount?: number;
  /** The HTTP port of the server. */
  readonly port: number;
  readonly enableElasticEp: boolean;
  /** How far an elastic deployment may grow. Unset: its first size. */
  readonly elasticEpMaxDpSize?: number;
  readonly enableEplb: boolean;
  readonly tensorParallelSize: number;
  readonly pipelineParallelSize: number;
  readonly prefillContextParallelSize: number;
  readonly all2allBackend?: string;
  /** `VLLM_RAY_DP_PACK_STRATEGY`. */
  readonly rayDpPackStrategy: PackStrategy;
  /** Directory of unix sockets (`VLLM_RPC_BASE_PATH`), fresh for each run. */
  readonly rpcBasePath?: string;
  /** Not a flag of vLLM: is the model a mixture of experts? Decides about waves and, behind an external load balancer, the coordinator. */
  readonly moe: boolean;
  /** Not a flag of vLLM: which releases the engines come from. */
  readonly generation: Generation;
  /** Not a flag of vLLM: the "remote" engines run on this host too, so a loopback address reaches them. */
  readonly allowLoopback: boolean;
}

/** A configuration as a user gives it: everything has a default. */
export type ClusterConfigInput = { readonly [K in keyof ClusterConfig]?: ClusterConfig[K] };

const count = (least: number, most: number): z.ZodType<number> =>
  z.number({ error: `must be a whole number from ${least} to ${most}.` })
    .refine((n) => Number.isInteger(n) && n >= least && n <= most, {
      error: `must be a whole number from ${least} to ${most}.`,
    });
const oneOf = <T extends string>(...values: [T, ...T[]]): z.ZodType<T> =>
  z.enum(values, { error: `must be one of ${values.join(", ")}.` }) as unknown as z.ZodType<T>;
const flag = z.boolean({ error: "must be true or false." });
const text = z.string({ error: "must be text." }).min(1, { error: "must not be empty." });
const rank = count(0, MAX_DP_SIZE - 1);
const size = count(1, MAX_DP_SIZE);
const port = count(0, 65_535);

/** One zod type per setting, for those who build a larger configuration around this one. */
export const clusterFields: { readonly [K in keyof Required<ClusterConfig>]: z.ZodType } = {
  model: text.optional(),
  dataParallelSize: size.default(1),
  dataParallelSizeLocal: count(0, MAX_DP_SIZE).optional(),
  dataParallelRank: rank.optional(),
  dataParallelStartRank: rank.optional(),
  dataParallelRankLocal: rank.optional(),
  dataParallelExternalLb: flag.default(false),
  dataParallelHybridLb: flag.default(false),
  dataParallelMultiPortExternalLb: flag.default(false),
  dataParallelBackend: oneOf("mp", "ray").default("mp"),
  dataParallelAddress: text.default("127.0.0.1"),
  dataParallelRpcPort: port.default(29_550),
  dataParallelMasterIp: text.optional(),
  hostIp: text.optional(),
  headless: flag.default(false),
  apiServerCount: count(0, 4096).optional(),
  port: port.default(8000),
  enableElasticEp: flag.default(false),
  elasticEpMaxDpSize: size.optional(),
  enableEplb: flag.default(false),
  tensorParallelSize: size.default(1),
  pipelineParallelSize: size.default(1),
  prefillContextParallelSize: size.default(1),
  all2allBackend: text.optional(),
  rayDpPackStrategy: oneOf("strict", "fill", "span").default("strict"),
  rpcBasePath: text.optional(),
  moe: flag.default(false),
  generation: oneOf("0.12", "mid", "newest").default("newest"),
  allowLoopback: flag.default(false),
};

/** The schema of the one public cluster configuration; unknown settings are refused. */
export const clusterConfigSchema: z.ZodType<ClusterConfig> = z.strictObject(
  clusterFields,
) as unknown as z.ZodType<ClusterConfig>;

/**
 * A configuration from anything (parsed JSON, flags of a command line), defaults filled in.
 *
 * @returns every setting that is unknown (with the nearest name), of the wrong type or out of range
 *   (`unknown-setting`, `invalid-value`). Combinations are judged by `planTopology`.
 */
export function parseClusterConfig(input: unknown): Planned<ClusterConfig> {
  const parsed = clusterConfigSchema.safeParse(input);
  if (parsed.success) return { ok: true, plan: parsed.data };
  return { ok: false, refusals: parsed.error.issues.flatMap((issue) => refusalsOf(issue, input)) };
}

/** The number of workers of one rank: TP x PP x PCP, never the data-parallel size. */
export const worldSizeOf = (config: ClusterConfig): number =>
  config.tensorParallelSize * config.pipelineParallelSize * config.prefillContextParallelSize;

function refusalsOf(issue: z.core.$ZodIssue, input: unknown): Refusal[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const near = nearest(key, Object.keys(clusterFields));
      return {
        code: "unknown-setting",
        flag: key,
        value: shown(valueAt(input, key)),
        message: "there is no such setting.",
        fix: near ? `Did you mean ${near}?` : "Remove it.",
      };
    });
  }
  const setting = String(issue.path[0] ?? "configuration");
  return [{
    code: "invalid-value",
    flag: issue.path.length ? flagOf(setting) : setting,
    value: shown(issue.path.length ? valueAt(input, setting) : input),
    message: issue.path.length ? issue.message : "must be an object of settings.",
    fix: "Correct the value.",
  }];
}

const valueAt = (input: unknown, key: string): unknown =>
  typeof input === "object" && input !== null ? (input as Record<string, unknown>)[key] : undefined;

/** A value as a message shows it. */
export const shown = (value: unknown): string =>
  value === undefined
    ? "unset"
    : typeof value === "string"
    ? value
    : JSON.stringify(value) ?? String(value);

/** The name that a misspelled or differently cased one most likely means; undefined when nothing is near. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  const plain = (name: string) => name.replace(/[^a-z0-9]/gi, "").toLowerCase();
  const scored = names
    .map((name) => ({ name, distance: editDistance(plain(word), plain(name)) }))
    .sort((a, b) => a.distance - b.distance);
  const best = scored[0];
  return best && best.distance <= Math.max(2, word.length / 4) ? best.name : undefined;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(
        row[j]! + 1,
        next[j - 1]! + 1,
        row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1),
      );
    }
    row = next;
  }
  return row[b.length]!;
}
