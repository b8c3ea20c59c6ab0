import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { TestContext } from "node:test";
import {
  type ChildStatus,
  drawKeeperPlace,
  type ExitEvent,
  type KeeperClient,
  type KeeperPlace,
  type Launch,
  type ServiceStatus,
  startKeeper,
  sweepAfterKeeper,
  type Welcome,
} from "../../../src/drivers/keeper/mod.ts";
import {
  findMarked,
  isRunning,
  type ProcessIdentity,
  sendSignal,
} from "../../../src/drivers/process-table.ts";
import { LAUNCH_MARK } from "../../../src/drivers/keeper/protocol.ts";
import { moduleCommand } from "../../../src/drivers/keeper/self.ts";
import { until } from "../../until.ts";

/** A directory that goes away with the test. */
export function scratch(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "mk-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A launch of a shell script. */
export function shell(directory: string, id: string, script: string): Launch {
  return {
    id,
    argv: ["sh", "-c", script],
    env: { PATH: process.env.PATH! },
    cwd: directory,
    log: join(directory, "logs", `${id}.log`),
  };
}

/** A place of its own below the test's directory, swept when the test ends whatever became of it. */
export function placeFor(t: TestContext, directory: string): KeeperPlace {
  const place = drawKeeperPlace(directory);
  t.after(async () => {
    for (const { pid } of findMarked(LAUNCH_MARK, (m) => m.startsWith(place.mark)) ?? []) {
      sendSignal(pid, "SIGKILL");
    }
    await pause(1);
  });
  return place;
}

export interface Kept {
  client: KeeperClient;
  place: KeeperPlace;
  directory: string;
  exits: ExitEvent[];
  /** The next exit of this launch, also one that has happened. */
  exitOf(id: string): Promise<ExitEvent>;
  lost: string[];
  stopped: string[];
}

/** A keeper of this process's runtime with this process as its controller; stopped when the test ends. */
export async function keep(
  t: TestContext,
  options: { leaseMs?: number; command?: string[] } = {},
): Promise<Kept> {
  const directory = scratch(t);
  const place = placeFor(t, directory);
  const exits: ExitEvent[] = [];
  const lost: string[] = [];
  const stopped: string[] = [];
  const client = await startKeeper(
    {
      place,
      fence: 1,
      leaseMs: options.leaseMs ?? 0,
      stopDeadlineMs: 500,
      ...(options.command === undefined ? {} : { command: options.command }),
    },
    {
      exited: (exit) => void exits.push(exit),
      lost: (how, reason) => void lost.push(`${how}: ${reason}`),
      stopped: (why) => void stopped.push(why),
    },
  );
  t.after(async () => {
    await client.hostStop(200).catch(() => {
      // Another controller has it by now, or it is dead.
      if (isRunning(client.welcome.keeper)) sendSignal(client.welcome.keeper.pid, "SIGTERM");
    });
    await until(() => gone(client.welcome.keeper), "the keeper has ended");
  });
  const exitOf = async (id: string): Promise<ExitEvent> => {
    await until(() => exits.some((e) => e.id === id), `${id} has exited`);
    return exits.find((e) => e.id === id)!;
  };
  return { client, place, directory, exits, exitOf, lost, stopped };
}

export interface Controlled {
  process: ChildProcess;
  keeper: Welcome["keeper"];
  children: ChildStatus[];
  services: ServiceStatus[];
}

/** A controller in a process of its own, on the runtime named. */
export async function controller(
  t: TestContext,
  settings: {
    place: KeeperPlace;
    leaseMs: number;
    heartbeatMs?: number;
    launches: Launch[];
    services?: { id: string; kind: string; options: unknown }[];
    command?: string[];
  },
  runtime?: "node" | "deno",
): Promise<Controlled> {
  const [file, ...args] = [
    ...moduleOn(runtime, new URL("./controller.ts", import.meta.url)),
    JSON.stringify(settings),
  ];
  const child = spawn(file!, args, { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => {
    if (child.exitCode === null && child.signalCode === null) sendSignal(child.pid!, "SIGKILL");
  });
  let said = "";
  child.stdout!.on("data", (chunk) => said += chunk);
  await until(() => said.includes("\n") || child.exitCode !== null, "the controller has begun");
  return { process: child, ...JSON.parse(said) };
}

/** The command line that runs a module on a runtime by name; both are installed with the project. */
export function moduleOn(runtime: "node" | "deno" | undefined, module: URL): string[] {
  if (runtime === undefined || runtime === ("deno" in process.versions ? "deno" : "node")) {
    return moduleCommand(module);
  }
  const require = createRequire(import.meta.url);
  return runtime === "deno"
    ? [
      join(require.resolve("deno/package.json"), "../deno"),
      "run",
      "-q",
      "-A",
      "--no-check",
      fileURLToPath(module),
    ]
    : ["node", "--import", pathToFileURL(require.resolve("tsx")).href, fileURLToPath(module)];
}

export const keeperOn = (runtime: "node" | "deno"): string[] =>
  moduleOn(runtime, new URL("../../../src/drivers/keeper/main.ts", import.meta.url));

/** Pids of everything that this keeper has started and that runs. */
export function kept(place: KeeperPlace): number[] {
  return (findMarked(LAUNCH_MARK, (m) => m.startsWith(`${place.mark}/`)) ?? []).map((p) => p.pid);
}

/** Those of them that are in another process group than this one. */
export function keptOutside(place: KeeperPlace, group: number): number[] {
  return (findMarked(LAUNCH_MARK, (m) => m.startsWith(`${place.mark}/`)) ?? [])
    .filter((p) => p.group !== group).map((p) => p.pid);
}

export const gone = (identity: ProcessIdentity): boolean => isRunning(identity) === false;
export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until something is so, for at most ten seconds: long enough for a busy machine, and an error after. */
export { sweepAfterKeeper };
