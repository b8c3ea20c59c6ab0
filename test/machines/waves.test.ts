import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Kernel,
  type KernelEvent,
  start,
  type StepResult,
  SYSTEM,
  type System,
} from "../../src/kernel/mod.ts";
import { waves, type WavesContext, type WavesInput } from "../../src/machines/mod.ts";
import { wavesEffects } from "../../src/machines/effects/waves.ts";

const kernel = new Kernel({
  charts: { waves: { machine: waves } },
  effects: wavesEffects,
  boot: (c) => [start("waves", "waves", (c as unknown as { input: never }).input)],
});

class Waves {
  system: System = kernel.empty;
  last: StepResult | undefined;
  constructor(input: Partial<WavesInput> = {}, subscribe = true) {
    const full: WavesInput = {
      sockets: { frontPublish: "f", backPublish: "b", backOutput: "o" },
      engines: 2,
      coordinates: true,
      rule: "evidence",
      remindMs: 5000,
      ...input,
    };
    this.#say(SYSTEM, { type: "configured", input: full });
    this.say({ type: "bound", socket: "coordinator", endpoints: { backPublish: "tcp://b:1" } });
    if (subscribe) { for (let i = 0; i < full.engines; i++) this.say({ type: "subscribed" }); }
  }
  /** What the event made it send. */
  say(event: KernelEvent): unknown[] {
    return this.#say("waves", event);
  }
  #say(to: string, event: KernelEvent): unknown[] {
    const at = this.system.at + 1;
    this.last = kernel.step(this.system, { seq: this.system.seq + 1, at, to, event });
    this.system = this.last.system;
    return this.last.effects.flatMap((e) => e.kind === "message" ? [e.effect] : []);
  }
  get state(): [unknown, number] {
    const { snapshot } = this.system.instances.get("waves")!.state;
    return [snapshot.value, (snapshot.context as WavesContext).wave];
  }
}

const PAUSED = { serving: { paused: "resting" } };
const CALLED = { serving: { paused: "called" } };
const RUNNING = { serving: "running" };
const READY = { type: "waves.ready" };
const starts = (wave: number, exclude: number | null) => ({ type: "waves.start", wave, exclude });
const publishes = (wave: number, running: boolean) => ({ type: "waves.publish", wave, running });

test("READY goes out when as many have subscribed as there are engines, and again for every late one", () => {
  const w = new Waves({}, false);
  assert.deepEqual(w.say({ type: "subscribed" }), []);
  assert.deepEqual(w.say({ type: "subscribed" }), [READY]);
  assert.deepEqual(w.say({ type: "subscribed" }), [READY]);
  assert.deepEqual(w.say({ type: "unsubscribed" }), []);
});

test("a wake-up before the last subscription is kept, and excludes nobody when there were two", () => {
  const one = new Waves({}, false);
  one.say({ type: "wake", exclude: 1, wave: 0 });
  one.say({ type: "subscribed" });
  assert.deepEqual(one.say({ type: "subscribed" }), [READY, starts(0, 1)]);
  const two = new Waves({}, false);
  two.say({ type: "wake", exclude: 1, wave: 0 });
  two.say({ type: "wake", exclude: 0, wave: 0 });
  two.say({ type: "subscribed" });
  assert.deepEqual(two.say({ type: "subscribed" }), [READY, starts(0, null)]);
});

test("by evidence a wake-up is passed on and moves nothing; what an engine says does", () => {
  const w = new Waves();
  assert.deepEqual(w.say({ type: "wake", exclude: 1, wave: 0 }), [starts(0, 1)]);
  assert.deepEqual(w.state, [CALLED, 0]);
  assert.deepEqual(w.say({ type: "startWave", wave: 0, engine: 0 }), [
    starts(0, null),
    publishes(0, true),
  ]);
  assert.deepEqual(w.state, [RUNNING, 0]);
});

test("optimistically the wake-up itself moves the state", () => {
  const w = new Waves({ rule: "optimistic" });
  assert.deepEqual(w.say({ type: "wake", exclude: 1, wave: 0 }), [
    starts(0, 1),
    publishes(0, true),
  ]);
  assert.deepEqual(w.state, [RUNNING, 0]);
});

test("a wake-up with an older wave starts the current one and excludes nobody; while running it is ignored", () => {
  const w = new Waves();
  w.say({ type: "waveComplete", wave: 4, engine: 0 });
  assert.deepEqual(w.say({ type: "wake", exclude: 1, wave: 3 }), [starts(5, null)]);
  w.say({ type: "startWave", wave: 5, engine: 0 });
  assert.deepEqual(w.say({ type: "wake", exclude: 1, wave: 5 }), []);
});

test("a completed wave moves on to the next one; an older one is stale", () => {
  const w = new Waves();
  w.say({ type: "startWave", wave: 0, engine: 1 });
  assert.deepEqual(w.say({ type: "waveComplete", wave: 0, engine: 0 }), [publishes(1, false)]);
  assert.deepEqual(w.state, [PAUSED, 1]);
  assert.deepEqual(w.say({ type: "waveComplete", wave: 0, engine: 0 }), []);
  assert.deepEqual(w.state, [PAUSED, 1]);
});

test("start_wave: a newer one is adopted, the same one only at rest, an older one never", () => {
  const w = new Waves();
  w.say({ type: "startWave", wave: 2, engine: 1 });
  assert.deepEqual(w.state, [RUNNING, 2]);
  assert.deepEqual(w.say({ type: "startWave", wave: 2, engine: 0 }), []);
  assert.deepEqual(w.say({ type: "startWave", wave: 1, engine: 0 }), []);
  assert.deepEqual(w.say({ type: "startWave", wave: 3, engine: 0 }), [
    starts(3, null),
    publishes(3, true),
  ]);
});

test("a wave that no engine can have reached is not adopted: it would make every later one stale", () => {
  const w = new Waves();
  w.say({ type: "startWave", wave: 7, engine: 0 });
  for (const wave of [7 + 1025, 2 ** 53, -1, 1.5]) {
    assert.deepEqual(w.say({ type: "startWave", wave, engine: 1 }), [], String(wave));
    assert.deepEqual(w.say({ type: "waveComplete", wave, engine: 1 }), [], String(wave));
  }
  assert.deepEqual(w.state, [RUNNING, 7]);
});

test("a coordinator that has heard nothing yet adopts any wave: its engines may have run for long", () => {
  const w = new Waves();
  w.say({ type: "startWave", wave: 123_456, engine: 0 });
  assert.deepEqual(w.state, [RUNNING, 123_456]);
});

test("for dense models wake-ups and waves are ignored, and nothing is unexpected", () => {
  const w = new Waves({ coordinates: false });
  for (
    const event of [
      { type: "wake", exclude: 0, wave: 0 },
      { type: "startWave", wave: 0, engine: 0 },
      { type: "waveComplete", wave: 0, engine: 0 },
    ]
  ) {
    assert.deepEqual(w.say(event), []);
    assert.deepEqual(w.last?.notes, []);
  }
});

test("another size changes the rows, also with wave logic off, and a repeat changes nothing", () => {
  const w = new Waves({ coordinates: false });
  w.say({ type: "scaled", size: 4 });
  const held = w.last!.effects.find((e) => e.kind === "hold");
  assert.equal(held?.kind === "hold" && (held.resource as { rows?: number }).rows, 4);
  w.say({ type: "scaled", size: 4 });
  assert.deepEqual(w.last?.effects, []);
});

test("an engine that subscribes while a wave runs is told to join it", () => {
  const w = new Waves();
  w.say({ type: "startWave", wave: 0, engine: 1 });
  assert.deepEqual(w.say({ type: "subscribed" }), [READY, starts(0, null)]);
});

test("a new front-end, and everybody after a restart, hears where we are", () => {
  const w = new Waves();
  w.say({ type: "waveComplete", wave: 2, engine: 0 });
  assert.deepEqual(w.say({ type: "frontSubscribed" }), [publishes(3, false)]);
  assert.deepEqual(w.say({ type: "resumed" }), [publishes(3, false)]);
});

test("a wake-up that no engine confirms is repeated once, for everybody", () => {
  const w = new Waves();
  w.say({ type: "wake", exclude: 1, wave: 0 });
  const [timer] = w.system.instances.get("waves")!.timers;
  assert.deepEqual(
    w.say({ type: "timer.fired", timer: timer!.timer, generation: timer!.generation }),
    [starts(0, null)],
  );
  assert.deepEqual(w.state, [PAUSED, 0]);
  assert.deepEqual(w.system.instances.get("waves")!.timers, []);
});

test("a wave that runs is called out again every five seconds, to wake whoever discarded it", () => {
  const w = new Waves();
  w.say({ type: "startWave", wave: 3, engine: 1 });
  const remind = () => {
    const [timer] = w.system.instances.get("waves")!.timers;
    assert.equal(timer?.delayMs, 5000);
    return w.say({ type: "timer.fired", timer: timer!.timer, generation: timer!.generation });
  };
  assert.deepEqual(remind(), [starts(3, null)]);
  assert.deepEqual(remind(), [starts(3, null)]);
  w.say({ type: "waveComplete", wave: 3, engine: 0 });
  assert.deepEqual(w.system.instances.get("waves")!.timers, []);
});
