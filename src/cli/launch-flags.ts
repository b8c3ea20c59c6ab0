/** How `muster serve` starts engines: which program, with which devices, and whether it is started again. */
import process from "node:process";
import { type Command, InvalidArgumentError, Option } from "commander";
import { withDevices } from "../drivers/launchers/environment.ts";
import { LauncherError } from "../drivers/launchers/launcher.ts";
import { vllmLaunches, vllmMissing } from "../drivers/launchers/vllm.ts";
import type { Launch } from "../machines/mod.ts";
import {
  NO_RESTARTS,
  planDevices,
  planOrThrow,
  type PlatformName,
  PLATFORMS,
  type Topology,
} from "../planning/mod.ts";
import { durationMs, wholeNumber } from "./arguments.ts";

export interface LaunchFlags {
  readonly launch: "none" | "reference" | "vllm";
  readonly model?: string;
  readonly vllm: string;
  readonly ranksPerProcess?: number;
  readonly engineArgs?: string;
  readonly devices?: readonly (readonly string[])[];
  readonly platform: PlatformName;
  readonly restarts: number;
  readonly restartAfter: number;
}

/** To the head that we play, engines of vLLM's own command are always those of another node, also on this host. */
export const AS_HEAD_OF_VLLM = { dataParallelSizeLocal: 0, allowLoopback: true } as const;

/** vLLM's command gives its engines five seconds before it kills them, and then ends itself: not to be killed before that. */
export const VLLM_STOPS_WITHIN_MS = 15_000;

export function addLaunchFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--launch <how>",
        "start engines: none (somebody else does), this node's by `reference`, or all by `vllm` serve --headless",
      )
        .choices(["none", "reference", "vllm"]).default("none"),
    )
    .option("--vllm <program>", "with --launch vllm: the command", "vllm")
    .addOption(
      new Option("--ranks-per-process <n>", "with --launch vllm: default all in one")
        .argParser(wholeNumber),
    )
    .option("--engine-args <text>", "more arguments for launched engines, separated by spaces")
    .option(
      "--devices <map>",
      "devices of each launched rank, in order: 0,1;2,3 or GPU-uuid;GPU-uuid",
      deviceLists,
    )
    .addOption(
      new Option("--platform <name>", "whose devices these are")
        .choices(Object.keys(PLATFORMS)).default("cuda"),
    )
    .addOption(
      new Option("--restarts <n>", "of one launch in a row, when it ends before its ranks serve")
        .argParser(wholeNumber).default(0),
    )
    .addOption(
      new Option(
        "--restart-after <time>",
        "before the first restart; each further one waits twice as long",
      ).argParser(durationMs).default(NO_RESTARTS.backOff.firstMs, "1s"),
    );
}

/** The further arguments of engines. */
export const engineArguments = ({ engineArgs }: LaunchFlags): string[] =>
  engineArgs?.split(/\s+/).filter((a) => a !== "") ?? [];

/**
 * The launches that the flags ask for.
 *
 * @param reference makes the reference engines of this node
 * @throws LauncherError when something is missing that is to be launched; PlanRefused when a device would serve two ranks
 */
export function launchesOf(
  flags: LaunchFlags,
  topology: Topology,
  reference: (topology: Topology, more: () => readonly string[]) => Launch[],
): Launch[] {
  const more = engineArguments(flags);
  const made = flags.launch === "reference"
    ? reference(topology, () => more)
    : flags.launch === "vllm"
    ? launchesOfVllm(flags, topology, more)
    : [];
  const backOff = { ...NO_RESTARTS.backOff, firstMs: flags.restartAfter };
  const restarts = { ...NO_RESTARTS, budget: flags.restarts, backOff };
  const launches = flags.restarts === 0 ? made : made.map((l) => ({ ...l, restarts }));
  if (flags.devices === undefined) return launches;
  const map = planOrThrow(planDevices({
    platform: PLATFORMS[flags.platform],
    localRanks: launches.flatMap((l) => l.ranks).length,
    worldSize: flags.devices[0]!.length,
    count: null,
    explicit: flags.devices,
  }));
  return withDevices(launches, map);
}

function launchesOfVllm(
  flags: LaunchFlags,
  topology: Topology,
  more: readonly string[],
): Launch[] {
  if (flags.model === undefined) {
    throw new LauncherError(
      "launch-refused",
      "--launch vllm needs --model: a directory or a name that vLLM can load",
    );
  }
  const missing = vllmMissing(flags.vllm, process.env["PATH"], process.cwd());
  if (missing !== null) throw new LauncherError("program-missing", missing);
  return vllmLaunches({
    model: flags.model,
    size: topology.size,
    ranks: topology.size,
    ...(flags.ranksPerProcess === undefined ? {} : { perLaunch: flags.ranksPerProcess }),
    program: flags.vllm,
    flags: more,
  });
}

/** `0,1;2,3`: devices of one rank by commas, ranks by semicolons. */
function deviceLists(text: string): string[][] {
  const lists = text.split(";").map((part) => part.split(",").map((id) => id.trim()));
  if (lists.some((ids) => ids.some((id) => id === ""))) {
    throw new InvalidArgumentError("It must be devices by commas, ranks by semicolons: 0,1;2,3.");
  }
  return lists;
}
