/**
 * Writes the golden journals of `test/golden/` that do not exist yet: `node --import tsx scripts/golden.ts`. Those that exist are never
 * written again: they are what earlier versions wrote, and today's must read.
 */
import { appendFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Host } from "../src/host/mod.ts";
import { FileStore } from "../src/journal/stores/mod.ts";
import type { Typed } from "../src/kernel/mod.ts";
import { ManualClock, World } from "../test/host/world.ts";
import { type Effects, kernel } from "../test/kernel/fixture.ts";
import { ClusterWorld } from "../test/recovery/cluster-world.ts";
import { play } from "../test/recovery/play.ts";

const FOLDER = "test/golden";

/** Two charts, three owners: a checkpoint, a torn end that was cut, text beyond ASCII, an open call, armed timers. */
async function format1(path: string): Promise<void> {
  const clock = new ManualClock();
  const open = () =>
    Host.open<Effects, Typed>({
      kernel: kernel(),
      journal: new FileStore(path),
      drivers: [new World().driver()],
      configuration: { engines: 3, note: "größer \u{1F600}" },
      clock,
    });
  let host = await open();
  await host.submit("rank/0/engine", { type: "hello" });
  await clock.pass(250);
  await host.submit("rank/0/engine", { type: "ready", blocks: 17 });
  await host.compact();
  await host.submit("rank/0/engine", { type: "ping" });
  await host.close();
  await clock.pass(400);
  host = await open();
  await host.submit("rank/1/engine", { type: "hello" });
  await host.submit("rank/7/engine", { type: "hello" });
  await host.submit("rank/1/engine", { type: "ready", blocks: -1 });
  await host.close();
  await clock.pass(700);
  host = await open();
  await clock.pass(2000);
  await host.close();
  const last = new FileStore(path).segments().at(-1)!;
  appendFileSync(join(path, last.name), '{"seq":11,"fence":3,"at":10');
}

/** A cluster of two ranks: launched, formed up, stopped. */
async function cluster(path: string): Promise<void> {
  await play({
    world: new ClusterWorld(),
    journal: new FileStore(path),
    clock: new ManualClock(),
    fault: () => {},
    settled: () => new Promise((resolve) => setTimeout(resolve, 20)),
  });
}

for (const [name, write] of Object.entries({ "format-1": format1, "cluster-0.1": cluster })) {
  const path = join(FOLDER, name);
  if (existsSync(path)) continue;
  await write(path);
  for (let fence = 1; fence < 10; fence++) {
    rmSync(join(path, `owner-${String(fence).padStart(6, "0")}`), { force: true });
  }
  console.log(`wrote ${path}`);
}
