/** A journal that cannot be written: said at once, and nothing that had to be recorded first leaves. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { moduleCommand } from "../../src/drivers/keeper/self.ts";
import { Host, type HostError } from "../../src/host/mod.ts";
import { JournalError } from "../../src/journal/mod.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import type { Typed } from "../../src/kernel/mod.ts";
import { type Effects, kernel } from "../kernel/fixture.ts";
import { ManualClock, settle, World } from "./world.ts";

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "muster-failure-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
const open = (path: string, world: World, fault?: (name: string) => void) =>
  Host.open<Effects, Typed>({
    kernel: kernel(),
    journal: new FileStore(path),
    drivers: [world.driver()],
    configuration: { engines: 1 },
    clock: new ManualClock(),
    ...(fault === undefined ? {} : { fault }),
  });

/** A rank that is ready, so that `ping` asks for the durable call `pause`. */
async function ready(host: Host<Effects, Typed>): Promise<void> {
  await host.submit("rank/0/engine", { type: "hello" });
  await host.submit("rank/0/engine", { type: "ready", blocks: 1 });
}
const errno = (code: string) => Object.assign(new Error(`${code}: no`), { code });

const REFUSALS: readonly [code: string, point: string, says: RegExp][] = [
  ["ENOSPC", "journal.write.before", /the disk is full: free space, then start again/],
  ["ENOSPC", "journal.sync.before", /the disk is full/],
  ["EROFS", "journal.write.before", /the file system is read-only/],
  ["EIO", "journal.sync.before", /the disk failed/],
];
for (const [code, point, says] of REFUSALS) {
  test(`${code} at ${point}: the host stops, the command is told why, and no durable effect leaves`, async (t) => {
    const world = new World();
    let refuses = false;
    const host = await open(directory(t), world, (name) => {
      if (refuses && name === point) throw errno(code);
    });
    await ready(host);
    refuses = true;
    const command = host.submit("rank/0/engine", { type: "ping" });
    await assert.rejects(command, (e: HostError) => {
      assert.equal(e.code, "host-journal");
      assert.equal((e.cause as JournalError).code, "journal-store");
      return says.test(e.message);
    });
    refuses = false;
    world.say("rank/0/engine", { type: "ping" });
    await settle();
    assert.equal(host.failure?.code, "host-journal");
    assert.deepEqual(world.log.filter((l) => l.startsWith("pause")), []);
    await host.close();
    assert.equal(world.closed, true);
  });
}

test("the owner's mark is removed, or a higher one appears: the host stops and nothing durable leaves", async (t) => {
  for (
    const lose of [
      (path: string) => rmSync(join(path, "owner-000001")),
      (path: string) => writeFileSync(join(path, "owner-000002"), "{}"),
    ]
  ) {
    const path = directory(t);
    const world = new World();
    const host = await open(path, world);
    await ready(host);
    lose(path);
    await assert.rejects(
      host.submit("rank/0/engine", { type: "ping" }),
      (e: HostError) => (e.cause as JournalError).code === "journal-lost",
    );
    assert.deepEqual(world.log.filter((l) => l.startsWith("pause")), []);
    await host.close();
    assert.ok(readdirSync(path).every((name) => !name.includes("draft")));
  }
});

test("the journal is lost while its group is being synced: what the group asked for does not leave", async (t) => {
  const path = directory(t);
  const world = new World();
  let lose = false;
  const host = await open(path, world, (name) => {
    if (lose && name === "journal.sync.before") rmSync(join(path, "owner-000001"));
  });
  await ready(host);
  lose = true;
  await assert.rejects(
    host.submit("rank/0/engine", { type: "ping" }),
    (e: HostError) => (e.cause as JournalError).code === "journal-lost",
  );
  assert.deepEqual(world.log.filter((l) => l.startsWith("pause")), []);
  await host.close();
});

test("a place where nothing can be written is refused at the start", async () => {
  await assert.rejects(
    open("/proc/no-journal-here", new World()),
    (e: JournalError) =>
      e.code === "journal-store" && /cannot be written/.test(e.message) &&
      e.message.includes("/proc/no-journal-here"),
  );
});

test("a write that the system refuses for real: the record is not called safe", (t) => {
  const writer = moduleCommand(new URL("../recovery/writer.ts", import.meta.url));
  // 8 blocks of 512 bytes (dash) or 1024 (bash): the file may not grow further.
  const limited = ["-c", 'trap "" XFSZ; ulimit -f 8; exec "$@"', "sh", ...writer];
  const { stdout } = spawnSync("sh", [...limited, directory(t)], {
    encoding: "utf8",
    timeout: 60_000,
  });
  assert.match(stdout, /safe \d+\n/);
  assert.match(stdout, /failed journal-store\n$/);
});
