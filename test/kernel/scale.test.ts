import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, type KernelEvent, Local, SYSTEM } from "../../src/kernel/mod.ts";
import { engine, kernel } from "./fixture.ts";

/** Forms up a system of so many engines, one immutable step after another. */
function formUp(engines: number): { state: unknown; calls: number } {
  const k = kernel();
  let system = EMPTY;
  const say = (to: string, event: KernelEvent) => {
    system = k.step(system, { seq: system.seq + 1, at: system.seq, to, event }).system;
  };
  say(SYSTEM, { type: "configured", engines });
  for (let r = 0; r < engines; r++) say(`rank/${r}/engine`, { type: "hello" });
  for (let r = 0; r < engines; r++) say(`rank/${r}/engine`, { type: "ready", blocks: 1 });
  return {
    state: system.instances.get("startup")?.state.snapshot.value,
    calls: k.locals.get("engine")!.calls,
  };
}

test("60,000 instances form up; XState itself is asked for an engine's step twice, not 120,000 times", () => {
  assert.deepEqual(formUp(60_000), { state: "formed", calls: 2 });
});

test("the memo is bounded: it starts afresh and goes on right", () => {
  const local = new Local(engine, { memoLimit: 10 });
  let state = local.initial({ helloMs: 1, readyMs: 1 }).to;
  state = local.step(state, { type: "hello" }).to;
  for (let blocks = 0; blocks < 1000; blocks++) {
    const ready = local.step(state, { type: "ready", blocks });
    assert.equal(ready.to.snapshot.value, "ready");
    assert.deepEqual(ready.outputs.find((o) => o.kind === "tell"), {
      kind: "tell",
      to: "startup",
      event: { type: "rankReady", blocks },
    });
  }
  assert.ok(local.states.length <= 10, `${local.states.length} states are kept`);
});

test("a guard that answers differently the second time is found", () => {
  const impure = new Local(
    engine.provide({ guards: { plausible: () => Math.random() > 0.5 } as never }),
    { verifyEvery: 1 },
  );
  const connected = impure.step(impure.initial({ helloMs: 1, readyMs: 1 }).to, { type: "hello" });
  assert.throws(() => {
    for (let i = 0; i < 100; i++) impure.step(connected.to, { type: "ready", blocks: 1 });
  }, { code: "impure-chart" });
});
