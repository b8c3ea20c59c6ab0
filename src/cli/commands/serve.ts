import process from "node:process";
import { type Command, Option } from "commander";
import { durationMs, portNumber, wholeNumber } from "../arguments.ts";
import type { Launch } from "../../machines/mod.ts";
import type { Topology } from "../../planning/mod.ts";
import { UsageError } from "../exit-codes.ts";
import { DEFAULT_PORT } from "../service-client.ts";
import { addClusterFlags, clusterOf } from "../cluster-flags.ts";
import {
  addLaunchFlags,
  AS_HEAD_OF_VLLM,
  engineArguments,
  launchesOf,
  type LaunchFlags,
  VLLM_STOPS_WITHIN_MS,
} from "../launch-flags.ts";

interface Flags extends LaunchFlags {
  readonly journal?: string;
  readonly anew?: boolean;
  readonly directory?: string;
  readonly durability?: "sync" | "os" | "memory";
  readonly strict?: boolean;
  readonly hash?: string;
  readonly onFailure: "stop" | "hold";
  readonly lease: number;
  readonly totalLimit?: number;
  readonly connectLimit?: number;
  readonly readyLimit?: number;
  readonly progressLimit?: number;
  readonly stopLimit?: number;
  readonly heartbeat?: number;
  readonly heartbeatLimit?: number;
  readonly http?: string;
  readonly token?: string;
  readonly maxSize?: number;
  readonly scaleUpLaunch?: boolean;
  readonly experts: number;
  readonly redundantExperts: number;
  readonly enginesAfterAbort: "restart" | "hold";
  readonly once?: boolean;
  readonly console?: number;
  readonly consoleHost: string;
  readonly json?: boolean;
}

/** `muster serve`: be the front-end of a cluster: shake hands with its engines, and hold it. */
export function serveCommand(program: Command): void {
  const command = program.command("serve")
    .description("shake hands with the engines of a cluster and hold it until Ctrl-C");
  addLaunchFlags(addClusterFlags(command))
    .option("--journal <directory>", "keep the journal here, and go on with the run that is there")
    .option(
      "--anew",
      "a run in --journal that has failed or was stopped is kept in its folder earlier, and a new one begins",
    )
    .option("--directory <directory>", "for unix sockets and the output of processes")
    .addOption(
      new Option("--durability <level>", "of the journal").choices(["sync", "os", "memory"]),
    )
    .option("--strict", "end the start-up where vLLM's own would (strict: upstream)")
    .option("--hash <text>", "the configuration hash that every rank must have")
    .addOption(
      new Option("--on-failure <what>", "stop the processes, or hold them for a look")
        .choices(["stop", "hold"]).default("stop"),
    )
    .option("--lease <time>", "how long launched engines outlive this process", durationMs, 0)
    .option("--total-limit <time>", "for the whole start-up", durationMs)
    .option("--connect-limit <time>", "for each rank: until its HELLO", durationMs)
    .option("--ready-limit <time>", "for each rank: from HELLO to READY", durationMs)
    .option(
      "--progress-limit <time>",
      "a launched process may be silent for so long; 0: for ever",
      durationMs,
    )
    .option(
      "--heartbeat <time>",
      "so often are serving ranks of other hosts asked for a sign of life; 0: never",
      durationMs,
    )
    .option(
      "--heartbeat-limit <time>",
      "so long may their answer take, and that of every rank to a coordinator that came back",
      durationMs,
    )
    .option("--stop-limit <time>", "until a process that is to stop is killed", durationMs)
    .option(
      "--http <address>",
      `serve the HTTP API here, as host:port or a port of this machine (default with --max-size: ${DEFAULT_PORT})`,
    )
    .option("--token <text>", "of the HTTP API, needed beyond loopback; MUSTER_TOKEN by default")
    .addOption(
      new Option("--max-size <n>", "let the cluster scale while it serves, up to so many ranks")
        .argParser(wholeNumber),
    )
    .option(
      "--scale-up-launch",
      `this rank joins a group that scales up, behind an external load balancer (${SCALE_UP_MARK}=1 says the same)`,
    )
    .addOption(
      new Option("--experts <n>", "logical experts of the model: no size may lose one")
        .argParser(wholeNumber).default(0),
    )
    .addOption(
      new Option("--redundant-experts <n>", "at the first size").argParser(wholeNumber).default(0),
    )
    .addOption(
      new Option(
        "--engines-after-abort <what>",
        "when a scaling left engines that cannot scale again: start all anew, or serve on with them",
      ).choices(["restart", "hold"]).default("hold"),
    )
    .addOption(
      new Option("--console [port]", "the local page of this run, on this port or a free one")
        .argParser(portNumber).preset(0),
    )
    .option(
      "--console-host <address>",
      "where it listens; other machines need its token",
      "127.0.0.1",
    )
    .option("--once", "stop when the cluster has formed up")
    .option("--json", "print the final status as JSON")
    .action(async (flags: Flags & Record<string, unknown>) => {
      if (flags.anew === true && flags.journal === undefined) {
        throw new UsageError("--anew needs --journal: without one every run is a new one");
      }
      const { runCluster } = await import("../run-cluster.ts");
      const { joiningEngine, referenceEngines } = await import("../../testing/mod.ts");
      process.exitCode = await runCluster({
        json: flags.json === true,
        hold: flags.once !== true,
        ...(flags.http === undefined && flags.maxSize === undefined
          ? {}
          : { http: { ...addressOf(flags.http), token: flags.token } }),
        ...(flags.console === undefined
          ? {}
          : { console: { host: flags.consoleHost, port: flags.console } }),
        options: {
          cluster: clusterOf(flags.launch === "vllm" ? { ...flags, ...AS_HEAD_OF_VLLM } : flags),
          launches: (topology) =>
            joining(flags, topology, launchesOf(flags, topology, referenceEngines)),
          ...(flags.journal === undefined ? {} : { journal: flags.journal }),
          ...(flags.anew === undefined ? {} : { anew: flags.anew }),
          ...(flags.directory === undefined ? {} : { directory: flags.directory }),
          ...(flags.durability === undefined ? {} : { durability: flags.durability }),
          strict: flags.strict ? "upstream" : "muster",
          parallelConfigHash: flags.hash ?? null,
          onFailure: flags.onFailure,
          leaseMs: flags.lease,
          limits: flags.launch === "vllm"
            ? { stopMs: VLLM_STOPS_WITHIN_MS, ...limitsOf(flags) }
            : limitsOf(flags),
          ...(flags.maxSize === undefined ? {} : {
            scaling: {
              maxSize: flags.maxSize,
              experts: flags.experts,
              redundantExperts: flags.redundantExperts,
              enginesAfterAbort: flags.enginesAfterAbort,
              joiner: flags.launch === "reference" ? joiningEngine(engineArguments(flags)) : null,
            },
          }),
        },
      });
    });
}

/** The mark of a rank that joins; it is launched as any other, and shakes hands with whoever scales up. */
const SCALE_UP_MARK = "VLLM_ELASTIC_EP_SCALE_UP_LAUNCH";

function joining(
  flags: Flags,
  topology: Topology,
  launches: readonly Launch[],
): readonly Launch[] {
  if (flags.scaleUpLaunch !== true && process.env[SCALE_UP_MARK] !== "1") return launches;
  if (topology.mode !== "external" || topology.firstRank === 0) {
    throw new UsageError(
      `--scale-up-launch (${SCALE_UP_MARK}=1): only a rank behind an external load balancer joins by itself, and rank 0 is there already; give --data-parallel-rank, or leave it out`,
    );
  }
  return launches.map((launch) => ({ ...launch, env: { ...launch.env, [SCALE_UP_MARK]: "1" } }));
}

/** `8900`, `127.0.0.1:8900` or `[::1]:8900`. */
function addressOf(text: string | undefined): { host: string; port: number } {
  const match = /^(?:(?:\[([^\]]+)\]|([^:]+)):)?(\d+)$/.exec(text ?? String(DEFAULT_PORT));
  if (match === null || Number(match[3]) > 65_535) {
    throw new UsageError(
      `--http ${text}: it must be host:port, or a port of this machine from 0 to 65535`,
    );
  }
  return { host: match[1] ?? match[2] ?? "127.0.0.1", port: Number(match[3]) };
}

function limitsOf(flags: Flags): Record<string, number> {
  const limits = {
    totalMs: flags.totalLimit,
    connectMs: flags.connectLimit,
    readyMs: flags.readyLimit,
    progressMs: flags.progressLimit,
    stopMs: flags.stopLimit,
    heartbeatEveryMs: flags.heartbeat,
    heartbeatWithinMs: flags.heartbeatLimit,
  };
  return Object.fromEntries(
    Object.entries(limits).filter((e): e is [string, number] => e[1] !== undefined),
  );
}
