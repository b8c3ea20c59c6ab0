import { type ClusterConfig, clusterFields } from "./config.ts";
import { flagOf } from "./refusal.ts";

/** One command line, as data and as a shell line. */
export interface CommandLine {
  readonly env: Readonly<Record<string, string>>;
  readonly argv: readonly string[];
}

/** Who plays the front-end: vLLM's own server, or Muster in its place. Engine nodes are always vLLM's. */
export type Program = "vllm" | "muster";

/** Settings that only Muster has, or that vLLM takes from the environment. */
const NOT_FLAGS_OF_VLLM: readonly (keyof ClusterConfig)[] = [
  "model",
  "moe",
  "generation",
  "allowLoopback",
  "dataParallelRankLocal",
  "dataParallelMasterIp",
  "hostIp",
  "rpcBasePath",
  "rayDpPackStrategy",
];
const DEFAULTS = Object.fromEntries(
  Object.entries(clusterFields).map(([key, type]) => [key, type.parse(undefined)]),
);

/**
 * The exact command of one process: `vllm serve MODEL ...` or `muster serve ...`, with the settings that differ from
 * their defaults, and the environment that goes with it.
 */
export function commandOf(
  config: ClusterConfig,
  program: Program,
  env: Readonly<Record<string, string>> = {},
): CommandLine {
  const muster = program === "muster" && !config.headless;
  const settings = (Object.keys(clusterFields) as (keyof ClusterConfig)[])
    .filter((key) => muster ? key !== "model" : !NOT_FLAGS_OF_VLLM.includes(key))
    .filter((key) => config[key] !== undefined && config[key] !== DEFAULTS[key]);
  const flags = settings.flatMap((key) =>
    config[key] === true ? [flagOf(key)] : [flagOf(key), String(config[key])]
  );
  return {
    env: muster ? env : { ...vllmEnvironment(config), ...env },
    argv: muster
      ? [
        "muster",
        "serve",
        ...(config.model === undefined ? [] : ["--model", config.model]),
        ...flags,
      ]
      : ["vllm", "serve", config.model ?? "MODEL", ...flags],
  };
}

function vllmEnvironment(c: ClusterConfig): Record<string, string> {
  const offline = c.dataParallelRankLocal !== undefined;
  return {
    ...(c.dataParallelBackend === "ray" && c.rayDpPackStrategy !== "strict"
      ? { VLLM_RAY_DP_PACK_STRATEGY: c.rayDpPackStrategy }
      : {}),
    ...(c.hostIp === undefined ? {} : { VLLM_HOST_IP: c.hostIp }),
    ...(c.rpcBasePath === undefined || c.headless ? {} : { VLLM_RPC_BASE_PATH: c.rpcBasePath }),
    ...(offline
      ? {
        VLLM_DP_SIZE: String(c.dataParallelSize),
        VLLM_DP_RANK: String(c.dataParallelRank ?? 0),
        VLLM_DP_RANK_LOCAL: String(c.dataParallelRankLocal),
        VLLM_DP_MASTER_IP: c.dataParallelMasterIp ?? c.dataParallelAddress,
      }
      : {}),
  };
}

/** A word as a POSIX shell reads it back: quoted only where it must be. */
export const shellQuoted = (word: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

/** The line to paste into a shell. */
export const shellLine = ({ env, argv }: CommandLine): string =>
  [
    ...Object.entries(env).map(([name, value]) => `${name}=${shellQuoted(value)}`),
    ...argv.map(shellQuoted),
  ].join(" ");
