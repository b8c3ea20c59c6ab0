/** A journal that a command line names: a run's directory, or one segment's file. */
import { existsSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { type Header, JournalError, JournalReader, type Segment } from "../journal/mod.ts";
import { fileSegment, FileStore } from "../journal/stores/mod.ts";
import { Kernel, type Typed } from "../kernel/mod.ts";
import { cluster, rayScalingSystem, scalingSystem } from "../machines/mod.ts";

/** The segments of a journal. A directory that holds `journal/` stands for that. */
export function segmentsOf(path: string): readonly Segment[] {
  if (!existsSync(path)) throw missing(path);
  if (!statSync(path).isDirectory()) return [fileSegment(path, basename(path))];
  const direct = new FileStore(path).segments();
  const found = direct.length > 0 ? direct : new FileStore(join(path, "journal")).segments();
  if (found.length === 0) throw missing(path);
  return found;
}

/** A reader of a journal that has something in it. */
export function readerOf(path: string): JournalReader {
  const reader = new JournalReader(segmentsOf(path));
  if (reader.empty) throw missing(path);
  return reader;
}

const missing = (path: string): JournalError =>
  new JournalError(
    "journal-missing",
    `there is no journal at ${path}: name the directory of a run (muster serve --journal), or one of its .jsonl files`,
  );

/**
 * The kernel for the machines that a journal names: those of a coordinator, of scaling alone, of a DP coordinator by itself.
 *
 * @throws JournalError `journal-incompatible`
 */
export async function kernelFor(header: Header): Promise<Kernel<Typed, Typed>> {
  const names = Object.keys(header.machines);
  const systems: { readonly charts: object }[] = [cluster, scalingSystem, rayScalingSystem];
  if (names.length === 1) {
    // Its module knows sockets too: it is loaded only where it may be the one.
    systems.push((await import("../host/dp-coordinator.ts")).dpCoordinatorSystem);
  }
  const has = ({ charts }: { charts: object }) => names.every((name) => name in charts);
  const same = (system: { charts: object }) =>
    has(system) && Object.keys(system.charts).length === names.length;
  const system = systems.find(same) ?? systems.find(has);
  if (system !== undefined) return new Kernel<Typed, Typed>(system as never);
  const unknown = names.filter((name) => !systems.some(({ charts }) => name in charts));
  throw new JournalError(
    "journal-incompatible",
    `the journal is of machines that this version does not have (${
      unknown.join(", ")
    }): use the version that wrote it`,
  );
}
