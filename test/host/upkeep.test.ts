import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Host, type HostOptions, type View } from "../../src/host/mod.ts";
import { type Applied, JournalReader, MemoryStore } from "../../src/journal/mod.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { type Json, stateDigest, type Typed } from "../../src/kernel/mod.ts";
import { type Effects, kernel } from "../kernel/fixture.ts";
import { ManualClock, World } from "./world.ts";

/** Counts inputs by type. */
class Tally implements View {
  readonly version: number;
  counts: Record<string, number> = {};
  constructor(version = 1) {
    this.version = version;
  }
  apply({ input }: Applied): void {
    this.counts[input.event.type] = (this.counts[input.event.type] ?? 0) + 1;
  }
  save(): Json {
    return { ...this.counts };
  }
  load(saved: Json): void {
    this.counts = { ...(saved as Record<string, number>) };
  }
}

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "muster-upkeep-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
const open = (options: Partial<HostOptions<Effects, Typed>>) =>
  Host.open<Effects, Typed>({
    kernel: kernel(),
    journal: new MemoryStore(),
    drivers: [new World().driver()],
    configuration: { engines: 2 },
    clock: new ManualClock(),
    ...options,
  });
/** One engine that says hello again and again. */
async function talk(host: Host<Effects, Typed>, times: number): Promise<void> {
  const said = [];
  for (let i = 0; i < times; i++) said.push(host.submit("rank/0/engine", { type: "hello" }));
  await Promise.all(said);
}
const files = (path: string, kind: RegExp) => readdirSync(path).filter((n) => kind.test(n)).sort();

test("a restart begins with the newest snapshot and replays what came after it, views too", async (t) => {
  const path = directory(t);
  const first = await open({ journal: new FileStore(path), views: { tally: new Tally() } });
  await talk(first, 99);
  await first.snapshot();
  await talk(first, 5);
  await first.close();
  const tally = new Tally();
  const second = await open({ journal: new FileStore(path), views: { tally } });
  assert.deepEqual([second.report.from, second.report.replayed], [100, 5]);
  assert.deepEqual(tally.counts, { configured: 1, hello: 104, resumed: 1 });
  await second.close();

  const whole = await open({ journal: new FileStore(path), views: { tally: new Tally(2) } });
  assert.deepEqual([whole.report.from, whole.report.replayed], [0, 106], "another view: no cache");
  await whole.close();
});

test("a snapshot that is damaged, of another run, or of a state that its record does not have is passed over", async (t) => {
  const path = directory(t);
  const host = await open({ journal: new FileStore(path) });
  await talk(host, 9);
  await host.snapshot();
  await talk(host, 5);
  await host.close();
  const [name] = files(path, /^snapshot/);
  const good = readFileSync(join(path, name!), "latin1");
  const spoil: Record<string, (text: string) => string> = {
    "one digit of it": (text) => text.replace('"hello"', '"hullo"').replace("000", "001"),
    "cut": (text) => text.slice(0, 100),
    "empty": () => "",
  };
  for (const [what, change] of Object.entries(spoil)) {
    writeFileSync(join(path, name!), change(good));
    const again = await open({ journal: new FileStore(path) });
    assert.equal(again.report.from, 0, what);
    await again.close();
  }
  writeFileSync(join(path, name!), good);
  const again = await open({ journal: new FileStore(path) });
  assert.equal(again.report.from, 10);
  await again.close();
});

test("compaction replaces the past by a checkpoint: state, configuration, open calls, timers and views go on", async (t) => {
  const path = directory(t);
  const host = await open({ journal: new FileStore(path), views: { tally: new Tally() } });
  await talk(host, 20);
  await host.submit("rank/0/engine", { type: "ready", blocks: 3 });
  await host.submit("rank/0/engine", { type: "ping" });
  const before = stateDigest(host.system);
  await host.compact();
  assert.equal(stateDigest(host.system), before);
  assert.deepEqual(files(path, /jsonl$/), ["000001-000000000024.jsonl"]);
  await host.submit("rank/1/engine", { type: "hello" });
  await host.close();

  const tally = new Tally();
  const world = new World();
  const clock = new ManualClock();
  const again = await open({
    journal: new FileStore(path),
    views: { tally },
    drivers: [world.driver()],
    clock,
  });
  await clock.pass(1000);
  const report = await again.recovered;
  assert.deepEqual([report.from, report.replayed], [23, 1]);
  assert.deepEqual(tally.counts, { configured: 1, hello: 21, ready: 1, ping: 1, resumed: 1 });
  assert.deepEqual(report.owed.map((o) => [o.call, o.done]), [["23.0", "repeated"]]);
  assert.ok(world.log.includes("pause 23.0"));
  await again.close();
  await assert.rejects(
    open({ journal: new FileStore(path), configuration: { engines: 5 } }),
    /engines: recorded 2, given 5/,
  );
});

test("an owner that dies between its checkpoint and its next record leaves a whole journal", async (t) => {
  const path = directory(t);
  const host = await open({ journal: new FileStore(path) });
  await talk(host, 20);
  await host.compact();
  await host.close();
  // The next one begins at the same record as the checkpoint's segment, and so does the one after it.
  for (const fence of [2, 3]) {
    const next = await open({ journal: new FileStore(path) });
    assert.deepEqual([next.report.fence, next.report.from], [fence, 21]);
    await next.close();
  }
  const reader = new JournalReader(new FileStore(path).segments());
  const records = [...reader.records()].map(({ record }) => [record.seq, record.event.type]);
  assert.deepEqual(records, [[22, "resumed"], [23, "resumed"]]);
  assert.deepEqual(reader.leftOut, []);
});

test("a journal that is compacted by size stays small however long it runs", async (t) => {
  const path = directory(t);
  const host = await open({ journal: new FileStore(path), compactAfterBytes: 20_000 });
  let largest = 0;
  for (let i = 0; i < 30; i++) {
    await talk(host, 100);
    const bytes = files(path, /jsonl$/).reduce((n, f) => n + statSync(join(path, f)).size, 0);
    largest = Math.max(largest, bytes);
  }
  assert.equal(host.system.seq, 3001);
  assert.ok(largest < 60_000, `largest was ${largest} bytes`);
  await host.close();
  const reader = new JournalReader(new FileStore(path).segments());
  assert.ok(reader.checkpoint!.system.seq > 2700);
  assert.equal([...reader.records()].length, 3001 - reader.checkpoint!.system.seq);
});

test("what is redacted reaches neither the journal nor the machines", async () => {
  const journal = new MemoryStore();
  const host = await open({
    journal,
    redact: (_, event) => "token" in event ? { ...event, token: "***" } : event,
  });
  const result = await host.submit("rank/0/engine", { type: "hello", token: "secret" });
  assert.equal(result.input.event["token"], "***");
  assert.ok(!journal.text().includes("secret"));
  await host.close();
});
