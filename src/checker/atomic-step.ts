/**
 * One atomic step: an event is given to an instance, what instances tell each other is delivered first in, first out, and then
 * the effects leave. The routing is the kernel's (`kernel/fold.ts`), on components instead of a system.
 */
import type { Behaviour, PlaceStep } from "./behaviour.ts";
import type { Composition } from "./composition.ts";
import {
  type HeldResource,
  type InstanceValue,
  type MessageColumn,
  type PendingCall,
} from "./components.ts";
import { type AnyEffect, type Happening, ModelError, type Operation } from "./model.ts";
import type { Cursor } from "./space.ts";
import {
  type Json,
  type KernelEvent,
  type LocalOutput,
  type Output,
  STARTER,
} from "../kernel/mod.ts";

/** Deliveries in one step after which instances are said to talk without end. */
const LIVELOCK = 10_000;

export class AtomicStep {
  readonly #space: Composition;
  readonly #cursor: Cursor;
  #queue: { to: string; event: KernelEvent }[] = [];
  /** Message effects in the order in which they were asked for. */
  readonly left: { from: string; effect: AnyEffect }[] = [];

  constructor(space: Composition, cursor: Cursor) {
    this.#space = space;
    this.#cursor = cursor;
  }

  /** Gives an event to an instance, and delivers everything that follows from it. Returns how the event was met. */
  input(to: string, event: KernelEvent): PlaceStep["kind"] | "nobody" {
    const how = this.#deliver(to, event);
    this.#drain();
    return how;
  }

  /** Starts what the boot of a node returns. */
  bootNode(node: string, outputs: readonly Output[]): void {
    for (const output of outputs) {
      if (output.kind === "start") {
        this.#start("", output.id, output.chart, output.input, node);
      } else if (output.kind === "tell") this.#queue.push({ to: output.to, event: output.event });
    }
    this.#drain();
  }

  /** Starts the model's own processes. */
  boot(ids: readonly string[]): void {
    for (const id of ids) {
      const process = this.#space.model.processes[id]!;
      this.#begin(id, "", this.#space.behaviourOf(id)!, process.input ?? null, "");
    }
    this.#drain();
  }

  /** Lets effects leave; `keep` has a bit for each (by default all leave). */
  settle(keep = -1): void {
    for (let i = 0; i < this.left.length; i++) {
      const { from, effect } = this.left[i]!;
      if (i < 31 && (keep >>> i & 1) === 0) continue;
      const rule = this.#space.model.effects![effect.type]!;
      this.#space.look(this.#cursor);
      this.operate(rule(effect, this.#space.world, from), from);
    }
  }

  /** Does what the world does. */
  operate(operations: readonly Operation[], from: string): void {
    const { components, model } = this.#space;
    for (const operation of operations) {
      switch (operation.do) {
        case "put":
          this.#cursor.set(
            components.value("store", operation.key),
            components.json.of(operation.value),
          );
          break;
        case "start":
          this.bootNode(operation.node, operation.outputs);
          break;
        case "input":
          this.input(operation.to, operation.event);
          break;
        case "crash":
          this.#space.faulty.kill(this.#cursor, operation.node);
          break;
        case "send": {
          const channel = model.channels?.[operation.channel];
          if (channel === undefined) {
            throw new ModelError(
              `model ${this.#space.name}: a message goes over the channel ${operation.channel}, which is not there`,
            );
          }
          const kind = typeof channel === "string" ? channel : channel.kind;
          const to = typeof operation.to === "string" ? [operation.to] : operation.to;
          for (const receivers of kind === "set" ? [to] : to.map((t) => [t])) {
            this.#send(operation.channel, kind, from, receivers, operation.event);
          }
        }
      }
    }
  }

  /** Uses up one of a budget; false when nothing is left. */
  spend(budget: string, of: number): boolean {
    const column = this.#space.components.count("budget", budget);
    const spent = this.#cursor.get(column);
    if (spent >= of) return false;
    this.#cursor.set(column, spent + 1);
    return true;
  }

  /** Takes the next message off its channel. */
  take(message: MessageColumn): void {
    const { json } = this.#space.components;
    const held = this.#cursor.get(message.column);
    if (message.kind === "set") return;
    if (message.kind === "bag") {
      this.#cursor.set(message.column, held - 1);
      return;
    }
    const rest = (json.get(held) as KernelEvent[]).slice(1);
    this.#cursor.set(message.column, rest.length === 0 ? 0 : json.of(rest));
  }

  disarm(id: string, timer: string): void {
    this.#change(id, (value) => ({ ...value, timers: value.timers.filter((t) => t !== timer) }));
  }

  conclude(id: string, slot: string): void {
    this.#change(id, (value) => ({ ...value, calls: value.calls.filter((c) => c.slot !== slot) }));
  }

  // ---- deliveries ----------------------------------------------------------------------------------------------

  #drain(): void {
    for (let n = 0; this.#queue.length > 0; n++) {
      const { to, event } = this.#queue.shift()!;
      if (n > LIVELOCK) {
        throw new ModelError(
          `model ${this.#space.name}: instances talk without end; ${to} is told ${event.type}`,
        );
      }
      this.#deliver(to, event);
    }
  }

  #deliver(to: string, event: KernelEvent): PlaceStep["kind"] | "nobody" {
    const column = this.#space.components.instance(to);
    const value = this.#read(column);
    if (value === undefined) return "nobody";
    const { to: place, outputs, kind } = value.behaviour.step(value.place, event);
    this.#space.happened(
      this.#cursor,
      { kind: "took", instance: to, event, how: kind },
      value.place,
    );
    if (kind !== "taken") return kind;
    this.#write(column, this.#armedBy({ ...value, place }, outputs));
    this.#absorb(to, outputs);
    if (place.view.done) this.#finish(to);
    return kind;
  }

  #finish(id: string): void {
    const column = this.#space.components.instance(id);
    const value = this.#read(column);
    if (value === undefined) return;
    if (value.starter === "") {
      // A root process stays to be looked at, without timers and calls.
      this.#write(column, { ...value, timers: [], calls: [], held: [] });
      return;
    }
    this.#write(column, undefined);
    const { output } = value.place.view;
    const event = { type: "ended", chart: value.chart, from: id };
    this.#queue.push({
      to: value.starter,
      event: output === undefined ? event : { ...event, output },
    });
  }

  #start(self: string, id: string, chart: string, input: Json, node: string): void {
    if (this.#read(this.#space.components.instance(id)) !== undefined) return; // as in the kernel: noted, not doubled
    const behaviour = this.#space.charts.get(chart);
    if (behaviour === undefined) {
      throw new ModelError(
        `model ${this.#space.name}: ${self} starts the chart ${chart}, which the model's charts do not name`,
      );
    }
    this.#space.settleIn(id, node);
    this.#begin(id, chart, behaviour, input, self);
  }

  #begin(id: string, chart: string, behaviour: Behaviour, input: Json, starter: string): void {
    const { to: place, outputs } = behaviour.initial(input);
    const value: InstanceValue = {
      chart,
      behaviour,
      place,
      timers: [],
      calls: [],
      held: [],
      starter,
    };
    this.#write(this.#space.components.instance(id), this.#armedBy(value, outputs));
    this.#absorb(id, outputs);
    if (place.view.done) this.#finish(id);
  }

  // ---- outputs -------------------------------------------------------------------------------------------------

  /** The instance with the timers that a step armed and disarmed, the calls that it opened and the resources that it holds. */
  #armedBy(value: InstanceValue, outputs: readonly LocalOutput[]): InstanceValue {
    let { timers, calls, held } = value;
    for (const output of outputs) {
      if (output.kind === "arm" && !timers.includes(output.timer)) {
        timers = [...timers, output.timer].sort();
      } else if (output.kind === "disarm") {
        timers = timers.filter((t) => t !== output.timer);
      } else if (output.kind === "effect" && this.#isCall(output.effect)) {
        const slot = output.slot ?? output.effect.type;
        const call: PendingCall = { slot, effect: output.effect, owed: false };
        calls = [...calls.filter((c) => c.slot !== slot), call];
      } else if (output.kind === "hold") {
        const { key } = output;
        const resource = output.resource as HeldResource["resource"];
        held = [...held.filter((h) => h.key !== key), { key, resource }].sort((a, b) =>
          a.key < b.key ? -1 : 1
        );
      } else if (output.kind === "release") {
        const { key } = output;
        held = held.filter((h) => h.key !== key);
        // An invoked actor whose state is left is stopped: nobody waits for it any more.
        if (key.startsWith("invoked ")) calls = calls.filter((c) => c.slot !== key);
      }
    }
    return timers === value.timers && calls === value.calls && held === value.held
      ? value
      : { ...value, timers, calls, held };
  }

  #isCall(effect: AnyEffect): boolean {
    const { model, name } = this.#space;
    if (model.calls !== undefined && effect.type in model.calls) return true;
    if (model.effects !== undefined && effect.type in model.effects) return false;
    throw new ModelError(
      `model ${name}: a chart asks for the effect ${effect.type}; say under effects or calls what comes of it`,
    );
  }

  #absorb(self: string, outputs: readonly LocalOutput[]): void {
    for (const output of outputs) {
      switch (output.kind) {
        case "tell":
          this.#queue.push({
            to: this.#address(self, output.to),
            event: { ...output.event, from: self },
          });
          break;
        case "start": {
          const node = this.#space.nodeOf(self);
          this.#start(self, this.#address(self, output.id), output.chart, output.input, node);
          break;
        }
        case "stop":
          this.#write(this.#space.components.instance(this.#address(self, output.id)), undefined);
          break;
        case "effect":
          this.#happened({ kind: "effect", instance: self, effect: output.effect });
          if (!this.#isCall(output.effect)) this.left.push({ from: self, effect: output.effect });
          break;
      }
    }
  }

  #address(self: string, to: string): string {
    if (to === STARTER) return this.#read(this.#space.components.instance(self))?.starter ?? "";
    if (!to.startsWith("../")) return to;
    const folder = self.split("/").slice(0, -1);
    let rest = to.slice(3);
    while (rest.startsWith("../")) {
      folder.pop();
      rest = rest.slice(3);
    }
    return folder.length === 0 ? rest : `${folder.join("/")}/${rest}`;
  }

  #send(
    channel: string,
    kind: MessageColumn["kind"],
    from: string,
    to: readonly string[],
    event: KernelEvent,
  ): void {
    const { components } = this.#space;
    const sender = this.#space.nodeOf(from);
    const message = components.message(channel, kind, sender, to, event);
    for (const receiver of to) {
      this.#happened({ kind: "sent", channel, to: receiver, event });
      this.#space.group(receiver);
    }
    const down = this.#space.faulty.isDown(this.#cursor, this.#space.nodeOf(to[0]!));
    if (kind === "fifo" && down && !this.#space.keeps(channel)) return;
    const held = this.#cursor.get(message.column);
    if (kind === "set") this.#cursor.set(message.column, 1);
    else if (kind === "bag") this.#cursor.set(message.column, held + 1);
    else {
      const queue = (components.json.get(held) as KernelEvent[] | undefined) ?? [];
      this.#cursor.set(message.column, components.json.of([...queue, event]));
    }
  }

  // ---- components ----------------------------------------------------------------------------------------------

  #read(column: number): InstanceValue | undefined {
    return this.#space.components.instanceOf(column, this.#cursor.get(column));
  }

  #write(column: number, value: InstanceValue | undefined): void {
    this.#cursor.set(column, this.#space.components.number(column, value));
  }

  #change(id: string, change: (value: InstanceValue) => InstanceValue): void {
    const column = this.#space.components.instance(id);
    const value = this.#read(column);
    if (value !== undefined) this.#write(column, change(value));
  }

  #happened(happening: Happening): void {
    this.#space.happened(this.#cursor, happening);
  }
}
