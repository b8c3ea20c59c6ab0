import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Host } from "../../src/host/mod.ts";
import { FORMAT, JournalError, JournalReader } from "../../src/journal/mod.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { type Effects, kernel } from "../kernel/fixture.ts";
import type { Typed } from "../../src/kernel/mod.ts";
import { World } from "../host/world.ts";

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "muster-journal-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
const open = (path: string, world: World = new World()) =>
  Host.open<Effects, Typed>({
    kernel: kernel(),
    journal: new FileStore(path),
    drivers: [world.driver()],
    configuration: { engines: 1, name: "Grüße" },
    graceMs: 0,
  });

test("a journal in a directory: one segment for each owner, lines that jq reads", async (t) => {
  const path = directory(t);
  const first = await open(path);
  await first.submit("rank/0/engine", { type: "hello" });
  await first.close();
  const second = await open(path);
  await second.recovered;
  await second.close();
  assert.deepEqual(readdirSync(path).sort(), [
    "000001-000000000001.jsonl",
    "000002-000000000003.jsonl",
    "owner-000002",
  ]);
  const lines = readFileSync(join(path, "000001-000000000001.jsonl"), "utf8").trim().split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(lines[0].format, 1);
  assert.equal(lines[1].event.name, "Grüße");
  const reader = new JournalReader(new FileStore(path).segments());
  const seqs = [...reader.records()].map(({ record }) => [record.seq, record.fence]);
  assert.deepEqual(seqs, [[1, 1], [2, 1], [3, 2]]);
});

test("a journal has one owner at a time", async (t) => {
  const path = directory(t);
  const host = await open(path);
  await assert.rejects(
    open(path),
    (e: JournalError) => e.code === "journal-locked" && /which runs: stop it first/.test(e.message),
  );
  await host.close();
  await (await open(path)).close();
});

test("durability: sync waits for fdatasync, os for the write, memory for neither", async (t) => {
  for (
    const [durability, syncs, bytesAtOnce] of [
      ["sync", true, true],
      ["os", false, true],
      ["memory", false, false],
    ] as const
  ) {
    const path = directory(t);
    const points: string[] = [];
    const journal = await new FileStore(path, { durability }).own((name) => points.push(name));
    await journal.begin({
      journal: "muster",
      format: FORMAT,
      run: "r",
      fence: 1,
      first: 1,
      at: 0,
      machines: {},
    });
    const file = join(path, "000001-000000000001.jsonl");
    const begun = statSync(file).size;
    journal.append(
      { seq: 1, fence: 1, at: 1, to: "x", digest: "0".repeat(32) },
      '{"type":"y"}',
    );
    journal.write();
    await journal.commit();
    assert.equal(points.includes("journal.sync.after"), syncs, durability);
    assert.equal(statSync(file).size > begun, bytesAtOnce, durability);
    await journal.close();
    const reader = new JournalReader(new FileStore(path).segments());
    assert.equal([...reader.records()].length, 1, durability);
  }
});

test("reading a journal of many segments leaves no file open", async (t) => {
  const path = directory(t);
  for (let owner = 0; owner < 8; owner++) await (await open(path)).close();
  const opened = () => readdirSync("/proc/self/fd").length;
  const before = opened();
  for (let i = 0; i < 20; i++) {
    const reader = new JournalReader(new FileStore(path).segments());
    const [first] = reader.records();
    reader.recordAt(first!.place);
  }
  assert.ok(opened() <= before + 2, `${opened() - before} more files are open`);
});
