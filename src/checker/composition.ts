/** A model as a space to search: every process, channel, key, timer and fault budget a component; everything that can happen an action. */
import { AtomicStep } from "./atomic-step.ts";
import { Behaviour, type LocalView, type Place, type Program } from "./behaviour.ts";
import type { Columns } from "./columns.ts";
import {
  Components,
  type HeldResource,
  type InstanceValue,
  type MessageColumn,
  type PendingCall,
  timerName,
} from "./components.ts";
import { Faulty } from "./faulty.ts";
import { type AnyEffect, type Happening, type May, type Model, ModelError } from "./model.ts";
import type { Action, Cursor, Group, Part, Predicate, Space } from "./space.ts";
import type { World } from "./world.ts";
import type { KernelEvent } from "../kernel/mod.ts";

/** Hears what happens in a step. */
export interface Recorder {
  /** @param place where the instance was that took something. */
  happened(happening: Happening, place: Place | undefined): void;
  /** What was told since the last step is no part of any. */
  forget(): void;
}

/** What an action does, before its effects leave. False when it cannot happen after all. */
export type Doing = (step: AtomicStep) => boolean;

export class Composition implements Space {
  readonly model: Model;
  readonly components: Components = new Components();
  readonly groups: Group[] = [];
  readonly actions: Action[] = [];
  /** What can be started, by the name that charts use. */
  readonly charts: Map<string, Behaviour> = new Map();
  /** Told of everything that happens in steps that are computed, and of those that come to nothing after all; for traces. */
  recorder: Recorder | undefined;
  readonly faulty: Faulty;
  readonly #actionIds = new Map<string, number>();
  readonly #byProgram = new Map<Program, Behaviour>();
  readonly #processes = new Map<string, Behaviour>();
  readonly #grouped = new Set<string>();
  readonly #nodeOf = new Map<string, string>();
  readonly #monitors: { column: number; name: string }[];
  /** Reads whatever cursor it is given to. */
  readonly world: World;
  #cursor: Cursor | undefined;

  constructor(model: Model) {
    this.model = model;
    for (const [name, program] of Object.entries(model.charts ?? {})) {
      this.charts.set(name, this.#behaviour(program));
    }
    for (const [id, process] of Object.entries(model.processes)) {
      const behaviour = this.#behaviour(process.runs);
      this.#processes.set(id, behaviour);
      this.#nodeOf.set(id, process.node ?? id);
      this.components.instance(id, `${behaviour.id} ${this.behaviours.indexOf(behaviour)}`, false);
    }
    for (const key of Object.keys(model.store ?? {})) this.components.value("store", key);
    this.#monitors = Object.keys(model.monitors ?? {}).map((name) => ({
      name,
      column: this.components.value("monitor", name),
    }));
    this.world = this.#world();
    this.faulty = new Faulty(this);
    for (const id of Object.keys(model.processes)) this.group(id);
    this.groups.push(...this.faulty.groups());
  }

  get name(): string {
    return this.model.name;
  }

  get structure(): number {
    // Where an instance runs is known once it was started for the first time.
    return this.components.structure + this.#nodeOf.size;
  }

  get columns(): Columns {
    return this.components.columns;
  }

  // ---- Space ---------------------------------------------------------------------------------------------------

  start(cursor: Cursor): void {
    this.look(cursor);
    for (const [key, value] of Object.entries(this.model.store ?? {})) {
      cursor.set(this.components.value("store", key), this.components.json.of(value));
    }
    for (const { name, column } of this.#monitors) {
      cursor.set(column, this.components.json.of(this.model.monitors![name]!.initial));
    }
    const step = new AtomicStep(this, cursor);
    step.boot(Object.keys(this.model.processes));
    for (const [node, outputs] of Object.entries(this.model.boots ?? {})) {
      step.bootNode(node, outputs);
    }
    step.settle();
  }

  /** A question about states as a predicate over cursors. */
  predicate(name: string, holds: (world: World) => boolean): Predicate {
    return {
      name,
      holds: (cursor) => {
        this.look(cursor);
        return holds(this.world);
      },
    };
  }

  /** Lets {@link world} read this cursor. */
  look(cursor: Cursor): void {
    this.#cursor = cursor;
  }

  // ---- for steps -----------------------------------------------------------------------------------------------

  /** Every program that runs in this model, once. */
  get behaviours(): Behaviour[] {
    return [...this.#byProgram.values()];
  }

  /** Whether senders keep what a channel's other end has not taken. */
  keeps(channel: string): boolean {
    const said = this.model.channels?.[channel];
    return typeof said === "object" && said.kept === true;
  }

  behaviourOf(process: string): Behaviour | undefined {
    return this.#processes.get(process);
  }

  nodeOf(instance: string): string {
    return this.#nodeOf.get(instance) ?? instance;
  }

  /** Remembers where an instance that was started later runs, and lets it act. */
  settleIn(instance: string, node: string): void {
    if (!this.#nodeOf.has(instance)) this.#nodeOf.set(instance, node);
    this.group(instance);
  }

  /** Makes sure that an instance's actions are looked at. */
  group(id: string): void {
    if (this.#grouped.has(id)) return;
    this.#grouped.add(id);
    const may = [this.model.processes[id]?.may, this.model.may?.[id]].filter((m) =>
      m !== undefined
    );
    // Apart, because they depend on different components: as one they would have an answer for each combination.
    const parts: Part[] = [{ expand: (cursor) => this.#act(cursor, id, may) }];
    if (this.model.calls !== undefined) {
      parts.push({
        expand: (cursor) => {
          for (const call of this.#acting(cursor, id)?.calls ?? []) {
            this.#conclude(cursor, id, call);
          }
        },
      });
    }
    if (this.model.resources !== undefined) {
      parts.push({
        expand: (cursor) => {
          for (const { resource } of this.#acting(cursor, id)?.held ?? []) {
            this.#report(cursor, id, resource);
          }
        },
      });
    }
    this.groups.push({ name: id, parts });
    this.components.onMessage(id, (message) => {
      parts.push({ expand: (cursor) => this.#receive(cursor, id, message) });
    });
  }

  happened(cursor: Cursor, happening: Happening, place?: Place): void {
    this.recorder?.happened(happening, place);
    for (const { name, column } of this.#monitors) {
      const monitor = this.model.monitors![name]!;
      if (monitor.heeds?.(happening) === false) continue;
      const memory = this.components.json.get(cursor.get(column));
      const next = monitor.step(memory as never, happening);
      cursor.set(column, this.components.json.of(next));
    }
  }

  /** The number of an action. */
  action(action: Action): number {
    // The label says everything that tells one action from another.
    let id = this.#actionIds.get(action.label);
    if (id === undefined) {
      id = this.actions.push(action) - 1;
      this.#actionIds.set(action.label, id);
    }
    return id;
  }

  /** Takes a step back that cannot happen after all. */
  abandon(cursor: Cursor): void {
    this.recorder?.forget();
    cursor.reset();
  }

  /** Emits what comes of an action, and what comes of it when the node crashes before all effects have left. */
  attempt(cursor: Cursor, action: Action, id: string, doing: Doing): void {
    const step = new AtomicStep(this, cursor);
    if (!doing(step)) return this.abandon(cursor);
    step.settle();
    const effects = step.left;
    cursor.emit(this.action(action));
    if (effects.length > 0) this.faulty.interrupt(cursor, action, this.nodeOf(id), doing, effects);
  }

  // ---- what an instance may do ---------------------------------------------------------------------------------

  #act(cursor: Cursor, id: string, mays: readonly May[]): void {
    const value = this.#acting(cursor, id);
    if (value === undefined) return;
    for (const may of mays) this.#may(cursor, id, may);
    for (const timer of value.timers) this.#fire(cursor, id, timer);
  }

  /** The instance, if it is there and its node is up. */
  #acting(cursor: Cursor, id: string): InstanceValue | undefined {
    this.look(cursor);
    const column = this.components.instance(id);
    const value = this.components.instanceOf(column, cursor.get(column));
    return value === undefined || this.faulty.isDown(cursor, this.nodeOf(id)) ? undefined : value;
  }

  #may(cursor: Cursor, id: string, may: May): void {
    for (const event of typeof may === "function" ? may(this.world) : may) {
      const action: Action = {
        label: `${id}: ${told(event)}`,
        kind: "event",
        to: id,
        event,
        fault: false,
      };
      this.attempt(cursor, action, id, (step) => step.input(id, event) === "taken");
    }
  }

  #fire(cursor: Cursor, id: string, timer: string): void {
    const { deadline, budget = 0, when } = this.model.timers ?? {};
    const short = timerName(timer);
    if (when?.(id, short, this.world) === false) return;
    const limited = deadline?.(id, short) === true;
    const event = { type: timer };
    const action: Action = {
      label: `${id}: ${short} passes`,
      kind: "timer",
      to: id,
      event,
      fault: limited,
    };
    this.attempt(cursor, action, id, (step) => {
      if (limited && !step.spend("deadlines", budget)) return false;
      step.disarm(id, timer);
      step.input(id, event);
      return true;
    });
  }

  #conclude(cursor: Cursor, id: string, call: PendingCall): void {
    const rule = this.model.calls![call.effect.type]!;
    for (const { event, does = [], fault } of rule(call.effect, this.world, id, call.owed)) {
      const action: Action = {
        label: event === undefined
          ? `${id}: ${called(call.effect)} begins`
          : `${id}: ${called(call.effect)} answers ${told(event)}`,
        kind: "outcome",
        to: id,
        ...(event === undefined ? {} : { event }),
        fault: fault !== undefined,
      };
      this.attempt(cursor, action, id, (step) => {
        if (fault !== undefined && !step.spend(fault, this.budget(fault))) return false;
        if (event !== undefined) step.conclude(id, call.slot);
        step.operate(does, id);
        if (event !== undefined) step.input(id, event);
        return true;
      });
    }
  }

  #report(cursor: Cursor, id: string, resource: HeldResource["resource"]): void {
    const rule = this.model.resources?.[resource.type];
    if (rule === undefined) return;
    for (const { event, does = [], fault } of rule(resource, this.world, id)) {
      if (event === undefined) continue;
      const action: Action = {
        label: `${id}: ${resource.type} reports ${told(event)}`,
        kind: "outcome",
        to: id,
        event,
        fault: fault !== undefined,
      };
      this.attempt(cursor, action, id, (step) => {
        if (fault !== undefined && !step.spend(fault, this.budget(fault))) return false;
        step.operate(does, id);
        step.input(id, event);
        return true;
      });
    }
  }

  #receive(cursor: Cursor, id: string, message: MessageColumn): void {
    const event = this.head(cursor, message);
    if (event === undefined || this.#acting(cursor, id) === undefined) return;
    const channel = this.model.channels![message.channel]!;
    if (typeof channel === "object" && channel.open?.(this.world, id) === false) return;
    const from = message.kind === "fifo" ? { from: message.from } : {};
    const action: Action = {
      label: `${id} receives ${told(event)}${
        message.kind === "fifo" ? ` from ${message.from}` : ""
      }`,
      kind: "deliver",
      ...from,
      to: id,
      event,
      fault: false,
    };
    this.attempt(cursor, action, id, (step) => {
      step.take(message);
      step.input(id, event);
      return true;
    });
  }

  /** The message that would be delivered next. */
  head(cursor: Cursor, message: MessageColumn): KernelEvent | undefined {
    const value = cursor.get(message.column);
    if (value === 0) return undefined;
    if (message.kind !== "fifo") return message.event;
    return (this.components.json.get(value) as KernelEvent[])[0];
  }

  budget(name: string): number {
    const budget = this.model.faults?.budgets?.[name];
    if (budget === undefined) {
      throw new ModelError(
        `model ${this.name}: an outcome uses the budget ${name}, which faults.budgets does not name`,
      );
    }
    return budget;
  }

  // ---- internals -----------------------------------------------------------------------------------------------

  #behaviour(program: Program): Behaviour {
    let behaviour = this.#byProgram.get(program);
    if (behaviour === undefined) this.#byProgram.set(program, behaviour = new Behaviour(program));
    return behaviour;
  }

  #world(): World {
    const { components } = this;
    const value = (id: string): InstanceValue | undefined => {
      const column = components.instance(id);
      return components.instanceOf(column, this.#cursor!.get(column));
    };
    const at = (id: string): LocalView | undefined => value(id)?.place.view;
    return {
      at,
      in: (id, state) => {
        const of = (there: InstanceValue | undefined) => there?.place.view.in(state) ? 1 : 0;
        return this.#cursor!.look(components.aspect(id, `in ${state}`, of)) === 1;
      },
      get: (key) => components.json.get(this.#cursor!.get(components.value("store", key))),
      messages: (channel, to) => {
        this.#cursor!.open = true;
        return components.inbox(to).filter((m) => m.channel === channel).flatMap((m) => {
          const held = this.#cursor!.get(m.column);
          if (held === 0) return [];
          return m.kind === "fifo"
            ? components.json.get(held) as KernelEvent[]
            : Array<KernelEvent>(held).fill(m.event!);
        });
      },
      calls: (id): readonly AnyEffect[] => value(id)?.calls.map((c) => c.effect) ?? [],
      timers: (id) => {
        const of = (there: InstanceValue | undefined) =>
          components.json.of((there?.timers ?? []).map(timerName));
        return components.json.get(
          this.#cursor!.look(components.aspect(id, "timers", of)),
        ) as string[];
      },
      holds: (id) => value(id)?.held.map((h) => h.resource) ?? [],
      down: (node) => this.#cursor!.get(components.count("node", node)) !== 0,
      spent: (budget) => this.#cursor!.get(components.count("budget", budget)),
      memory: (monitor) =>
        components.json.get(this.#cursor!.get(components.value("monitor", monitor))),
    };
  }
}

/** A call in a few words: its type, and what sets it apart from others of the type. */
function called(effect: AnyEffect): string {
  const { method } = (effect["request"] ?? {}) as { method?: string };
  return method ?? effect.type;
}

const words = new WeakMap<KernelEvent, string>();

/** An event in a few words: `ready {"blocks":7}`. */
export function told(event: KernelEvent): string {
  let text = words.get(event);
  if (text === undefined) {
    const { type, ...rest } = event;
    text = Object.keys(rest).length === 0 ? type : `${type} ${JSON.stringify(rest)}`;
    words.set(event, text);
  }
  return text;
}
