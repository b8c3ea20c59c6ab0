/** After a restart peers are listened to until each of them has answered, and no longer than the grace. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Host } from "../../src/host/mod.ts";
import { MemoryStore } from "../../src/journal/mod.ts";
import type { Typed } from "../../src/kernel/mod.ts";
import { clusterKernel, everybodyAdopted } from "../../src/machines/mod.ts";
import { StatusFold } from "../../src/view/mod.ts";
import { ManualClock, settle } from "../host/world.ts";
import { ClusterWorld } from "./cluster-world.ts";
import { STORY } from "./play.ts";

class Lives {
  readonly world: ClusterWorld = new ClusterWorld();
  readonly journal: MemoryStore = new MemoryStore();
  readonly clock: ManualClock = new ManualClock();
  fold: StatusFold = new StatusFold();

  open(): Promise<Host<Typed, Typed>> {
    this.fold = new StatusFold();
    return Host.open<Typed, Typed>({
      kernel: clusterKernel() as never,
      journal: this.journal,
      drivers: [this.world.driver()],
      configuration: STORY,
      clock: this.clock,
      views: { status: this.fold },
      graceMs: 60_000,
      settled: everybodyAdopted(),
    });
  }

  get states(): string[] {
    return this.fold.status().ranks.map((r) => r.state);
  }

  /** Lets the world go on until it waits for time, or `until` holds. */
  async goOn(until: () => boolean = () => false): Promise<void> {
    do await settle(); while (!until() && this.world.turn());
  }
}

test("the grace ends with the answer of the last engine, not a moment of it later", async () => {
  const lives = new Lives();
  await lives.open();
  await lives.goOn();
  assert.equal(lives.fold.brief().serves, true);
  lives.journal.crash("process");

  const host = await lives.open();
  const began = lives.clock.now();
  let over = false;
  host.recovered.then(() => over = true);
  assert.deepEqual(lives.states, ["adopting", "adopting", "adopting"]);
  assert.equal(lives.fold.brief().serves, false);
  await lives.goOn(() => lives.states.filter((s) => s === "ready").length === 2);
  assert.deepEqual([lives.states, over], [["ready", "ready", "adopting"], false]);
  await lives.goOn();
  assert.deepEqual([lives.states, over], [["ready", "ready", "ready"], true]);
  assert.equal(lives.clock.now(), began);
  await host.close();
});

test("a rank that has not formed up yet is listened to for the whole grace: its READY may lie in a socket", async () => {
  const lives = new Lives();
  const loading = () => lives.world.state.children.some((c) => c.engine === "loading");
  await lives.open();
  await lives.goOn(loading);
  lives.journal.crash("process");

  const host = await lives.open();
  let over = false;
  host.recovered.then(() => over = true);
  await settle();
  await lives.clock.pass(59_999);
  assert.equal(over, false);
  await lives.clock.pass(1);
  assert.equal(over, true);
  await host.close();
});
