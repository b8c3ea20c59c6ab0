import { chmodSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { Keeper, type KeeperSettings } from "./keeper.ts";
import { type KeeperPlace, readToken, removePlace, settingsFileOf, socketOf } from "./place.ts";

/**
 * The keeper as a program: `<this module> <directory>`, or `muster keeper <directory>`. The directory was made by the one who starts it
 * and holds its settings and token. It writes to its standard output, which is its log, and removes the directory when it ends well.
 */
export function runKeeper(directory: string): void {
  const settings = JSON.parse(
    readFileSync(settingsFileOf({ mark: "", directory }), "utf8"),
  ) as KeeperSettings;
  const place: KeeperPlace = { mark: settings.mark, directory };
  const keeper = new Keeper(settings, readToken(place), (report) => {
    log(`stopped after ${report.ms} ms, killed ${report.killed.length}, strays ${report.strays}`);
    removePlace(place);
    // The report to the controller leaves first; nothing else is left to do.
    setTimeout(() => process.exit(0), 20);
  });

  // From a terminal's Ctrl-C or its end the keeper hears as well: its controller decides what they mean.
  process.on("SIGINT", () => log("SIGINT: left to the controller"));
  process.on("SIGHUP", () => log("SIGHUP: left to the controller"));
  process.on("SIGTERM", () => void endWith(0, "SIGTERM"));
  const defect = (error: unknown): void => {
    log(`defect: ${(error as Error)?.stack ?? error}`);
    void endWith(70, "a defect of the keeper");
  };
  process.on("uncaughtException", defect);
  process.on("unhandledRejection", defect);
  async function endWith(code: number, why: string): Promise<void> {
    await keeper.stop(why).catch((error: Error) => log(`while stopping: ${error.message}`));
    if (code === 0) removePlace(place);
    setTimeout(() => process.exit(code), 20);
  }

  const path = socketOf(place);
  const server = createServer((socket) => keeper.accept(socket));
  server.on("error", (error) => {
    log(`cannot listen at ${path}: ${error.message}`);
    process.exit(74);
  });
  const before = process.umask(0o177);
  server.listen(path, () => {
    process.umask(before);
    chmodSync(path, 0o600);
    log(`listens, pid ${process.pid}`);
  });
}

function log(text: string): void {
  process.stdout.write(`${new Date().toISOString()} keeper: ${text}\n`);
}

const started = process.argv[1];
if (started !== undefined && import.meta.url === pathToFileURL(started).href) {
  runKeeper(process.argv[2] ?? "");
}
