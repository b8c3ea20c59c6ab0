/** After a restart: resources, the grace, overdue timers, and then the calls that are owed, each by its rule. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Driver, Order } from "../../src/drivers/driver.ts";
import { discard, Host, type HostError, type HostOptions } from "../../src/host/mod.ts";
import { MemoryStore } from "../../src/journal/mod.ts";
import { Kernel, type Typed } from "../../src/kernel/mod.ts";
import { definition, type Effects } from "../kernel/fixture.ts";
import { ManualClock, settle, World } from "./world.ts";

/** The fixture's kernel, whose call `pause` is asked about or repeated. */
const kernel = (recovery: "ask" | "repeat") =>
  new Kernel<Effects>({
    ...definition,
    effects: { ...definition.effects, pause: { kind: "call", leaves: "durable", recovery } },
  });

/** The fixture's world, which can also be asked. */
class AskedWorld extends World {
  readonly asked: Order[] = [];
  override driver(): Driver<Effects, Typed> {
    return { ...super.driver(), ask: (order) => void this.asked.push(order) };
  }
}

const open = (options: Partial<HostOptions<Effects, Typed>> & { world: World }) =>
  Host.open<Effects, Typed>({
    kernel: kernel("ask"),
    journal: new MemoryStore(),
    drivers: [options.world.driver()],
    configuration: { engines: 2 },
    clock: new ManualClock(),
    ...options,
  });

/** A run that dies with one call open (4.0 of rank 0) and the hello deadline of rank 1 running. */
async function died(journal: MemoryStore, clock: ManualClock): Promise<void> {
  const host = await open({ journal, clock, world: new AskedWorld() });
  for (const event of [{ type: "hello" }, { type: "ready", blocks: 1 }, { type: "ping" }]) {
    await host.submit("rank/0/engine", event);
  }
  journal.crash("process");
}

test("a call whose rule is to ask is asked about, once, and its answer is its outcome", async () => {
  const [journal, clock, world] = [new MemoryStore(), new ManualClock(), new AskedWorld()];
  await died(journal, clock);
  const host = await open({ journal, clock, world });
  await clock.pass(999);
  assert.deepEqual(world.asked, [], "not within the grace");
  await clock.pass(1);
  assert.deepEqual(world.asked, [
    { id: "4.0", from: "rank/0/engine", kind: "call", effect: { type: "pause" } },
  ]);
  assert.deepEqual(world.log, [], "it was not performed again");
  world.answer("4.0", "rank/0/engine", { type: "paused" });
  await settle();
  assert.equal(host.system.instances.get("rank/0/engine")!.state.snapshot.value, "paused");
  assert.equal((await host.recovered).owed[0]!.done, "asked");
  await host.close();
});

test("an outcome that arrives within the grace concludes its call: nothing is owed any more", async () => {
  const [journal, clock, world] = [new MemoryStore(), new ManualClock(), new AskedWorld()];
  await died(journal, clock);
  const host = await open({ journal, clock, world });
  world.answer("4.0", "rank/0/engine", { type: "paused" });
  await clock.pass(1000);
  assert.deepEqual(world.asked, []);
  assert.equal((await host.recovered).owed[0]!.done, "concluded");
  await host.close();
});

test("what peers said meanwhile is heard before an overdue timer fires", async () => {
  const [journal, clock] = [new MemoryStore(), new ManualClock()];
  // This fixture's hello deadline is `remaining`: the time away does not count, so it is the grace that it runs out in.
  await died(journal, clock);
  const late = new AskedWorld();
  const host = await open({ journal, clock, world: late, graceMs: 5000 });
  await clock.pass(4000);
  assert.equal(host.system.instances.get("rank/1/engine")!.state.snapshot.value, "awaited");
  late.say("rank/1/engine", { type: "hello" });
  await clock.pass(1000);
  assert.equal(host.system.instances.get("rank/1/engine")!.state.snapshot.value, "connected");
  assert.equal((await host.recovered).overdue, 0);
  await host.close();

  const [silentJournal, silentClock] = [new MemoryStore(), new ManualClock()];
  await died(silentJournal, silentClock);
  const silent = await open({
    journal: silentJournal,
    clock: silentClock,
    world: new AskedWorld(),
    graceMs: 5000,
  });
  await silentClock.pass(5000);
  assert.equal(silent.system.instances.get("rank/1/engine")!.state.snapshot.value, "late");
  assert.equal((await silent.recovered).overdue, 1);
  await silent.close();
});

test("an overdue timer that ends an instance takes its owed call with it", async () => {
  const [journal, clock, world] = [new MemoryStore(), new ManualClock(), new AskedWorld()];
  await died(journal, clock);
  const host = await open({ journal, clock, world });
  world.say("rank/0/engine", { type: "exited", code: 1 });
  await clock.pass(1000);
  assert.deepEqual([world.asked, world.log], [[], ["abandon 4.0"]]);
  assert.equal((await host.recovered).owed[0]!.done, "concluded");
  await host.close();
});

test("the grace ends early when everybody has answered", async () => {
  const [journal, clock, world] = [new MemoryStore(), new ManualClock(), new AskedWorld()];
  await died(journal, clock);
  const host = await open({
    journal,
    clock,
    world,
    graceMs: 60_000,
    settled: (system) =>
      system.instances.get("rank/1/engine")?.state.snapshot.value === "connected",
  });
  assert.deepEqual(world.asked, []);
  world.say("rank/1/engine", { type: "hello" });
  await settle();
  assert.equal(world.asked.length, 1);
  await host.recovered;
  await host.close();
});

test("a driver that must be asked and cannot be is refused at the start; what is discarded need not", async () => {
  await assert.rejects(
    open({ world: new World() }),
    (e: HostError) =>
      e.code === "host-no-driver" && /became of a pause, and it has no ask\(\)/.test(e.message),
  );
  const host = await open({
    world: new World(),
    drivers: [discard(["init", "pause", "announce"], ["bus"])],
  });
  await host.close();
});

test("two drivers for one effect are refused at the start", async () => {
  await assert.rejects(
    open({ world: new World(), drivers: [discard(["init"]), discard(["init"])] }),
    /the effect init is claimed by the drivers discard and discard/,
  );
});
