import assert from "node:assert/strict";
import { test } from "node:test";
import { assign, setup } from "xstate";
import { ConfigurationChangedError, Host, type HostError } from "../../src/host/mod.ts";
import { JournalError, JournalReader, MemoryStore, replay } from "../../src/journal/mod.ts";
import {
  type Chart,
  effect,
  Kernel,
  start,
  stateDigest,
  type Typed,
} from "../../src/kernel/mod.ts";
import { type Effects, kernel } from "../kernel/fixture.ts";
import { ManualClock, settle, World } from "./world.ts";

const READY_TIMER = "xstate.after.readyDeadline.engine.connected";

const open = (
  { world = new World(), clock = new ManualClock(), journal = new MemoryStore(), ...rest }: {
    world?: World;
    clock?: ManualClock;
    journal?: MemoryStore;
    configuration?: object;
    fault?: (name: string) => void;
  } = {},
) =>
  Host.open<Effects, Typed>({
    kernel: kernel(),
    journal,
    drivers: [world.driver()],
    configuration: { engines: 2 },
    clock,
    ...rest,
  });

const recordsOf = (journal: MemoryStore) =>
  [...new JournalReader(journal.segments()).records()].map((p) => p.record);

test("a run begins with its configuration, and inputs of drivers follow in order", async () => {
  const world = new World();
  const journal = new MemoryStore();
  const host = await open({ world, journal });
  world.say("rank/0/engine", { type: "hello" });
  world.say("rank/1/engine", { type: "hello" });
  await settle();
  assert.deepEqual(recordsOf(journal).map((r) => [r.seq, r.to, r.event]), [
    [1, "@system", { type: "configured", engines: 2 }],
    [2, "rank/0/engine", { type: "hello" }],
    [3, "rank/1/engine", { type: "hello" }],
  ]);
  assert.equal(host.report.fresh, true);
  await host.close();
  assert.equal(world.closed, true);
});

test("effects leave in the order in which they were asked for, resources first", async () => {
  const world = new World();
  const host = await open({ world });
  world.say("rank/0/engine", { type: "hello" });
  await settle();
  world.say("rank/0/engine", { type: "exited", code: 1 });
  await settle();
  assert.deepEqual(world.log, [
    "init 2.1",
    "hold rank/0/engine bus",
    "release rank/0/engine bus",
  ]);
  await host.close();
});

test("a durable effect leaves only after the sync, an appended one after the write", async () => {
  const world = new World();
  const seen: string[] = [];
  const fault = (name: string) => {
    if (name.startsWith("journal.") || name.endsWith(".before")) seen.push(name);
  };
  const host = await open({ world, fault });
  for (const r of [0, 1]) {
    world.say(`rank/${r}/engine`, { type: "hello" });
    world.say(`rank/${r}/engine`, { type: "ready", blocks: 5 });
  }
  await settle();
  seen.length = 0;
  world.say("rank/1/engine", { type: "ping" });
  await settle();
  assert.deepEqual(seen, [
    "journal.write.before",
    "journal.write.after",
    "journal.sync.before",
    "journal.sync.after",
    "effect.pause.before",
  ]);
  await host.close();
});

test("a command resolves with what it led to once it is safe", async () => {
  const seen: string[] = [];
  const host = await open({ fault: (name) => seen.push(name) });
  const result = await host.submit("rank/0/engine", { type: "hello" });
  assert.equal(result.input.seq, 2);
  assert.equal(seen.filter((name) => name.startsWith("journal.")).at(-1), "journal.sync.after");
  assert.equal(host.system.seq, 2);
  await host.close();
  await assert.rejects(
    host.submit("rank/0/engine", { type: "hello" }),
    (e: HostError) => e.code === "host-closed",
  );
});

test("a step that cannot be computed is its sender's error alone: what it had begun is undone", async () => {
  const counter: Chart<{ n: number }, { type: "good" } | { type: "bad" }> = setup({
    types: {} as { context: { n: number }; events: { type: "good" } | { type: "bad" } },
    actions: {
      count: assign({ n: ({ context }) => context.n + 1 }),
      ask: () => effect({ type: "nobody carries this out" }),
    },
  }).createMachine({
    id: "counter",
    context: { n: 0 },
    on: { good: { actions: "count" }, bad: { actions: ["count", "ask"] } },
  });
  const charts = { counter: { machine: counter, interned: false } };
  const counting = new Kernel({ charts, effects: {}, boot: () => [start("x", "counter")] });
  const journal = new MemoryStore();
  const host = await Host.open({
    kernel: counting,
    journal,
    drivers: [],
    configuration: {},
    clock: new ManualClock(),
  });
  const say = (type: string) =>
    host.submit("x", { type }).then((r) => r.input.seq, (e: HostError) => e.code);
  const answers = await Promise.all(["good", "bad", "good", "bad", "good"].map(say));
  assert.deepEqual(answers, [2, "host-step", 3, "host-step", 4]);
  assert.deepEqual(host.system.instances.get("x")?.state.snapshot.context, { n: 3 });
  const { fold, difference } = replay(counting, new JournalReader(journal.segments()), {
    check: true,
  });
  assert.equal(difference, undefined);
  assert.equal(fold.digest(), stateDigest(host.system));
  await host.close();
});

test("timers fire as inputs, once, and a disarmed one does not", async () => {
  const world = new World();
  const clock = new ManualClock();
  const journal = new MemoryStore();
  const host = await open({ world, clock, journal });
  await clock.pass(500);
  world.say("rank/0/engine", { type: "hello" });
  await clock.pass(499);
  assert.equal(recordsOf(journal).length, 2);
  await clock.pass(1);
  const fired = recordsOf(journal).at(-1)!;
  assert.equal(fired.to, "rank/1/engine", "its hello deadline; the one of rank 0 is disarmed");
  assert.equal(fired.at, 1_001_000);
  await clock.pass(10_000);
  assert.deepEqual(recordsOf(journal).at(-1)!.event, {
    type: "timer.fired",
    timer: READY_TIMER,
    generation: 3,
  });
  assert.equal(recordsOf(journal).length, 4);
  await host.close();
});

test("time in the journal never runs back, and deadlines do not wait for a clock that was set back", async () => {
  const world = new World();
  const clock = new ManualClock();
  const journal = new MemoryStore();
  const host = await open({ world, clock, journal });
  clock.set(500_000);
  world.say("rank/0/engine", { type: "hello" });
  await settle();
  assert.equal(recordsOf(journal).at(-1)!.at, 1_000_000);
  await clock.pass(1000);
  await host.close();
  assert.deepEqual(recordsOf(journal).map((r) => r.at), [1_000_000, 1_000_000]);
});

test("after a restart the system is the same, resources and timers are back, owed calls are carried out again", async () => {
  const journal = new MemoryStore();
  const clock = new ManualClock();
  const world = new World();
  const host = await open({ journal, clock, world });
  world.say("rank/0/engine", { type: "hello" });
  world.say("rank/0/engine", { type: "ready", blocks: 7 });
  world.say("rank/0/engine", { type: "ping" });
  world.say("rank/1/engine", { type: "hello" });
  await settle();
  const before = stateDigest(host.system);
  journal.crash("process");

  clock.set(clock.now() + 60_000);
  const next = new World();
  const again = await open({ journal, clock, world: next });
  assert.equal(again.report.replayed, 5);
  assert.equal(again.report.downMs, 60_000);
  assert.deepEqual(next.log, ["hold rank/1/engine bus"]);
  await clock.pass(1000);
  assert.deepEqual(next.log, ["hold rank/1/engine bus", "pause 4.0"]);
  const report = await again.recovered;
  assert.deepEqual(report.owed, [
    { call: "4.0", instance: "rank/0/engine", effect: "pause", done: "repeated" },
  ]);
  next.answer("4.0", "rank/0/engine", { type: "paused" });
  await settle();
  assert.equal(again.system.instances.get("rank/0/engine")!.state.snapshot.value, "paused");

  const reader = new JournalReader(journal.segments());
  const prefix = replay(kernel(), reader, { at: 5, check: true });
  assert.equal(prefix.fold.digest(), before);
  assert.equal(prefix.difference, undefined);
  await again.close();
});

test("a restart with another configuration is refused, and says what differs", async () => {
  const journal = new MemoryStore();
  await (await open({ journal })).close();
  await assert.rejects(
    open({ journal, configuration: { engines: 3, extra: [1] } }),
    (error: ConfigurationChangedError) => {
      assert.equal(error.code, "configuration-changed");
      assert.deepEqual(error.differences, [
        { path: "engines", recorded: 2, given: 3 },
        { path: "extra", recorded: undefined, given: [1] },
      ]);
      return true;
    },
  );
  const host = await open({ journal });
  await host.close();
});

test("a journal that cannot be written stops the host: nothing durable leaves, commands are told", async () => {
  const world = new World();
  const journal = new MemoryStore();
  let full = false;
  const host = await open({
    world,
    journal,
    fault: (name) => {
      if (full && name === "journal.sync.before") throw new JournalError("journal-store", "full");
    },
  });
  await host.submit("rank/0/engine", { type: "hello" });
  await host.submit("rank/0/engine", { type: "ready", blocks: 1 });
  full = true;
  const failures: string[] = [];
  host.onFailure((f) => failures.push(f.code));
  await assert.rejects(
    host.submit("rank/0/engine", { type: "ping" }),
    (e: HostError) => e.code === "host-journal" && /full/.test(e.message),
  );
  assert.deepEqual(failures, ["host-journal"]);
  assert.ok(!world.log.some((line) => line.startsWith("pause")));
  await assert.rejects(host.submit("rank/0/engine", { type: "ping" }));
  await host.close();
  assert.equal(world.closed, true);
});

test("an effect without a driver is refused at the start", async () => {
  await assert.rejects(
    Host.open({ kernel: kernel(), journal: new MemoryStore(), drivers: [], configuration: {} }),
    (e: HostError) => e.code === "host-no-driver" && /init, pause, announce/.test(e.message),
  );
});
