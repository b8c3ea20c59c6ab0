/** Snapshots in a journal's directory. Caches: one that cannot be read, or does not fit, is passed over. */
import { readdirSync, readFileSync, unlinkSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32Ascii } from "../crc.ts";
import { asciiJson } from "../record.ts";
import type { FaultPoint, Snapshot } from "../store.ts";

const PATTERN = /^snapshot-\d{12,}\.json$/;
const KEPT = 2;

const namesIn = (directory: string): string[] =>
  readdirSync(directory).filter((name) => PATTERN.test(name)).sort().reverse();

/** The snapshots that can be read, newest first. */
export function* readSnapshots(directory: string): Generator<Snapshot> {
  for (const name of namesIn(directory)) {
    const snapshot = readSnapshot(join(directory, name));
    if (snapshot !== undefined) yield snapshot;
  }
}

function readSnapshot(path: string): Snapshot | undefined {
  try {
    const [crc, body] = readFileSync(path, "latin1").split("\n") as [string, string];
    if (Number.parseInt(crc, 16) !== crc32Ascii(body)) return undefined;
    return JSON.parse(body) as Snapshot;
  } catch {
    return undefined;
  }
}

/** Writes a snapshot beside its name, then gives it the name; removes all but the newest two. */
export async function writeSnapshot(
  directory: string,
  snapshot: Snapshot,
  fault: FaultPoint,
): Promise<void> {
  const name = `snapshot-${String(snapshot.system.seq).padStart(12, "0")}.json`;
  const path = join(directory, name);
  const body = asciiJson(snapshot);
  fault("journal.snapshot.before");
  await writeFile(`${path}.draft`, `${crc32Ascii(body).toString(16)}\n${body}\n`, { mode: 0o600 });
  fault("journal.snapshot.written");
  await rename(`${path}.draft`, path);
  fault("journal.snapshot.after");
  for (const old of namesIn(directory).slice(KEPT)) unlinkSync(join(directory, old));
}
