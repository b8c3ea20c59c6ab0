/**
 * The story of `play.ts` as a process with a real journal: `story.ts DIRECTORY [POINT]`. The world is a file that outlives it. At the first
 * passing of the fault point it kills itself as a machine would: SIGKILL, nothing is said or written any more.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { ManualClock } from "../host/world.ts";
import { beginning, ClusterWorld, type WorldState } from "./cluster-world.ts";
import { play } from "./play.ts";

const [directory, deadly] = process.argv.slice(2) as [string, string?];
const file = join(directory, "world.json");
const state = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) as WorldState : beginning();
const world = new ClusterWorld(state, () => {
  writeFileSync(`${file}.draft`, JSON.stringify(state));
  renameSync(`${file}.draft`, file);
});

const passed = new Set<string>();
/** What is being written while promises alone would look settled. */
let writing = 0;
const WRITES = /^journal\.(sync|segment|snapshot)\.(before|after)$/;
function fault(name: string): void {
  passed.add(name);
  if (name === deadly) {
    process.kill(process.pid, "SIGKILL");
    for (;;); // it may take the system a moment
  }
  const write = WRITES.exec(name);
  if (write !== null) writing += write[2] === "before" ? 1 : -1;
}
async function settled(): Promise<void> {
  do await new Promise((resolve) => setTimeout(resolve, 2)); while (writing > 0);
}

const journal = new FileStore(join(directory, "journal"));
const ending = await play({
  world,
  journal,
  clock: new ManualClock(),
  fault,
  settled,
  snapshotEvery: 6,
  compactAfterBytes: 6000,
});
console.log(JSON.stringify({ ending, points: [...passed] }));
