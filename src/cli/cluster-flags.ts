/** vLLM's flags of a cluster as options of a command, and a configuration file beside them. */
import { readFileSync } from "node:fs";
import { type Command, Option } from "commander";
import type { ClusterConfigInput } from "../planning/mod.ts";
import { flagOf } from "../planning/mod.ts";
import { wholeNumber } from "./arguments.ts";
import { UsageError } from "./exit-codes.ts";

type Kind = "number" | "text" | "flag";

const FLAGS: readonly (readonly [keyof ClusterConfigInput, Kind, string])[] = [
  ["model", "text", "the model, handed on to vLLM"],
  ["dataParallelSize", "number", "how many ranks there are in all"],
  ["dataParallelSizeLocal", "number", "how many of them run on this node"],
  ["dataParallelRank", "number", "this process is one rank behind an external load balancer"],
  ["dataParallelStartRank", "number", "the first of this node's ranks (hybrid load balancing)"],
  ["dataParallelRankLocal", "number", "offline: one process and one engine per rank"],
  ["dataParallelExternalLb", "flag", "one process per rank, behind an external load balancer"],
  ["dataParallelHybridLb", "flag", "one front-end per node"],
  [
    "dataParallelMultiPortExternalLb",
    "flag",
    "one external server per local rank, at consecutive ports",
  ],
  ["dataParallelBackend", "text", "who starts the engines: mp or ray"],
  ["dataParallelAddress", "text", "where the head node is reached by the others"],
  ["dataParallelRpcPort", "number", "port of the handshake on the head node"],
  ["dataParallelMasterIp", "text", "host of rank 0's engine, where it is not this one"],
  ["hostIp", "text", "this node's own address, where it is not the head"],
  ["headless", "flag", "engines only, their front-end is on another node"],
  ["port", "number", "HTTP port of the server"],
  ["apiServerCount", "number", "how many API servers share the engines"],
  ["enableElasticEp", "flag", "elastic expert parallelism: the cluster may grow and shrink"],
  ["elasticEpMaxDpSize", "number", "how far it may grow"],
  ["enableEplb", "flag", "expert-parallel load balancing (elastic needs it)"],
  ["tensorParallelSize", "number", "workers of one rank by tensor parallelism"],
  ["pipelineParallelSize", "number", "workers of one rank by pipeline parallelism"],
  ["prefillContextParallelSize", "number", "workers of one rank by prefill context parallelism"],
  ["all2allBackend", "text", "kernels between experts"],
  ["rayDpPackStrategy", "text", "placement on Ray: strict, fill or span"],
  ["rpcBasePath", "text", "directory of unix sockets"],
  ["moe", "flag", "the model is a mixture of experts (waves are coordinated)"],
  ["generation", "text", "releases of the engines: 0.12, mid or newest"],
  ["allowLoopback", "flag", "engines of other nodes run on this host"],
];

/** Adds the flags to a command, and `--config FILE`. */
export function addClusterFlags(command: Command): Command {
  command.option("--config <file>", "a JSON file of these settings in camelCase; flags win");
  for (const [setting, kind, text] of FLAGS) {
    const flag = flagOf(setting);
    if (kind === "flag") command.option(flag, text);
    else if (kind === "text") command.option(`${flag} <text>`, text);
    else command.addOption(new Option(`${flag} <n>`, text).argParser(wholeNumber));
  }
  return command;
}

/**
 * The settings that were given, from the file and the flags.
 *
 * @throws UsageError that names the file when it cannot be read or is not a JSON object
 */
export function clusterOf(options: Readonly<Record<string, unknown>>): ClusterConfigInput {
  const given: Record<string, unknown> = {};
  if (typeof options["config"] === "string") Object.assign(given, fromFile(options["config"]));
  for (const [setting] of FLAGS) {
    if (options[setting] !== undefined) given[setting] = options[setting];
  }
  return given as ClusterConfigInput;
}

function fromFile(path: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`--config ${path}: ${(error as Error).message}`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--config ${path} is not JSON: ${(error as Error).message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError(`--config ${path}: an object of settings is expected`);
  }
  return value as Record<string, unknown>;
}
