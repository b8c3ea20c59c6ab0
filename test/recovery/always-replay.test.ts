/**
 * The same story twice: once as usual, once with the system folded anew from the journal's text after every input. All end-to-end tests, and
 * whatever else runs a host with real drivers, are run like this too by `npm run test:crash`, with MUSTER_ALWAYS_REPLAY=1.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "xstate";
import { Host, type HostError } from "../../src/host/mod.ts";
import { JournalReader, MemoryStore } from "../../src/journal/mod.ts";
import { type Chart, Kernel, start } from "../../src/kernel/mod.ts";
import { ManualClock } from "../host/world.ts";
import { ClusterWorld } from "./cluster-world.ts";
import { play } from "./play.ts";

async function told(alwaysReplay: boolean) {
  const journal = new MemoryStore();
  const ending = await play({
    world: new ClusterWorld(),
    journal,
    clock: new ManualClock(),
    fault: () => {},
    alwaysReplay,
  });
  const records = [...new JournalReader(journal.segments()).records()];
  return { ending, records: records.map(({ record }) => record) };
}

test("the story of two engines is the same, record for record and digest for digest", async (t) => {
  const [usual, replayed] = [await told(false), await told(true)];
  assert.deepEqual(replayed.ending, usual.ending);
  assert.deepEqual(replayed.records, usual.records);
  t.diagnostic(`${usual.records.length} inputs, ${usual.records.length} rebuilds`);
});

test("a machine that keeps something beside its state is found out", async () => {
  let secret = 0;
  const forgetful: Chart<{ n: number }, { type: "go" }> = setup({
    types: {} as { context: { n: number }; events: { type: "go" } },
    // A step may ask twice; the fold that follows it asks for the third time.
    guards: { often: () => ++secret > 2 },
  }).createMachine({
    id: "forgetful",
    context: { n: 0 },
    initial: "a",
    states: { a: { on: { go: { guard: "often", target: "b" } } }, b: {} },
  });
  const host = await Host.open({
    kernel: new Kernel(
      {
        charts: { forgetful: { machine: forgetful, interned: false } },
        effects: {},
        boot: () => [start("x", "forgetful")],
      },
    ),
    journal: new MemoryStore(),
    drivers: [],
    configuration: {},
    clock: new ManualClock(),
    alwaysReplay: true,
  });
  await assert.rejects(
    host.submit("x", { type: "go" }),
    (e: HostError) => e.code === "host-step" && /replayed after input 2/.test(e.message),
  );
  await host.close();
});
