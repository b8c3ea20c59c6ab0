/** Runs that have ended make room for the next one in the same directory: they are kept in `earlier/<run>`. */
import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { headerOf } from "../read.ts";
import type { FaultPoint } from "../store.ts";
import { FileStore } from "./file.ts";
import { makeDirectory, segmentsIn, storeError, syncDirectory } from "./files.ts";

const FOLDER = "earlier";
/** How many earlier runs are kept; the oldest go first. */
const KEPT = 8;

/** What belongs to one run, its segments last: as long as one of them is there, it is known whose way was begun. */
const belongings = (directory: string): string[] => [
  ...readdirSync(directory).filter((name) => /^snapshot-\d{12,}\.json$/.test(name)),
  ...(existsSync(join(directory, "logs")) ? ["logs"] : []),
  ...segmentsIn(directory).map((s) => s.name),
];

/** The run of a directory's last segment; undefined when there is none, or nothing in it. */
function runIn(directory: string): string | undefined {
  const last = segmentsIn(directory).at(-1);
  return last === undefined ? undefined : headerOf(last)?.run;
}

/** Its way to `earlier` was begun, and a crash came between. */
const isHalfMoved = (directory: string, run: string): boolean =>
  existsSync(join(directory, FOLDER, run));

/**
 * Makes room for a new run in a directory whose run has ended.
 *
 * @param hasEnded asked where a run is there
 * @returns where the run of before is kept, or undefined when there was none or it goes on
 * @throws JournalError as {@link moveToEarlier} does
 */
export async function makeRoom(
  directory: string,
  hasEnded: () => boolean,
): Promise<string | undefined> {
  const run = runIn(directory);
  if (run === undefined || !(isHalfMoved(directory, run) || hasEnded())) return undefined;
  return await moveToEarlier(directory, run);
}

/**
 * Moves a run that has ended to `earlier/<run>`, with its snapshots and the output of its processes. Holds the journal meanwhile; asked again
 * after a crash it goes on.
 *
 * @returns where the run is now
 * @throws JournalError `journal-locked` while somebody writes it, `journal-store`
 */
export async function moveToEarlier(
  directory: string,
  run: string,
  fault: FaultPoint = () => {},
): Promise<string> {
  const journal = await new FileStore(directory).own();
  const target = join(directory, FOLDER, run);
  try {
    makeDirectory(target);
    for (const name of belongings(directory)) {
      fault(`journal.earlier ${name}`);
      renameSync(join(directory, name), join(target, name));
    }
    fault("journal.earlier all");
    syncDirectory(target);
    syncDirectory(directory);
    forgetOldest(join(directory, FOLDER));
    return target;
  } catch (error) {
    throw storeError(directory, error);
  } finally {
    await journal.close();
  }
}

function forgetOldest(folder: string): void {
  const runs = readdirSync(folder)
    .map((name) => ({ path: join(folder, name), at: statSync(join(folder, name)).mtimeMs }))
    .sort((a, b) => b.at - a.at);
  for (const { path } of runs.slice(KEPT)) rmSync(path, { recursive: true, force: true });
}
