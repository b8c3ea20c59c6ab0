import { findMarked, isRunning, type ProcessIdentity, sendSignal } from "../process-table.ts";
import { KeeperError } from "./errors.ts";
import { type KeeperPlace, removePlace } from "./place.ts";
import { LAUNCH_MARK } from "./protocol.ts";

/** What a sweep after a lost keeper found. */
export interface SweepReport {
  /** Processes that were found by the keeper's mark and killed; null where the system cannot tell. */
  killed: number | null;
}

/**
 * Ends everything that a dead keeper has left: its guardians do so by themselves within a second or two; this looks for what is still there
 * by the keeper's mark, until nothing is found. Refuses to touch anything while the keeper runs.
 * @throws KeeperError `keeper-other` when it runs
 */
export async function sweepAfterKeeper(
  place: KeeperPlace,
  keeper: ProcessIdentity,
): Promise<SweepReport> {
  if (isRunning(keeper) === true) {
    throw new KeeperError(
      "keeper-other",
      `the keeper (process ${keeper.pid}) runs: stop it instead`,
    );
  }
  const killed = new Set<number>();
  for (let quiet = 0, round = 0; quiet < 2 && round < 250; round++) {
    const found = findMarked(LAUNCH_MARK, (mark) => mark.startsWith(`${place.mark}/`));
    if (found === null) return { killed: null };
    for (const { pid } of found) if (sendSignal(pid, "SIGKILL")) killed.add(pid);
    quiet = found.length === 0 ? quiet + 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  removePlace(place);
  return { killed: killed.size };
}
