import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, writeFileSync } from "node:fs";
import process from "node:process";
import { KeeperClient, type KeeperHandlers } from "./client.ts";
import { KeeperError } from "./errors.ts";
import type { KeeperSettings } from "./keeper.ts";
import { type KeeperPlace, logOf, makePlace, removePlace, settingsFileOf } from "./place.ts";
import { extension, moduleCommand } from "./self.ts";
import { tailOf } from "./tail.ts";

export interface StartKeeper {
  place: KeeperPlace;
  /** The owner's fence (DESIGN section 5): whoever comes with a higher one takes over. */
  fence: number;
  /** How long launches may go on without a coordinator, in milliseconds; 0 stops them at once. */
  leaseMs: number;
  /** See `Hello.heartbeatMs`. */
  heartbeatMs?: number;
  /** How long launches may take to end when the lease is over, in milliseconds. Default 5000. */
  stopDeadlineMs?: number;
  /** How long it may take to start and answer, in milliseconds. Default 15000. */
  withinMs?: number;
  /** The command line that runs a keeper, before its directory. Default: this package's, on the runtime that runs now. */
  command?: readonly string[];
}

/** The command line that runs a keeper on the runtime that runs now; its directory is to be appended. */
export function keeperCommand(): string[] {
  return moduleCommand(new URL("./main" + extension(import.meta.url), import.meta.url));
}

/**
 * Starts a keeper at a fresh place and says hello to it. It is a process of its own session and outlives this one.
 * Call it before anything else is opened, so that nothing is inherited.
 * @throws KeeperError `keeper-start` with the last lines of its log
 */
export async function startKeeper(
  options: StartKeeper,
  handlers: KeeperHandlers,
): Promise<KeeperClient> {
  const { place, fence, leaseMs, stopDeadlineMs = 5000, withinMs = 15_000 } = options;
  makePlace(place);
  const settings: KeeperSettings = { mark: place.mark, fence, stopDeadlineMs };
  writeFileSync(settingsFileOf(place), JSON.stringify(settings), { mode: 0o600 });
  const child = launch([...(options.command ?? keeperCommand()), place.directory], place);
  let ended: string | null = null;
  child.on("exit", (code, signal) => ended = `it ended with ${signal ?? `exit code ${code}`}`);
  child.on("error", (error) => ended = error.message);
  child.unref();

  const deadline = Date.now() + withinMs;
  for (;;) {
    try {
      return await KeeperClient.connect(place, {
        fence,
        leaseMs,
        ...(options.heartbeatMs === undefined ? {} : { heartbeatMs: options.heartbeatMs }),
        helloWithinMs: Math.max(1, deadline - Date.now()),
      }, handlers);
    } catch (error) {
      if (!(error instanceof KeeperError) || error.code !== "keeper-gone") throw error;
      const late = Date.now() >= deadline ? `it did not answer within ${withinMs} ms` : null;
      const why = ended ?? late;
      if (why !== null) {
        if (ended === null && child.pid !== undefined) process.kill(child.pid, "SIGKILL");
        const said = tailOf(logOf(place), 10).join("\n");
        removePlace(place);
        throw new KeeperError(
          "keeper-start",
          `the keeper could not be started: ${why}${said === "" ? "" : `. It said:\n${said}`}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
  }
}

/** Variables that a keeper itself needs. The launches get what each spawn says, and none of these. */
const KEEPER_VARIABLES = ["PATH", "HOME", "TMPDIR", "LANG", "DENO_DIR", "LD_LIBRARY_PATH"];

function launch(command: readonly string[], place: KeeperPlace): ChildProcess {
  const env: Record<string, string> = {};
  for (const name of KEEPER_VARIABLES) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  const log = openSync(logOf(place), "a", 0o600);
  try {
    return spawn(command[0]!, command.slice(1), {
      cwd: "/",
      env,
      detached: true,
      stdio: ["ignore", log, log],
    });
  } finally {
    closeSync(log);
  }
}
