import assert from "node:assert/strict";
import { Kernel, type KernelEvent, type StepResult, type System } from "../../src/kernel/mod.ts";
import {
  type RayScalingContext,
  type RayScalingEffect,
  type RayScalingInput,
  rayScalingSystem,
} from "../../src/machines/mod.ts";
import { type NodeSnapshot, type Placement, planPlacement } from "../../src/planning/mod.ts";

export const GPU = (ip: string, free: number, total = 8): NodeSnapshot => ({
  id: `node-${ip}`,
  ip,
  available: { GPU: free },
  total: { GPU: total },
});

export function placed(size: number, localSize: number): Placement {
  const answer = planPlacement({
    nodes: [GPU("A", 8), GPU("B", 8)],
    deviceKey: "GPU",
    strategy: "fill",
    size,
    localSize,
    worldSize: 1,
    masterIp: "A",
  });
  assert.ok(answer.ok);
  return answer.plan;
}

type Asked = RayScalingEffect & { readonly slot?: string };

/** The machine and a world that says nothing by itself: a test says what comes of every effect. */
export class Run {
  readonly #kernel = new Kernel<RayScalingEffect>(rayScalingSystem, { verifyEvery: 1 });
  #system: System = this.#kernel.empty;
  #seq = 0;
  /** What was asked since it was last looked at. */
  asked: Asked[] = [];
  /** Open calls by slot, with their effect ids. */
  readonly #open = new Map<string, string>();
  readonly answers: string[] = [];
  /** Launches that were asked for, and those that were asked to end. */
  readonly started: Set<string> = new Set();
  readonly stopped: Set<string> = new Set();
  readonly notes: string[] = [];
  readonly held: Map<string, unknown> = new Map();
  timers: { timer: string; generation: number }[] = [];

  constructor(input: Partial<RayScalingInput> & { placement: Placement }) {
    this.#step("@system", {
      type: "configured",
      input: {
        flow: "two-phase",
        launches: input.placement.ranks.map((r) => `first-r${r.rank}`),
        maxSize: 16,
        masterIp: "A",
        experts: null,
        deadlineMs: 60_000,
        settleMs: 5_000,
        ...input,
      },
    });
  }

  get context(): RayScalingContext {
    return this.#snapshot().context as RayScalingContext;
  }
  get state(): string {
    return JSON.stringify(this.#snapshot().value);
  }
  #snapshot(): { value: unknown; context: unknown } {
    return this.#system.instances.get("ray-scaling")!.state.snapshot;
  }

  tell(event: KernelEvent): void {
    this.#step("ray-scaling", event);
  }

  /** Slots of calls without an outcome. */
  get open(): string[] {
    return [...this.#open.keys()];
  }

  /** The outcome of the open call in a slot. */
  outcome(slot: string, event: KernelEvent): void {
    const call = this.#open.get(slot);
    assert.ok(call, `no open call ${slot}: ${[...this.#open.keys()]}`);
    this.#open.delete(slot);
    this.tell({ ...event, call });
  }

  /** Good outcomes for everything that is open, round after round, until nothing new is asked. */
  settle(...except: string[]): void {
    for (;;) {
      const slot = this.open.find((s) => !except.some((x) => s.startsWith(x)));
      if (slot === undefined) return;
      this.good(slot);
    }
  }

  /** The bad outcome of an open call. */
  bad(slot: string): void {
    const effect = this.#effects.get(slot)!;
    const rank = (effect as { rank?: unknown }).rank;
    const text = "on demand";
    switch (effect.type) {
      case "ray.snapshot":
        return this.outcome(slot, { type: "snapshotFailed", text });
      case "store.serve":
        return this.outcome(slot, { type: "storeServeFailed", text });
      case "ray.start":
        return this.outcome(slot, {
          type: "rankLaunchFailed",
          rank: (rank as { rank: number }).rank,
          text,
        });
      case "rank.call":
        return this.outcome(slot, {
          type: "engineFailed",
          rank,
          method: effect.request.method,
          text,
        });
      default:
        return this.good(slot); // these do not fail
    }
  }

  /** The good outcome of an open call. */
  good(slot: string): void {
    const effect = this.#effects.get(slot)!;
    const rank = (effect as { rank?: unknown }).rank;
    switch (effect.type) {
      case "ray.snapshot":
        this.outcome(slot, { type: "snapshotTaken", nodes: this.free });
        break;
      case "scaling.draw":
        this.outcome(slot, { type: "drawn", epoch: "e1", masterPort: 7000, masterPorts: [7001] });
        break;
      case "store.serve":
        this.outcome(slot, { type: "storeServing", address: { host: "A", port: 7777 } });
        break;
      case "ray.start":
        this.outcome(slot, { type: "rankLaunched", rank: (rank as { rank: number }).rank });
        break;
      case "ray.stop":
        this.outcome(slot, { type: "rankStopped", rank });
        break;
      case "rank.call":
        this.outcome(slot, { type: "engineReplied", rank, method: effect.request.method });
        break;
    }
  }

  /** What is free when the machine asks. */
  free: NodeSnapshot[] = [GPU("A", 4), GPU("B", 8)];
  readonly #effects = new Map<string, RayScalingEffect>();

  /** What was asked since the last look: `type rank` or `type rank method`. */
  take(): string[] {
    return this.asked.splice(0).map((e) => {
      const rank = (e as { rank?: number | { rank: number } }).rank;
      const n = typeof rank === "object" ? rank.rank : rank;
      const method = e.type === "rank.call" ? ` ${e.request.method}` : "";
      return `${e.type}${n === undefined ? "" : ` ${n}`}${method}`;
    });
  }

  fire(name: string): void {
    const timer = this.timers.find((t) => t.timer.includes(name));
    assert.ok(timer, `no timer ${name}: ${this.timers.map((t) => t.timer)}`);
    this.tell({ type: "timer.fired", timer: timer.timer, generation: timer.generation });
  }

  #step(to: string, event: KernelEvent): void {
    const result: StepResult<RayScalingEffect> = this.#kernel.step(this.#system, {
      seq: ++this.#seq,
      at: this.#seq,
      to,
      event,
    });
    this.#system = result.system;
    for (const note of result.notes) this.notes.push(`${note.kind} ${note.what}`);
    for (const e of result.effects) {
      if (e.kind === "call") {
        this.asked.push(e.effect);
        if (e.effect.type === "ray.start") this.started.add(e.effect.launch);
        if (e.effect.type === "ray.stop") this.stopped.add(e.effect.launch);
        this.#open.set(e.slot, e.id);
        this.#effects.set(e.slot, e.effect);
      } else if (e.kind === "message" && e.effect.type === "operation.answer") {
        const { operation, outcome, text } = e.effect;
        this.answers.push(`${operation} ${outcome}${text === null ? "" : `: ${text}`}`);
      } else if (e.kind === "abandon") {
        for (const [slot, id] of this.#open) if (id === e.call) this.#open.delete(slot);
      } else if (e.kind === "hold") this.held.set(e.key, e.resource);
      else if (e.kind === "release") this.held.delete(e.key);
      else if (e.kind === "arm") this.timers.push(e);
      else if (e.kind === "disarm") {
        this.timers = this.timers.filter((t) => t.timer !== e.timer);
      }
    }
  }
}

export const places = (p: Placement): string =>
  p.ranks.map((r) => `${r.on[0]!.ip}${r.localRank}`).join(" ");
export const finished: KernelEvent = { type: "notified", rank: 0, kind: "RECONFIGURE_FINISHED" };
export const left = (rank: number): KernelEvent => ({
  type: "notified",
  rank,
  kind: "SHUTDOWN_COMPLETE",
});
