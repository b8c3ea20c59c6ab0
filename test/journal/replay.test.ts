/** A journal folded again: at any record, checked, forked, verified, repaired. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Host } from "../../src/host/mod.ts";
import {
  type Difference,
  fork,
  JournalError,
  JournalReader,
  MemoryStore,
  merged,
  replay,
  seal,
  type Segment,
  verify,
} from "../../src/journal/mod.ts";
import { FileStore, planRepair, repair, writeSegment } from "../../src/journal/stores/mod.ts";
import { effect, Kernel, stateDigest, type Typed } from "../../src/kernel/mod.ts";
import { definition, type Effects, engine, kernel } from "../kernel/fixture.ts";
import { ManualClock, World } from "../host/world.ts";

const NAME = "000001-000000000001.jsonl";
const segment = (text: string, name = NAME): Segment => {
  const bytes = new TextEncoder().encode(text);
  return { name, bytes: bytes.length, chunks: (from = 0) => [bytes.subarray(from)] };
};
function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "muster-replay-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A run of two ranks: one is refused once, both form up, one is asked to pause. Returns the digest after every record. */
async function recorded(journal = new MemoryStore()): Promise<{ text: string; digests: string[] }> {
  const digests: string[] = [];
  const clock = new ManualClock();
  const host = await Host.open<Effects, Typed>({
    kernel: kernel(),
    journal,
    drivers: [new World().driver()],
    configuration: { engines: 2 },
    clock,
  });
  digests.push(stateDigest(host.system));
  for (
    const [rank, event] of [
      [0, { type: "hello" }],
      [1, { type: "hello" }],
      [0, { type: "ready", blocks: -5 }],
      [0, { type: "ready", blocks: 5 }],
      [1, { type: "ready", blocks: 6 }],
      [1, { type: "ping" }],
    ] as const
  ) {
    await clock.pass(10);
    await host.submit(`rank/${rank}/engine`, event);
    digests.push(stateDigest(host.system));
  }
  await host.close();
  return { text: journal.text(), digests };
}

const check = (text: string, k = kernel()): Difference | undefined =>
  replay(k, new JournalReader([segment(text)]), { check: true }).difference;

/** The fixture's kernel with another engine. */
const kernelWith = (changed: typeof engine): Kernel<Effects> =>
  new Kernel<Effects>({
    ...definition,
    charts: { ...definition.charts, engine: { machine: changed } },
  });

test("a fold up to any record is the state that the run had then", async () => {
  const { text, digests } = await recorded();
  assert.equal(digests.length, 7);
  digests.forEach((digest, i) => {
    const { fold, records } = replay(kernel(), new JournalReader([segment(text)]), { at: i + 1 });
    assert.equal(fold.digest(), digest);
    assert.equal(records, i + 1);
  });
  assert.equal(check(text), undefined);
});

test("a check finds an altered record, although its CRC is right", async () => {
  const { text } = await recorded();
  const lines = text.split("\n");
  const at = lines.findIndex((l) => l.includes('"blocks":5'));
  lines[at] = seal(lines[at]!.slice(0, -18).replace('"blocks":5', '"blocks":50')).trimEnd();
  const found = check(lines.join("\n"))!;
  assert.deepEqual([found.record.seq, found.what, found.place.line], [5, "state", 6]);
});

test("a check finds an altered guard at the first record that it decides otherwise", async () => {
  const { text } = await recorded();
  const lenient = engine.provide({ guards: { plausible: () => true } as never });
  const found = check(text, kernelWith(lenient as typeof engine))!;
  assert.deepEqual([found.record.seq, found.record.event.type, found.what], [4, "ready", "state"]);
});

test("a check finds an altered effect where no state differs", async () => {
  const { text } = await recorded();
  const chatty = engine.provide({
    actions: { sendInit: () => [effect({ type: "init" }), effect({ type: "init" })] } as never,
  });
  const found = check(text, kernelWith(chatty as typeof engine))!;
  assert.deepEqual([found.record.seq, found.what], [2, "effects"]);
});

test("a run whose charts have another structure is gone on with only where every digest holds", async () => {
  const journal = new MemoryStore();
  await recorded(journal);
  const open = (k: Kernel<Effects>) =>
    Host.open<Effects, Typed>({
      kernel: k,
      journal,
      drivers: [new World().driver()],
      configuration: { engines: 2 },
      clock: new ManualClock(),
    });
  // The same chart from a changed configuration.
  const { constructor } = engine as unknown as {
    constructor: new (config: object, implementations: object) => typeof engine;
  };
  const changed = (change: (config: string) => string) =>
    new constructor(
      { ...JSON.parse(change(JSON.stringify(engine.config))), context: engine.config.context },
      engine.implementations,
    );
  const compatible = changed((config) => config.replace('"paused":{', '"unused":{},"paused":{'));
  await (await open(kernelWith(compatible))).close();
  const renamed = changed((config) => config.replaceAll('"connected"', '"joined"'));
  await assert.rejects(
    open(kernelWith(renamed)),
    (e: JournalError) =>
      e.code === "journal-incompatible" && /record 2 \(hello to rank\/0\/engine/.test(e.message),
  );
});

test("a fork has the same inputs and digests under a name of its own, and is not gone on with by accident", async (t) => {
  const { text, digests } = await recorded();
  const path = join(directory(t), "fork");
  writeSegment(path, fork(new JournalReader([segment(text)]), 4, "other"));
  const reader = new JournalReader(new FileStore(path).segments());
  const { fold, difference } = replay(kernel(), reader, { check: true });
  assert.equal(difference, undefined);
  assert.equal(fold.digest(), digests[3]);
  const origin = new JournalReader([segment(text)]).header!.run;
  assert.deepEqual(reader.header!.forkOf, { run: origin, seq: 4 });

  const world = new World();
  const open = (more: object) =>
    Host.open<Effects, Typed>({
      kernel: kernel(),
      journal: new FileStore(path),
      drivers: [world.driver()],
      configuration: { engines: 2 },
      clock: new ManualClock(),
      ...more,
    });
  await assert.rejects(open({}), (e: JournalError) => e.code === "journal-fork");
  assert.deepEqual(world.log, []);
  const host = await open({ fork: true });
  assert.equal(host.report.run, "other");
  await host.close();
  assert.throws(() => writeSegment(path, ["{}"]), /it is there already/);
  assert.throws(
    () => fork(new JournalReader([segment(text)]), 99, "x"),
    (e: JournalError) => e.code === "journal-missing" && /has records 1 to 7/.test(e.message),
  );
});

test("a journal of several owners becomes one segment that says the same", async (t) => {
  const path = directory(t);
  for (let owner = 1; owner <= 3; owner++) {
    const host = await Host.open<Effects, Typed>({
      kernel: kernel(),
      journal: new FileStore(path),
      drivers: [new World().driver()],
      configuration: { engines: 2 },
      clock: new ManualClock(),
    });
    await host.submit("rank/0/engine", { type: "hello" });
    await host.close();
  }
  const whole = new JournalReader(new FileStore(path).segments());
  const inputs = [...whole.records()].map(({ record: { fence: _, ...rest } }) => rest);
  const one = new JournalReader([
    segment(merged(new JournalReader(new FileStore(path).segments())).join("")),
  ]);
  assert.deepEqual([...one.records()].map(({ record: { fence: _, ...rest } }) => rest), inputs);
  assert.equal(one.header!.run, whole.header!.run);
});

test("verify reads on after the first problem, repair keeps what is before it and sets the rest aside", async (t) => {
  const { text } = await recorded();
  const path = directory(t);
  const lines = text.trimEnd().split("\n");
  const spoiled = (line: string) => line.replace('"fence":1', '"fence":8');
  const broken = lines.map((l, i) => i === 4 || i === 6 ? spoiled(l) : l).join("\n") + "\n";
  writeFileSync(join(path, NAME), broken);
  const verdict = verify(new FileStore(path).segments());
  assert.deepEqual([verdict.records, verdict.seq], [3, 3]);
  assert.deepEqual(verdict.problems.map((p) => p.place?.line), [5, 7]);

  const plan = planRepair(path);
  const keeps = lines.slice(0, 4).join("\n").length + 1;
  assert.deepEqual(plan.setAside, [{ file: NAME, as: `${NAME}.damaged`, keeps }]);
  assert.equal(readFileSync(join(path, NAME), "utf8"), broken, "a plan changes nothing");
  await repair(path, plan);
  assert.equal(readFileSync(join(path, `${NAME}.damaged`), "utf8"), broken);
  const after = verify(new FileStore(path).segments());
  assert.deepEqual([after.seq, after.problems], [3, []]);
  assert.equal(
    replay(kernel(), new JournalReader(new FileStore(path).segments()), { check: true }).difference,
    undefined,
  );
  assert.ok(readdirSync(path).includes("owner-000002"), "the next owner has a higher fence");

  writeFileSync(join(path, NAME), "nothing of this kind\n");
  assert.throws(() => planRepair(path), /nothing of the journal .* can be kept/);
});
