/** Whether a journal tells a run of a cluster to its end: nothing goes on in it any more, and nothing is left to stop. */
import { segmentsIn } from "../journal/stores/files.ts";
import { readSnapshots } from "../journal/stores/snapshots.ts";
import { clusterKernel, ids } from "../machines/mod.ts";
import { recover } from "./recover.ts";
import { Views } from "./views.ts";

/** States of the start-up in which everything was stopped. */
const ENDS: readonly string[] = ['"stopped"', '{"failed":"cleared"}'];

/**
 * Reads the journal in a directory, whoever holds it.
 *
 * @throws JournalError `journal-damaged`, `journal-format`, `journal-incompatible`
 */
export function clusterHasEnded(directory: string): boolean {
  const journal = {
    segments: () => segmentsIn(directory),
    snapshots: () => readSnapshots(directory),
  };
  const found = recover(clusterKernel(), journal, new Views({}), true);
  const startup = found?.system.instances.get(ids.startup)?.state.snapshot.value;
  return startup !== undefined && ENDS.includes(JSON.stringify(startup));
}
