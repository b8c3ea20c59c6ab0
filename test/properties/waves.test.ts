/**
 * The wave machine among simulated engines and front-ends, under random interleavings, delays, losses at reconnect, pauses and
 * restarts of the coordinator. Channels are first in, first out for each pair, as ZeroMQ's are.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import fc from "fast-check";
import { play as follow, schedules, type ScheduleStep, twice } from "../../src/checker/mod.ts";
import {
  Kernel,
  type KernelEvent,
  start,
  stateDigest,
  SYSTEM,
  type System,
} from "../../src/kernel/mod.ts";
import { waves, type WavesContext } from "../../src/machines/mod.ts";
import { wavesEffects } from "../../src/machines/effects/waves.ts";
import {
  restingEngine,
  stepWaves,
  type WavesEngine,
  type WavesEngineInput,
} from "../../src/peers/engine-waves.ts";
import {
  finished,
  type FrontEnd,
  frontEnd,
  heard,
  pick,
  send,
  wakeAgain,
} from "../../src/peers/front-end.ts";

const RUNS = Number(process.env["RUNS"] ?? 1500);

interface Shape {
  readonly engines: number;
  readonly fronts: number;
  readonly rule: "evidence" | "optimistic";
  readonly saysWhenItRuns: boolean;
  readonly pauses: boolean;
  readonly losses: boolean;
}

const kernel = new Kernel({
  charts: { waves: { machine: waves } },
  effects: wavesEffects,
  boot: (c) => [start("waves", "waves", (c as unknown as { input: never }).input)],
});

class World {
  readonly shape: Shape;
  system: System = kernel.empty;
  engines: WavesEngine[];
  fronts: FrontEnd[];
  /** `from>to`: messages on their way. */
  channels = new Map<string, unknown[]>();
  agreement = new Map<number, { wave: number; round: number; busy: boolean }>();
  requests = 0;
  /** Which front-end and engine a request is with. */
  open = new Map<string, { front: number; engine: number }>();
  lastPublished = 0;
  paused = false;
  trace: string[] = [];

  constructor(shape: Shape) {
    this.shape = shape;
    this.engines = Array.from({ length: shape.engines }, (_, r) => restingEngine(r));
    this.fronts = Array.from({ length: shape.fronts }, () => frontEnd(shape.engines, shape.fronts));
    const { engines, rule } = shape;
    const sockets = { frontPublish: "f", backPublish: "b", backOutput: "o" };
    const input = { sockets, engines, coordinates: true, rule, remindMs: 5000 };
    this.coordinator({ type: "configured", input }, SYSTEM);
    this.coordinator({ type: "bound", socket: "coordinator", endpoints: {} });
    for (let r = 0; r < engines; r++) this.coordinator({ type: "subscribed" });
  }

  get context(): WavesContext {
    return this.system.instances.get("waves")!.state.snapshot.context as WavesContext;
  }

  coordinator(event: KernelEvent, to = "waves"): void {
    const before = to === SYSTEM ? -1 : this.context.wave;
    const input = { seq: this.system.seq + 1, at: this.system.seq, to, event };
    const step = kernel.step(this.system, input);
    this.system = step.system;
    const { wave } = this.context;
    assert.ok(wave >= before, `the wave went back from ${before} to ${wave}`);
    if (event.type === "waveComplete" && (event["wave"] as number) >= before) {
      assert.equal(wave, (event["wave"] as number) + 1);
    }
    for (const e of step.effects) {
      if (e.kind !== "message") continue;
      const { effect } = e;
      if (effect.type === "waves.start") {
        const { wave: started } = effect as unknown as { wave: number };
        assert.ok(started >= this.lastPublished, `START of ${started} after ${this.lastPublished}`);
        this.engines.forEach((_, r) => this.put(`c>e${r}`, effect));
      } else if (effect.type === "waves.publish") {
        this.lastPublished = (effect as unknown as { wave: number }).wave;
        this.fronts.forEach((_, f) => this.put(`c>f${f}`, effect));
      }
    }
  }

  put(channel: string, message: unknown): void {
    const queue = this.channels.get(channel);
    if (queue === undefined) this.channels.set(channel, [message]);
    else queue.push(message);
  }

  engine(rank: number, input: WavesEngineInput): void {
    const { saysWhenItRuns } = this.shape;
    const [next, outputs] = stepWaves(this.engines[rank]!, input, { saysWhenItRuns });
    this.engines[rank] = next;
    assert.ok(!(next.paused && next.running), `engine ${rank} runs although it is paused`);
    for (const output of outputs) {
      if (output.type === "agree") this.agreement.set(rank, output);
      else this.put(`e${rank}>c`, { ...output, engine: rank });
    }
  }

  /** Everything that can happen now. */
  enabled(): [string, () => void][] {
    const list: [string, () => void][] = [];
    for (const [channel, queue] of this.channels) {
      if (queue.length > 0) list.push([`deliver ${channel}`, () => this.deliver(channel)]);
    }
    this.engines.forEach((engine, rank) => {
      if (engine.running && !engine.agreeing) {
        list.push([`step ${rank}`, () => this.engine(rank, { type: "stepped" })]);
      }
      // A request is worked on by all engines together: its experts are spread over them.
      const [request] = engine.requests;
      if (request !== undefined && this.engines.every((e) => e.running && e.wave === engine.wave)) {
        list.push([`finish ${request}`, () => this.finish(request)]);
      }
    });
    if (this.agrees()) list.push(["agree", () => this.agree()]);
    return list;
  }

  deliver(channel: string): void {
    const message = this.channels.get(channel)!.shift() as KernelEvent;
    const [, to] = channel.split(">") as [string, string];
    const index = Number(to.slice(1));
    if (to === "c") this.coordinator(message);
    else if (to.startsWith("e")) {
      if (message.type === "add") this.engine(index, message as never);
      else {
        const { wave, exclude } = message as unknown as { wave: number; exclude: number | null };
        this.engine(index, { type: "startWave", wave, exclude });
      }
    } else this.hear(index, message as never);
  }

  hear(f: number, publish: { wave: number; running: boolean }): void {
    this.fronts[f] = heard(this.fronts[f]!, { counts: null, ...publish });
    const wake = wakeAgain(this.fronts[f]!);
    if (wake !== null) {
      this.put(`f${f}>c`, { type: "wake", ...wake });
      this.fronts[f] = { ...this.fronts[f]!, running: true };
    }
  }

  request(f: number): void {
    const engine = pick(this.fronts[f]!);
    const sent = send(this.fronts[f]!, engine);
    const request = `q${this.requests++}`;
    this.fronts[f] = sent.front;
    this.open.set(request, { front: f, engine });
    if (sent.wake !== null) this.put(`f${f}>c`, { type: "wake", ...sent.wake });
    this.put(`f${f}>e${engine}`, { type: "add", request, wave: sent.wave });
  }

  finish(request: string): void {
    const { front, engine } = this.open.get(request)!;
    this.open.delete(request);
    this.engine(engine, { type: "finish", request });
    this.fronts[front] = finished(this.fronts[front]!, engine);
  }

  agrees(): boolean {
    const [first] = this.agreement.values();
    return this.agreement.size === this.engines.length && first !== undefined &&
      [...this.agreement.values()].every((a) => a.wave === first.wave && a.round === first.round);
  }

  agree(): void {
    const said = [...this.agreement.values()];
    this.agreement.clear();
    const busy = said.some((a) => a.busy);
    this.engines.forEach((_, r) => this.engine(r, { type: "agreed", round: said[0]!.round, busy }));
  }

  togglePause(): void {
    this.agreement.clear();
    if (this.paused) {
      const busy = this.engines.some((e) => e.requests.length > 0);
      this.engines.forEach((_, r) => this.engine(r, { type: "resumed", busy }));
    } else this.engines.forEach((_, r) => this.engine(r, { type: "paused", drop: false }));
    this.paused = !this.paused;
  }

  /** Every few seconds the wave is published also when nothing happens, and one that runs is called out again. */
  tick(): void {
    this.trace.push("five seconds pass");
    const [timer] = this.system.instances.get("waves")!.timers;
    if (timer !== undefined) {
      const { timer: name, generation } = timer;
      this.coordinator({ type: "timer.fired", timer: name, generation });
    }
    const { value } = this.system.instances.get("waves")!.state.snapshot;
    const running = (value as { serving?: string }).serving === "running";
    this.fronts.forEach((_, f) => this.put(`c>f${f}`, { wave: this.context.wave, running }));
  }

  /** A connection to the coordinator breaks: what was on it is lost, and the peer subscribes again. */
  reconnect(n: number): void {
    const peer = n % (this.engines.length + this.fronts.length);
    if (peer < this.engines.length) {
      this.channels.set(`c>e${peer}`, []);
      this.coordinator({ type: "subscribed" });
    } else {
      const f = peer - this.engines.length;
      this.channels.set(`c>f${f}`, []);
      this.channels.set(`f${f}>c`, []);
      this.coordinator({ type: "frontSubscribed" });
    }
  }

  /** The coordinator crashes and comes back with its journal; subscriptions come again. */
  restart(): void {
    for (const channel of this.channels.keys()) {
      if (channel.startsWith("c>") || channel.endsWith(">c") && channel.startsWith("f")) {
        this.channels.set(channel, []);
      }
    }
    this.system = kernel.load(JSON.parse(JSON.stringify(kernel.save(this.system))));
    this.coordinator({ type: "resumed" }, SYSTEM);
    this.engines.forEach(() => this.coordinator({ type: "subscribed" }));
    this.fronts.forEach(() => this.coordinator({ type: "frontSubscribed" }));
  }
}

/** What comes from outside: a request, and what may go wrong. */
type Fault =
  | { readonly do: "request" | "reconnect"; readonly which: number }
  | { readonly do: "pause" | "restart" };

/** Requests are as likely as all else that comes from outside. */
const faults: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ do: fc.constant("request" as const), which: fc.nat(1) }),
  fc.oneof(
    fc.record({ do: fc.constant("reconnect" as const), which: fc.nat(6) }),
    fc.record({ do: fc.constantFrom("pause" as const, "restart" as const) }),
  ),
);

/** Lets a world follow a schedule, twice. */
const play = (shape: Shape, schedule: readonly ScheduleStep<Fault>[]): World =>
  twice(
    "waves",
    () => {
      const world = new World(shape);
      follow(schedule, {
        possible: () => world.enabled().length,
        happen: (nth) => {
          const [name, act] = world.enabled()[nth]!;
          world.trace.push(name);
          act();
        },
        fails: (fault) => {
          if (fault.do === "request") {
            world.trace.push(`request ${fault.which % shape.fronts}`);
            world.request(fault.which % shape.fronts);
          } else if (fault.do === "pause" && shape.pauses) {
            world.trace.push(world.paused ? "resume" : "pause");
            world.togglePause();
          } else if (fault.do === "reconnect" && shape.losses) {
            world.trace.push(`reconnect ${fault.which}`);
            world.reconnect(fault.which);
          } else if (fault.do === "restart" && shape.losses) {
            world.trace.push("restart");
            world.restart();
          }
        },
      });
      return world;
    },
    ({ trace, system, engines, fronts }) =>
      [...trace, stateDigest(system), JSON.stringify([engines, fronts])].join("\n"),
  );

/** A fair rest: everything that can happen does, the coordinator publishes now and then, until nothing more can. */
function rest(world: World): void {
  if (world.paused) world.togglePause();
  let published = 0;
  for (let n = 0; n < 5000; n++) {
    const list = world.enabled();
    if (list.length === 0) {
      if (published++ === 3) return;
      world.tick();
      continue;
    }
    const [name, act] = list[n % list.length]!;
    world.trace.push(name);
    act();
  }
  assert.fail(`no rest:\n${world.trace.slice(-40).join("\n")}`);
}

const schedule = schedules({ steps: 60, oneFaultIn: 3, faults });

const shapes: [string, Omit<Shape, "engines" | "fronts">][] = [
  ["newest engines by evidence, with pauses, losses and restarts", {
    rule: "evidence",
    saysWhenItRuns: true,
    pauses: true,
    losses: true,
  }],
  ["older engines by evidence, with pauses and losses", {
    rule: "evidence",
    saysWhenItRuns: false,
    pauses: true,
    losses: true,
  }],
  ["older engines optimistically, with pauses and losses", {
    rule: "optimistic",
    saysWhenItRuns: false,
    pauses: true,
    losses: true,
  }],
];

for (const [name, shape] of shapes) {
  test(`${name}: waves never go back, whoever holds a request is served, and all come to rest`, () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 4 }), fc.integer({ min: 1, max: 2 }), schedule, (
        engines,
        fronts,
        schedule,
      ) => {
        const world = play({ ...shape, engines, fronts }, schedule);
        rest(world);
        const told = () => `\n${world.trace.join("\n")}`;
        assert.equal(
          world.open.size,
          0,
          `requests are not served: ${[...world.open.keys()]}${told()}`,
        );
        for (const engine of world.engines) {
          assert.equal(engine.running, false, `engine ${engine.rank} still runs${told()}`);
        }
        const { wave } = world.context;
        assert.ok(
          world.engines.every((e) => e.wave <= wave),
          `an engine is ahead of ${wave}${told()}`,
        );
      }),
      { numRuns: RUNS, seed: 20, includeErrorInReport: true },
    );
  });
}

test("a wake-up that paused engines discard is called out again: nobody waits for ever (the original does)", () => {
  const world = new World({
    engines: 2,
    fronts: 1,
    rule: "optimistic",
    saysWhenItRuns: false,
    pauses: true,
    losses: false,
  });
  world.togglePause();
  world.request(0);
  for (const channel of ["f0>c", "c>e0", "c>e1", "c>f0"]) world.deliver(channel);
  world.togglePause();
  world.deliver("f0>e0");
  assert.deepEqual(world.engines.map((e) => e.running), [true, false]);
  assert.deepEqual(world.enabled().map(([name]) => name), ["step 0"], "e1 is woken by nobody");
  world.tick();
  rest(world);
  assert.equal(world.open.size, 0);
});

test("an engine that joins at wave 0 is served although the others are waves ahead", () => {
  for (const stamp of [0, 3, 5]) {
    const world = new World({
      engines: 3,
      fronts: 1,
      rule: "evidence",
      saysWhenItRuns: true,
      pauses: false,
      losses: false,
    });
    world.coordinator({ type: "waveComplete", wave: 4, engine: 0 });
    world.channels.clear();
    world.engines = [restingEngine(0, 5), restingEngine(1, 5), restingEngine(2, 0)];
    // Its front-end has not heard of the waves since.
    world.fronts = [{ ...frontEnd(3), wave: stamp, next: 2 }];
    world.request(0);
    rest(world);
    assert.equal(world.open.size, 0, `stamped with wave ${stamp}\n${world.trace.join("\n")}`);
    assert.ok(world.engines.every((e) => !e.running && e.wave === world.context.wave));
  }
});
