/** What goes wrong: crashes at any moment and in the middle of steps, restarts, lost and doubled messages. */
import { AtomicStep } from "./atomic-step.ts";
import { type Composition, type Doing, told } from "./composition.ts";
import type { InstanceValue } from "./components.ts";
import type { AnyEffect, Crash } from "./model.ts";
import type { Action, Cursor, Group } from "./space.ts";

/** Effects of one step whose loss is tried one by one. More than that: all or none. */
const SUBSETS = 8;

export class Faulty {
  readonly #space: Composition;
  readonly #crashes: readonly Crash[];
  /** Nodes that can be down, with their column: 0 up, n + 1 crashed by the n-th kind of crash, the next number killed for good. */
  readonly #nodes = new Map<string, number>();

  constructor(space: Composition) {
    this.#space = space;
    this.#crashes = space.model.faults?.crashes ?? [];
    for (const { nodes } of this.#crashes) {
      for (const node of nodes) this.#nodes.set(node, space.components.count("node", node));
    }
  }

  isDown(cursor: Cursor, node: string): boolean {
    return cursor.get(this.#columnOf(node)) !== 0;
  }

  /** Ends a node for good. */
  kill(cursor: Cursor, node: string): void {
    this.#fall(cursor, node, this.#columnOf(node), this.#crashes.length + 1);
  }

  groups(): Group[] {
    const groups: Group[] = [];
    this.#crashes.forEach((crash, which) => {
      for (const node of crash.nodes) {
        groups.push({
          name: `crash ${node}`,
          parts: [{ expand: (cursor) => this.#crashIdle(cursor, node, which) }],
        });
        if (crash.restart !== "never") {
          groups.push({
            name: `restart ${node}`,
            parts: [{ expand: (cursor) => this.#restart(cursor, node, which) }],
          });
        }
      }
    });
    const { drops, duplicates } = this.#space.model.faults ?? {};
    for (const channel of drops?.channels ?? []) {
      groups.push({
        name: `drop ${channel}`,
        parts: [{ expand: (cursor) => this.#lose(cursor, channel, drops!.budget) }],
      });
    }
    for (const channel of duplicates?.channels ?? []) {
      groups.push({
        name: `duplicate ${channel}`,
        parts: [{ expand: (cursor) => this.#repeat(cursor, channel, duplicates!.budget) }],
      });
    }
    return groups;
  }

  /** A step whose node crashes when only some of its effects have left. */
  interrupt(
    cursor: Cursor,
    action: Action,
    node: string,
    doing: Doing,
    effects: readonly { effect: AnyEffect }[],
  ): void {
    this.#crashes.forEach((crash, which) => {
      if (!crash.nodes.includes(node) || crash.losesEffects === false) return;
      const all = 2 ** Math.min(effects.length, 31) - 1;
      const masks = effects.length <= SUBSETS ? Array.from({ length: all }, (_, m) => m) : [0];
      for (const keep of masks) {
        const step = new AtomicStep(this.#space, cursor);
        if (!step.spend(this.#budgetName(which), crash.budget) || !doing(step)) {
          this.#space.abandon(cursor);
          return;
        }
        step.settle(keep);
        this.#crash(cursor, node, which, step);
        const lost = effects.filter((_, i) => (keep >>> i & 1) === 0).map((e) => told(e.effect));
        cursor.emit(this.#space.action({
          ...action,
          label: `${action.label}, and ${node} crashes before ${lost.join(" and ")} leave`
            .replace(/ leave$/, lost.length === 1 ? " leaves" : " leave"),
          kind: "crash",
          lost,
          fault: true,
        }));
      }
    });
  }

  // ---- crashes -------------------------------------------------------------------------------------------------

  #crashIdle(cursor: Cursor, node: string, which: number): void {
    if (this.isDown(cursor, node)) return;
    this.#space.look(cursor);
    const crash = this.#crashes[which]!;
    if (crash.when?.(node, this.#space.world) === false) return;
    const begin = (): AtomicStep | undefined => {
      const step = new AtomicStep(this.#space, cursor);
      if (step.spend(this.#budgetName(which), crash.budget)) return step;
      cursor.reset();
      return undefined;
    };
    const plain = begin();
    if (plain === undefined) return;
    const calls = crash.restart === "journal" ? this.#callsOf(cursor, node) : [];
    this.#crash(cursor, node, which, plain);
    cursor.emit(
      this.#space.action({ label: `${node} crashes`, kind: "crash", to: node, fault: true }),
    );
    // What was asked may have been done although nobody will hear of it.
    for (const { id, call } of calls) {
      const rule = this.#space.model.calls![call.effect.type]!;
      this.#space.look(cursor);
      for (const { does = [], fault } of rule(call.effect, this.#space.world, id, call.owed)) {
        if (does.length === 0 || fault !== undefined) continue;
        const step = begin()!;
        step.operate(does, id);
        this.#crash(cursor, node, which, step);
        cursor.emit(this.#space.action({
          label: `${node} crashes; its ${call.slot} was done`,
          kind: "crash",
          to: node,
          lost: [call.slot],
          fault: true,
        }));
      }
    }
  }

  #crash(cursor: Cursor, node: string, which: number, step: AtomicStep): void {
    this.#fall(cursor, node, this.#nodes.get(node)!, which + 1);
    this.#space.look(cursor);
    const notices = this.#crashes[which]!.notices?.(node, this.#space.world);
    if (notices !== undefined) step.operate(notices, node);
  }

  #fall(cursor: Cursor, node: string, column: number, value: number): void {
    cursor.set(column, value);
    cursor.open = true;
    const { components } = this.#space;
    for (const message of components.messages) {
      if (message.kind !== "fifo") continue;
      const receives = this.#space.nodeOf(message.to[0]!) === node;
      const lost = receives && !this.#space.keeps(message.channel);
      if (message.from === node || lost) {
        cursor.set(message.column, 0);
      }
    }
    const fresh = this.#crashes[value - 1]?.restart === "fresh";
    this.#eachInstance(cursor, node, (id, instance) => {
      const column = components.instance(id);
      if (fresh) cursor.set(column, components.number(column, undefined));
      else if (instance.calls.some((c) => !c.owed)) {
        const calls = instance.calls.map((c) => ({ ...c, owed: true }));
        cursor.set(column, components.number(column, { ...instance, calls }));
      }
    });
    this.#space.happened(cursor, { kind: "crashed", node });
  }

  #restart(cursor: Cursor, node: string, which: number): void {
    const column = this.#nodes.get(node)!;
    if (cursor.get(column) !== which + 1) return;
    const step = new AtomicStep(this.#space, cursor);
    cursor.set(column, 0);
    this.#space.happened(cursor, { kind: "restarted", node });
    if (this.#crashes[which]!.restart === "fresh") {
      step.boot(
        Object.keys(this.#space.model.processes).filter((id) => this.#space.nodeOf(id) === node),
      );
      const outputs = this.#space.model.boots?.[node];
      if (outputs !== undefined) step.bootNode(node, outputs);
    } else {
      const told: string[] = [];
      this.#eachInstance(cursor, node, (id, { behaviour }) => {
        if (behaviour.knows("resumed")) told.push(id);
      });
      for (const id of told) step.input(id, { type: "resumed" });
    }
    step.settle();
    cursor.emit(
      this.#space.action({ label: `${node} restarts`, kind: "restart", to: node, fault: false }),
    );
  }

  /** Any node may be ended by something that the model does. */
  #columnOf(node: string): number {
    let column = this.#nodes.get(node);
    if (column === undefined) {
      this.#nodes.set(node, column = this.#space.components.count("node", node));
    }
    return column;
  }

  #budgetName(which: number): string {
    return which === 0 ? "crashes" : `crashes ${which + 1}`;
  }

  #callsOf(cursor: Cursor, node: string): { id: string; call: InstanceValue["calls"][number] }[] {
    const calls: { id: string; call: InstanceValue["calls"][number] }[] = [];
    this.#eachInstance(cursor, node, (id, instance) => {
      for (const call of instance.calls) calls.push({ id, call });
    });
    return calls;
  }

  #eachInstance(
    cursor: Cursor,
    node: string,
    visit: (id: string, instance: InstanceValue) => void,
  ): void {
    cursor.open = true;
    for (const { kind, name, column } of [...this.#space.components.all]) {
      if (kind !== "instance" || this.#space.nodeOf(name) !== node) continue;
      const instance = this.#space.components.instanceOf(column, cursor.get(column));
      if (instance !== undefined) visit(name, instance);
    }
  }

  // ---- messages ------------------------------------------------------------------------------------------------

  #lose(cursor: Cursor, channel: string, budget: number): void {
    cursor.open = true;
    for (const message of [...this.#space.components.messages]) {
      if (message.channel !== channel || message.kind === "set") continue;
      const event = this.#space.head(cursor, message);
      if (event === undefined) continue;
      const step = new AtomicStep(this.#space, cursor);
      if (!step.spend("drops", budget)) return cursor.reset();
      step.take(message);
      cursor.emit(this.#space.action({
        label: `${told(event)} to ${message.to.join()} is lost`,
        kind: "drop",
        from: message.from,
        to: message.to[0]!,
        event,
        fault: true,
      }));
    }
  }

  #repeat(cursor: Cursor, channel: string, budget: number): void {
    cursor.open = true;
    for (const message of [...this.#space.components.messages]) {
      if (message.channel !== channel || message.kind === "set") continue;
      const event = this.#space.head(cursor, message);
      if (event === undefined) continue;
      for (const to of message.to) {
        if (this.isDown(cursor, this.#space.nodeOf(to))) continue;
        const step = new AtomicStep(this.#space, cursor);
        if (!step.spend("duplicates", budget)) return cursor.reset();
        step.input(to, event);
        step.settle();
        cursor.emit(this.#space.action({
          label: `${to} receives ${told(event)}, which will arrive again`,
          kind: "duplicate",
          from: message.from,
          to,
          event,
          fault: true,
        }));
      }
    }
  }
}
