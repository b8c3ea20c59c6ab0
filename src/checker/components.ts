/** The components of a composed model: which column holds what, and what its numbers stand for. */
import type { Behaviour, Place } from "./behaviour.ts";
import { type Aspect, Columns, Interner, JsonInterner } from "./columns.ts";
import type { AnyEffect, ChannelKind, ComponentKind } from "./model.ts";
import type { KernelEvent } from "../kernel/mod.ts";

/** A call without an outcome. `owed` once its node has crashed and come back. */
export interface PendingCall {
  readonly slot: string;
  readonly effect: AnyEffect;
  readonly owed: boolean;
}

export interface HeldResource {
  readonly key: string;
  readonly resource: { readonly type: string; readonly [member: string]: unknown };
}

/** An instance as one value: its local state, its armed timers, its open calls. */
export interface InstanceValue {
  /** The name of the chart for an instance that was started; empty for a process of the model. */
  readonly chart: string;
  readonly behaviour: Behaviour;
  readonly place: Place;
  readonly timers: readonly string[];
  readonly calls: readonly PendingCall[];
  readonly held: readonly HeldResource[];
  readonly starter: string;
}

/** Messages on their way: a queue between two ends (`fifo`), or one message of which there are some (`bag`) or any number (`set`). */
export interface MessageColumn {
  readonly column: number;
  readonly name: string;
  readonly channel: string;
  readonly kind: ChannelKind;
  readonly from: string;
  readonly to: readonly string[];
  /** For `bag` and `set`. */
  readonly event: KernelEvent | undefined;
}

/** What is known about a column. */
export interface Component {
  readonly column: number;
  readonly kind: ComponentKind;
  readonly name: string;
  /** The value as a person may read it; undefined for absent or empty. */
  readonly show: (value: number) => unknown;
  /** The value itself, for symmetry. */
  readonly raw: (value: number) => unknown;
}

export class Components {
  readonly columns: Columns = new Columns();
  readonly all: Component[] = [];
  readonly messages: MessageColumn[] = [];
  readonly json: JsonInterner = new JsonInterner();
  /** How many instances and message columns there are: what looks at all of them depends on it. */
  get structure(): number {
    return this.#instances.size + this.messages.length;
  }

  readonly #inboxes = new Map<string, MessageColumn[]>();
  readonly #tables = new Map<string, Interner<InstanceValue | undefined>>();
  readonly #tableOf: Interner<InstanceValue | undefined>[] = [];
  readonly #instances = new Map<string, number>();
  readonly #aspects = new Map<string, Map<string, Aspect>>();
  readonly #byName = new Map<string, MessageColumn>();
  readonly #listeners = new Map<string, (message: MessageColumn) => void>();

  // ---- instances -----------------------------------------------------------------------------------------------

  /**
   * The column of an instance. Instances of one table number their values alike.
   *
   * @param table a name; columns of the same table hold the same kind of instance.
   * @param startsAbsent whether 0 is to mean that there is no such instance.
   */
  instance(id: string, table: string = `@${id}`, startsAbsent = true): number {
    const known = this.#instances.get(id);
    if (known !== undefined) return known;
    const column = this.columns.of(`instance ${id}`);
    this.#instances.set(id, column);
    let values = this.#tables.get(table);
    if (values === undefined) this.#tables.set(table, values = new Interner());
    if (startsAbsent) values.intern("", () => undefined);
    this.#tableOf[column] = values;
    this.all.push({
      column,
      kind: "instance",
      name: id,
      show: (value) => shown(values.values[value]),
      raw: (value) => values.values[value],
    });
    return column;
  }

  hasInstance(id: string): boolean {
    return this.#instances.has(id);
  }

  /**
   * Something that can be said of an instance.
   *
   * @param what names it among all that can be said.
   */
  aspect(
    id: string,
    what: string,
    of: (value: InstanceValue | undefined) => number,
  ): Aspect {
    let aspects = this.#aspects.get(id);
    if (aspects === undefined) this.#aspects.set(id, aspects = new Map());
    let aspect = aspects.get(what);
    if (aspect === undefined) {
      const column = this.instance(id);
      aspect = this.columns.aspect(column, (value) => of(this.instanceOf(column, value)));
      aspects.set(what, aspect);
    }
    return aspect;
  }

  instanceOf(column: number, value: number): InstanceValue | undefined {
    return this.#tableOf[column]!.values[value];
  }

  /** The number of an instance's value; undefined for none. */
  number(column: number, value: InstanceValue | undefined): number {
    const table = this.#tableOf[column]!;
    if (value === undefined) return table.intern("", () => undefined);
    const calls = listText(value.calls);
    const held = listText(value.held);
    const key =
      `${value.chart}|${value.place.index}|${value.timers.join()}|${calls}|${held}|${value.starter}`;
    return table.intern(key, () => value);
  }

  // ---- messages ------------------------------------------------------------------------------------------------

  /** The column in which a message travels. */
  message(
    channel: string,
    kind: ChannelKind,
    from: string,
    to: readonly string[],
    event: KernelEvent,
  ): MessageColumn {
    const ends = kind === "fifo" ? `${from} to ${to.join()}` : `to ${to.join()}`;
    const name = kind === "fifo"
      ? `${channel}: ${ends}`
      : `${channel}: ${JSON.stringify(event)} ${ends}`;
    let found = this.#byName.get(name);
    if (found === undefined) {
      const column = this.columns.of(`channel ${name}`);
      found = {
        column,
        name,
        channel,
        kind,
        from,
        to,
        event: kind === "fifo" ? undefined : event,
      };
      this.#byName.set(name, found);
      this.messages.push(found);
      for (const receiver of to) {
        this.inbox(receiver).push(found);
        this.#listeners.get(receiver)?.(found);
      }
      const raw = kind === "fifo"
        ? (value: number) => this.json.get(value)
        : (value: number) =>
          value === 0 ? undefined : value === 1 ? event : Array(value).fill(event);
      this.all.push({ column, kind: "channel", name, show: raw, raw });
    }
    return found;
  }

  /** Where messages to an instance may be. The list grows. */
  inbox(receiver: string): MessageColumn[] {
    let inbox = this.#inboxes.get(receiver);
    if (inbox === undefined) this.#inboxes.set(receiver, inbox = []);
    return inbox;
  }

  /** Calls back for every message column of a receiver, those there are and those to come. */
  onMessage(receiver: string, listener: (message: MessageColumn) => void): void {
    this.#listeners.set(receiver, listener);
    this.inbox(receiver).forEach(listener);
  }

  // ---- the rest ------------------------------------------------------------------------------------------------

  /** A column that holds a JSON value by number. */
  value(kind: ComponentKind, name: string): number {
    const full = `${kind} ${name}`;
    const known = this.columns.find(full);
    if (known !== undefined) return known;
    const column = this.columns.of(full);
    const raw = (value: number) => this.json.get(value);
    this.all.push({ column, kind, name, show: raw, raw });
    return column;
  }

  /** A column that holds a count. */
  count(kind: ComponentKind, name: string): number {
    const full = `${kind} ${name}`;
    const known = this.columns.find(full);
    if (known !== undefined) return known;
    const column = this.columns.of(full);
    const raw = (value: number) => value === 0 ? undefined : value;
    this.all.push({ column, kind, name, show: raw, raw });
    return column;
  }
}

const texts = new WeakMap<readonly unknown[], string>();

/** The JSON text of a list, written once for each list object. */
function listText(list: readonly unknown[]): string {
  if (list.length === 0) return "";
  let text = texts.get(list);
  if (text === undefined) texts.set(list, text = JSON.stringify(list));
  return text;
}

function shown(value: InstanceValue | undefined): unknown {
  if (value === undefined) return undefined;
  const { place, timers, calls, held } = value;
  const { value: state, context } = place.view;
  const parts: Record<string, unknown> = { state };
  if (
    context !== state && context !== undefined && context !== null &&
    Object.keys(context as object).length > 0
  ) parts["context"] = context;
  if (timers.length > 0) parts["timers"] = timers.map(timerName);
  if (calls.length > 0) parts["calls"] = calls.map((c) => c.owed ? `${c.slot} (owed)` : c.slot);
  if (held.length > 0) parts["holds"] = held.map((h) => h.key);
  return parts;
}

/** `readyDeadline` for `xstate.after.readyDeadline.engine.connected`. */
export function timerName(timer: string): string {
  const match = /^xstate\.after\.([^.]+)\./.exec(timer);
  return match === null ? timer : match[1]!;
}
