/** Runs our machines without a world: a start-up of some ranks, fed event by event. */
import { clusterKernel, DEFAULT_LIMITS, type RunConfiguration } from "../../src/machines/mod.ts";
import type { KernelEvent, StepResult, System } from "../../src/kernel/mod.ts";
import { SYSTEM } from "../../src/kernel/mod.ts";
import type { StartupContext } from "../../src/machines/mod.ts";

export type Overrides = Partial<Omit<RunConfiguration, "type">>;

export const configuration = (overrides: Overrides = {}): RunConfiguration => ({
  type: "configured",
  size: 2,
  mode: "internal",
  ranks: [
    { rank: 0, local: true, headless: false },
    { rank: 1, local: true, headless: false },
  ],
  launches: [],
  sockets: {
    handshake: "tcp://127.0.0.1:0",
    clients: [{ input: "ipc:///run/in", output: "ipc:///run/out", ours: false }],
    coordinator: null,
  },
  parallelConfig: null,
  parallelConfigHash: null,
  comparesHashes: false,
  waves: "off",
  strict: "muster",
  onFailure: "stop",
  leaseMs: 0,
  limits: DEFAULT_LIMITS,
  ...overrides,
});

export const kernel: ReturnType<typeof clusterKernel> = clusterKernel({ verifyEvery: 1 });

/** A run in the making. Inputs are 100 ms apart. */
export class Run {
  system: System = kernel.empty;
  readonly steps: StepResult[] = [];

  constructor(overrides: Overrides = {}) {
    this.say(SYSTEM, configuration(overrides) as unknown as KernelEvent);
    this.say("startup", {
      type: "bound",
      socket: "handshake",
      endpoints: { bind: "tcp://127.0.0.1:29550" },
    });
  }

  say(to: string, event: KernelEvent): StepResult {
    const input = { seq: this.system.seq + 1, at: this.system.at + 100, to, event };
    const step = kernel.step(this.system, input);
    this.steps.push(step);
    this.system = step.system;
    return step;
  }

  hello(rank: number, local = true, headless = false): StepResult {
    return this.say(`rank/${rank}/engine`, { type: "hello", local, headless });
  }

  ready(
    rank: number,
    more: Partial<{
      local: boolean;
      headless: boolean;
      blocks: number | null;
      statsAddress: string | null;
      hash: string | null;
    }> = {},
  ): StepResult {
    return this.say(`rank/${rank}/engine`, {
      type: "ready",
      local: true,
      headless: false,
      blocks: 10,
      statsAddress: null,
      hash: null,
      ...more,
    });
  }

  /** Lets the timer of this name fire. */
  fire(id: string, name: string): StepResult {
    const timer = this.system.instances.get(id)!.timers.find((t) => t.timer.includes(name))!;
    return this.say(id, {
      type: "timer.fired",
      timer: timer.timer,
      generation: timer.generation,
    });
  }

  value(id: string): unknown {
    return this.system.instances.get(id)?.state.snapshot.value;
  }

  get startup(): StartupContext {
    return this.system.instances.get("startup")!.state.snapshot.context as StartupContext;
  }

  /** Effects of every step so far, as `from type`. */
  get asked(): string[] {
    return this.steps.flatMap((s) => s.effects).flatMap((e) =>
      e.kind === "message" || e.kind === "call" ? [`${e.from} ${e.effect.type}`] : []
    );
  }
}
