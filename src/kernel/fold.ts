/**
 * The step: deliver an input to its instance, then first in, first out what instances tell each other, until nobody has
 * anything left.
 *
 * A `Fold` applies one input after another to a private copy, which is what replay wants; `Kernel.step` makes one for a
 * single input. Both compute the same.
 */
import { callHash, heldHash, movedHash, stateHash, systemHash, timerHash } from "./digest.ts";
import { exclude, type Hash, hex, include } from "./hash.ts";
import type { InstancesEdit } from "./instances.ts";
import type { Local, LocalOutput, LocalState } from "./local.ts";
import type { Applied, System, SystemDefinition } from "./system.ts";
import {
  type EffectId,
  type Held,
  type Input,
  type Instance,
  type InstanceId,
  type KernelEvent,
  type Note,
  type OpenCall,
  type Output,
  type Stamped,
  STARTER,
  SYSTEM,
  type Timer,
  type Transition,
} from "./types.ts";

/** The kernel was asked for something that no run may contain: a programming error, not an input's fault. */
export class KernelError extends Error {
  readonly code: "unknown-chart" | "unknown-effect" | "livelock" | "sequence" | "boot";
  constructor(code: KernelError["code"], text: string) {
    super(text);
    this.name = "KernelError";
    this.code = code;
  }
}

interface Delivery {
  readonly to: InstanceId;
  readonly event: KernelEvent;
}

const NONE: readonly never[] = [];
const LIVELOCK = 10_000;

export class Fold {
  readonly #definition: SystemDefinition;
  readonly #locals: ReadonlyMap<string, Local>;
  readonly #instances: InstancesEdit;
  #generation: number;
  #seq: number;
  #at: number;
  /** Undefined where it is not kept: then it is computed when somebody asks. */
  #hash: Hash | undefined;
  /** Until the next input. */
  #system: System | undefined;

  #queue: Delivery[] = [];
  #effects: Stamped[] = [];
  #notes: Note[] = [];
  #transitions: Transition[] = [];

  /** @param hashed false: nobody compares states on the way, so their hash is not kept up to date step by step. */
  constructor(
    definition: SystemDefinition,
    locals: ReadonlyMap<string, Local>,
    system: System,
    hashed = true,
  ) {
    this.#definition = definition;
    this.#locals = locals;
    this.#instances = system.instances.edit();
    this.#generation = system.generation;
    this.#seq = system.seq;
    this.#at = system.at;
    this.#hash = hashed ? system.hash : undefined;
  }

  /** The system as it is now. */
  system(): System {
    return this.#system ??= {
      instances: this.#instances.freeze(),
      generation: this.#generation,
      seq: this.#seq,
      at: this.#at,
      hash: this.hash,
    };
  }

  get seq(): number {
    return this.#seq;
  }

  /** Hash of the state now. */
  get hash(): Hash {
    return this.#hash ?? systemHash(this.#instances);
  }

  /** 16 hex digits for the state now. */
  digest(): string {
    return hex(this.hash);
  }

  get(id: InstanceId): Instance | undefined {
    return this.#instances.get(id);
  }

  /**
   * Applies the next input.
   *
   * @param eventKey the event's JSON text, when it is at hand (saves writing it again).
   * @throws KernelError when the sequence has a gap, a chart or an effect is unknown, or instances talk for ever.
   */
  apply(input: Input, eventKey?: string): Applied {
    if (input.seq !== this.#seq + 1) {
      throw new KernelError("sequence", `input ${input.seq} follows input ${this.#seq}`);
    }
    this.#system = undefined;
    this.#seq = input.seq;
    this.#at = Math.max(this.#at, input.at);
    this.#effects = [];
    this.#notes = [];
    this.#transitions = [];
    if (input.to === SYSTEM) this.#take(input);
    else if (input.event.type === "timer.fired") this.#fire(input);
    else if (input.event["call"] !== undefined) this.#conclude(input);
    else this.#deliver(input.to, input.event, eventKey);
    this.#drain();
    return {
      input,
      effects: this.#effects,
      notes: this.#notes,
      transitions: this.#transitions,
    };
  }

  #drain(): void {
    const limit = LIVELOCK + 100 * this.#instances.count;
    for (let n = 0; n < this.#queue.length; n++) {
      if (n > limit) {
        const { to, event } = this.#queue[n]!;
        this.#queue = [];
        throw new KernelError(
          "livelock",
          `instances talk without end: after ${n} messages in one step ${to} is told ${event.type}`,
        );
      }
      const { to, event } = this.#queue[n]!;
      this.#deliver(to, event);
    }
    if (this.#queue.length > 0) this.#queue = [];
  }

  // ---- what an input can be ------------------------------------------------------------------------------------

  #take(input: Input): void {
    if (input.event.type === "configured") {
      if (this.#instances.count > 0) {
        throw new KernelError("boot", "a run is configured once, by its first input");
      }
      this.#absorb("", this.#definition.boot(input.event));
    } else if (input.event.type === "resumed") {
      this.#resume(Number(input.event["downMs"] ?? 0));
    } else {
      this.#note("unexpected", SYSTEM, input.event.type);
    }
  }

  #fire(input: Input): void {
    const instance = this.#instances.get(input.to);
    const name = String(input.event["timer"]);
    const timer = instance?.timers.find((t) => t.timer === name);
    if (
      instance === undefined || timer === undefined ||
      timer.generation !== input.event["generation"]
    ) {
      this.#note("stale-timer", input.to, name);
      return;
    }
    this.#forgetTimer(instance, timer);
    this.#deliver(input.to, { type: timer.timer });
  }

  #conclude(input: Input): void {
    const { call, ...event } = input.event;
    const instance = this.#instances.get(input.to);
    const open = instance?.calls.find((c) => c.id === call);
    if (instance === undefined || open === undefined) {
      this.#note("late-outcome", input.to, input.event.type, `call ${String(call)}`);
      return;
    }
    this.#replace({ ...instance, calls: instance.calls.filter((c) => c !== open) });
    this.#lose(callHash, instance.id, open);
    this.#deliver(input.to, event as KernelEvent);
  }

  /** Moves timers by their policy, and tells `resumed` to every instance whose chart knows it. */
  #resume(downMs: number): void {
    const told: InstanceId[] = [];
    for (const instance of [...this.#instances]) {
      for (const timer of instance.timers) {
        const dueAt = timer.restart === "remaining"
          ? timer.dueAt + downMs
          : timer.restart === "restart"
          ? this.#at + timer.delayMs
          : timer.dueAt;
        if (dueAt !== timer.dueAt) {
          this.#disarm(instance.id, timer.timer);
          this.#arm(instance.id, timer.timer, timer.delayMs, timer.restart, dueAt);
        }
      }
      if (this.#local(instance.chart).knows("resumed")) told.push(instance.id);
    }
    for (const id of told) this.#queue.push({ to: id, event: { type: "resumed" } });
  }

  // ---- instances -----------------------------------------------------------------------------------------------

  #deliver(to: InstanceId, event: KernelEvent, eventKey?: string): void {
    const instance = this.#instances.get(to);
    if (instance === undefined) {
      this.#note("nobody", to, event.type);
      return;
    }
    const step = this.#local(instance.chart).step(instance.state, event, eventKey);
    this.#transitions.push({
      instance: to,
      chart: instance.chart,
      event,
      before: instance.state,
      after: step.to,
      kind: step.kind,
    });
    if (step.kind === "taken") {
      this.#move(instance, step.to);
      this.#absorb(to, step.outputs);
      if (step.to.snapshot.status === "done") this.#finish(to);
    } else if (step.kind !== "ignored") {
      this.#note(step.kind, to, event.type, step.error);
    }
  }

  #start(starter: InstanceId, id: InstanceId, chart: string, input: Output): void {
    if (this.#instances.get(id) !== undefined) {
      this.#note("duplicate-start", id, chart);
      return;
    }
    const given = (input as Output & { kind: "start" }).input;
    const { to: state, outputs } = this.#local(chart).initial(given);
    this.#instances.set({
      id,
      chart,
      starter,
      state,
      timers: NONE,
      calls: NONE,
      held: NONE,
    });
    this.#gain(stateHash, id, state);
    this.#transitions.push({
      instance: id,
      chart,
      event: { type: "started", input: given },
      before: undefined,
      after: state,
      kind: "started",
    });
    this.#absorb(id, outputs);
    if (state.snapshot.status === "done") this.#finish(id);
  }

  /** A final state: the starter is told, and the instance is gone. */
  #finish(id: InstanceId): void {
    const instance = this.#instances.get(id);
    if (instance === undefined) return;
    this.#remove(instance);
    if (instance.starter === "") return;
    const event: Record<string, unknown> = { type: "ended", chart: instance.chart, from: id };
    const output = (instance.state.snapshot as { output?: unknown }).output;
    if (output !== undefined) event["output"] = output;
    this.#queue.push({ to: instance.starter, event: event as KernelEvent });
  }

  #stop(id: InstanceId): void {
    const instance = this.#instances.get(id);
    if (instance === undefined) return;
    this.#transitions.push({
      instance: id,
      chart: instance.chart,
      event: { type: "stopped" },
      before: instance.state,
      after: undefined,
      kind: "stopped",
    });
    this.#remove(instance);
  }

  #remove(instance: Instance): void {
    for (const timer of instance.timers) this.#disarm(instance.id, timer.timer);
    for (const held of instance.held) this.#release(instance.id, held.key);
    for (const call of instance.calls) this.#abandon(instance.id, call);
    const left = this.#instances.get(instance.id)!;
    this.#lose(stateHash, left.id, left.state);
    this.#instances.delete(instance.id);
  }

  #move(instance: Instance, to: LocalState): void {
    if (to === instance.state) return;
    if (this.#hash !== undefined) {
      this.#hash = movedHash(this.#hash, instance.id, instance.state, to);
    }
    this.#replace({ ...instance, state: to });
  }

  // ---- outputs -------------------------------------------------------------------------------------------------

  #absorb(self: InstanceId, outputs: readonly LocalOutput[]): void {
    for (const output of outputs) {
      switch (output.kind) {
        case "tell":
          this.#queue.push({
            to: this.#address(self, output.to),
            event: self === "" ? output.event : { ...output.event, from: self },
          });
          break;
        case "start":
          this.#start(self, this.#address(self, output.id), output.chart, output);
          break;
        case "stop":
          this.#stop(this.#address(self, output.id));
          break;
        case "effect":
          this.#effect(self, output);
          break;
        case "hold":
          this.#hold(self, output.key, output);
          break;
        case "release":
          this.#release(self, output.key);
          break;
        case "arm":
          this.#disarm(self, output.timer);
          this.#arm(
            self,
            output.timer,
            output.delayMs,
            output.restart,
            this.#at + output.delayMs,
          );
          break;
        case "disarm":
          this.#disarm(self, output.timer);
          break;
      }
    }
  }

  #address(self: InstanceId, to: string): InstanceId {
    if (to === STARTER) return this.#instances.get(self)?.starter ?? "";
    if (!to.startsWith("../")) return to;
    const folder = self.split("/").slice(0, -1);
    let rest = to.slice(3);
    while (rest.startsWith("../")) {
      folder.pop();
      rest = rest.slice(3);
    }
    return folder.length === 0 ? rest : `${folder.join("/")}/${rest}`;
  }

  #id(): EffectId {
    return `${this.#seq}.${this.#effects.length}`;
  }

  #effect(self: InstanceId, output: Output & { kind: "effect" }): void {
    const { effect } = output;
    const traits = this.#definition.effects[effect.type];
    if (traits === undefined) {
      throw new KernelError(
        "unknown-effect",
        `${self || "boot"} asks for the effect ${effect.type}, which is not in the effect table`,
      );
    }
    if (traits.kind === "message") {
      this.#effects.push({ id: this.#id(), from: self, kind: "message", effect });
      return;
    }
    const slot = output.slot ?? effect.type;
    const earlier = this.#instances.get(self)?.calls.find((c) => c.slot === slot);
    if (earlier !== undefined) this.#abandon(self, earlier);
    const call: OpenCall = { id: this.#id(), slot, effect };
    this.#effects.push({ id: call.id, from: self, kind: "call", effect, slot });
    const instance = this.#instances.get(self);
    if (instance === undefined) return;
    this.#gain(callHash, self, call);
    this.#replace({ ...instance, calls: [...instance.calls, call] });
  }

  #abandon(self: InstanceId, call: OpenCall): void {
    const instance = this.#instances.get(self)!;
    this.#effects.push({ id: this.#id(), from: self, kind: "abandon", call: call.id });
    this.#lose(callHash, self, call);
    this.#replace({ ...instance, calls: instance.calls.filter((c) => c !== call) });
  }

  #hold(self: InstanceId, key: string, output: Output & { kind: "hold" }): void {
    const instance = this.#instances.get(self);
    if (instance === undefined) return;
    const held: Held = { key, resource: output.resource };
    const earlier = instance.held.find((h) => h.key === key);
    if (earlier !== undefined) {
      if (JSON.stringify(earlier.resource) === JSON.stringify(held.resource)) return;
      this.#lose(heldHash, self, earlier);
    }
    this.#gain(heldHash, self, held);
    this.#replace({ ...instance, held: [...instance.held.filter((h) => h !== earlier), held] });
    this.#effects.push({
      id: this.#id(),
      from: self,
      kind: "hold",
      key,
      resource: output.resource,
    });
  }

  #release(self: InstanceId, key: string): void {
    const instance = this.#instances.get(self);
    const held = instance?.held.find((h) => h.key === key);
    if (instance === undefined || held === undefined) return;
    this.#lose(heldHash, self, held);
    this.#replace({ ...instance, held: instance.held.filter((h) => h !== held) });
    this.#effects.push({ id: this.#id(), from: self, kind: "release", key });
  }

  #arm(
    self: InstanceId,
    name: string,
    delayMs: number,
    restart: Timer["restart"],
    dueAt: number,
  ): void {
    const instance = this.#instances.get(self);
    if (instance === undefined) return;
    const timer: Timer = { timer: name, generation: ++this.#generation, dueAt, delayMs, restart };
    this.#gain(timerHash, self, timer);
    this.#replace({ ...instance, timers: [...instance.timers, timer] });
    this.#effects.push({
      id: this.#id(),
      from: self,
      kind: "arm",
      timer: name,
      generation: timer.generation,
      dueAt,
    });
  }

  #disarm(self: InstanceId, name: string): void {
    const instance = this.#instances.get(self);
    const timer = instance?.timers.find((t) => t.timer === name);
    if (instance === undefined || timer === undefined) return;
    this.#forgetTimer(instance, timer);
    this.#effects.push({
      id: this.#id(),
      from: self,
      kind: "disarm",
      timer: name,
      generation: timer.generation,
    });
  }

  #forgetTimer(instance: Instance, timer: Timer): void {
    this.#lose(timerHash, instance.id, timer);
    this.#replace({ ...instance, timers: instance.timers.filter((t) => t !== timer) });
  }

  /** A fact is new in the state's hash. */
  #gain<T>(hashOf: (id: InstanceId, fact: T) => Hash, id: InstanceId, fact: T): void {
    if (this.#hash !== undefined) this.#hash = include(this.#hash, hashOf(id, fact));
  }

  /** A fact is gone from it. */
  #lose<T>(hashOf: (id: InstanceId, fact: T) => Hash, id: InstanceId, fact: T): void {
    if (this.#hash !== undefined) this.#hash = exclude(this.#hash, hashOf(id, fact));
  }

  #replace(instance: Instance): void {
    this.#instances.set(instance);
  }

  #local(chart: string): Local {
    const local = this.#locals.get(chart);
    if (local === undefined) {
      throw new KernelError("unknown-chart", `there is no chart ${chart} in this system`);
    }
    return local;
  }

  #note(kind: Note["kind"], instance: InstanceId, what: string, text?: string): void {
    this.#notes.push(
      text === undefined ? { kind, instance, what } : { kind, instance, what, text },
    );
  }
}
