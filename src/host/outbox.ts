/**
 * What steps ask of the world, on its way to the drivers. Nothing leaves before its input is in the journal as far as its effect type
 * demands, and what belongs together keeps its order:
 *
 * - messages and calls of one channel leave in the order in which they were asked for;
 * - a resource is held before anything that its driver was asked for later, and released after everything it was asked for earlier.
 *   Both happen only when the input behind them is safe: nothing exists in the world that the journal might not know of, and nothing is given
 *   up (a keeper that knows of exits, say) whose last words might yet be lost.
 */
import type { Driver, Holding, Order } from "../drivers/driver.ts";
import type { FaultPoint } from "../journal/mod.ts";
import type { EffectId, EffectTraits, InstanceId, Stamped, Typed } from "../kernel/mod.ts";
import { HostError, textOf } from "./error.ts";

type Item =
  | {
    readonly kind: "order";
    readonly seq: number;
    readonly order: Order;
    readonly durable: boolean;
    readonly channel: string;
    /** Find out what became of it instead of doing it. */
    readonly ask: boolean;
  }
  | {
    readonly kind: "abandon";
    readonly seq: number;
    readonly call: EffectId;
    readonly type: string;
    readonly channel: string;
  }
  | { readonly kind: "hold" | "release"; readonly seq: number; readonly holding: Holding };

interface Lane {
  readonly driver: Driver;
  waiting: Item[];
}

export class Outbox {
  readonly #lanes: Lane[];
  readonly #byEffect = new Map<string, Lane>();
  readonly #byResource = new Map<string, Lane>();
  readonly #traits: Readonly<Record<string, EffectTraits>>;
  readonly #fault: FaultPoint;
  /** Open calls, so that an abandon finds its driver and channel. */
  readonly #calls = new Map<EffectId, { lane: Lane; channel: string; type: string }>();
  readonly #held = new Map<string, Holding>();
  #stopped = false;

  /** @throws HostError `host-no-driver` when an effect type has no driver, or two. */
  constructor(
    drivers: readonly Driver[],
    traits: Readonly<Record<string, EffectTraits>>,
    fault: FaultPoint,
  ) {
    this.#traits = traits;
    this.#fault = fault;
    this.#lanes = drivers.map((driver) => ({ driver, waiting: [] }));
    for (const lane of this.#lanes) {
      for (const type of lane.driver.effects) claim(this.#byEffect, "effect", type, lane);
      for (const type of lane.driver.resources) claim(this.#byResource, "resource", type, lane);
    }
    const orphans = Object.keys(traits).filter((type) => !this.#byEffect.has(type));
    if (orphans.length > 0) {
      throw new HostError(
        "host-no-driver",
        `no driver carries out ${
          orphans.join(", ")
        }: give one, or discard(...) what is to be dropped`,
      );
    }
    for (const [type, { driver }] of this.#byEffect) {
      if (traits[type]?.recovery !== "ask" || driver.ask !== undefined) continue;
      throw new HostError(
        "host-no-driver",
        `after a restart the driver ${driver.name} is asked what became of a ${type}, and it has no ask()`,
      );
    }
  }

  /** Puts a step's effects at the end of their queues. Timers are not for drivers. */
  add(seq: number, effects: readonly Stamped[]): void {
    for (const effect of effects) {
      if (effect.kind === "message" || effect.kind === "call") this.order(seq, effect);
      else if (effect.kind === "abandon") this.#abandon(seq, effect.call);
      else if (effect.kind === "hold") {
        this.hold(seq, { holder: effect.from, key: effect.key, resource: effect.resource });
      } else if (effect.kind === "release") this.#release(seq, effect.from, effect.key);
    }
  }

  /** A message or a call. */
  order(seq: number, { id, from, kind, effect }: Order, ask = false): void {
    const order: Order = { id, from, kind, effect };
    const { lane, channel } = this.#routeOf(order);
    const durable = this.#traits[effect.type]!.leaves === "durable";
    if (kind === "call") this.#calls.set(id, { lane, channel, type: effect.type });
    lane.waiting.push({ kind: "order", seq, order, durable, channel, ask });
  }

  /** A call of an earlier life is open: it can be abandoned. */
  owe(order: Order): void {
    this.#calls.set(order.id, { ...this.#routeOf(order), type: order.effect.type });
  }

  #routeOf(order: Order): { lane: Lane; channel: string } {
    const lane = this.#byEffect.get(order.effect.type)!;
    return { lane, channel: lane.driver.channel?.(order) ?? lane.driver.name };
  }

  hold(seq: number, holding: Holding): void {
    const lane = this.#byResource.get(holding.resource.type);
    if (lane === undefined) {
      throw new HostError(
        "host-no-driver",
        `${holding.holder} holds the resource ${holding.resource.type}, which no driver provides`,
      );
    }
    this.#held.set(`${holding.holder} ${holding.key}`, holding);
    lane.waiting.push({ kind: "hold", seq, holding });
  }

  #release(seq: number, holder: InstanceId, key: string): void {
    const holding = this.#held.get(`${holder} ${key}`);
    if (holding === undefined) return;
    this.#held.delete(`${holder} ${key}`);
    this.#byResource.get(holding.resource.type)!.waiting.push({ kind: "release", seq, holding });
  }

  #abandon(seq: number, call: EffectId): void {
    const open = this.#calls.get(call);
    if (open === undefined) return;
    this.#calls.delete(call);
    const { channel, type } = open;
    open.lane.waiting.push({ kind: "abandon", seq, call, channel, type });
  }

  /** A call had its outcome: it cannot be abandoned any more. */
  concluded(call: EffectId): void {
    this.#calls.delete(call);
  }

  /** How many effects still wait. */
  get waiting(): number {
    return this.#lanes.reduce((sum, lane) => sum + lane.waiting.length, 0);
  }

  /**
   * Lets everything leave that may.
   *
   * @param appended inputs up to this one are in the journal. @param durable up to this one they are safe.
   * @throws HostError `host-driver` when a driver throws.
   */
  flush(appended: number, durable: number): void {
    for (const lane of this.#lanes) {
      if (lane.waiting.length > 0) this.#flushLane(lane, appended, durable);
    }
  }

  /** Nothing leaves from now on. */
  stop(): void {
    this.#stopped = true;
    for (const lane of this.#lanes) lane.waiting = [];
  }

  #flushLane(lane: Lane, appended: number, durable: number): void {
    const items = lane.waiting;
    const first = items[0]!;
    // A resource that waits holds up everything behind it.
    if ((first.kind === "hold" || first.kind === "release") && first.seq > durable) return;
    lane.waiting = [];
    const kept: Item[] = [];
    const closed = new Set<string>();
    let resources = false;
    for (let i = 0; i < items.length && !this.#stopped; i++) {
      const item = items[i]!;
      const safe = isDurable(item) ? durable : appended;
      let waits: boolean = item.seq > safe || resources;
      if (item.kind === "order" || item.kind === "abandon") {
        waits ||= closed.has(item.channel);
        if (waits) closed.add(item.channel);
      } else {
        waits ||= item.kind === "release" && kept.length > 0;
        resources ||= waits;
      }
      if (waits) kept.push(item);
      else this.#carryOut(lane.driver, item);
    }
    if (!this.#stopped) lane.waiting = [...kept, ...lane.waiting];
  }

  #carryOut(driver: Driver, item: Item): void {
    const type = item.kind === "order"
      ? item.order.effect.type
      : item.kind === "abandon"
      ? item.type
      : item.holding.resource.type;
    const point = item.kind === "order" ? `effect.${type}` : `${item.kind}.${type}`;
    this.#fault(`${point}.before`);
    try {
      if (item.kind === "order" && item.ask) driver.ask!(item.order);
      else if (item.kind === "order") driver.perform(item.order);
      else if (item.kind === "abandon") driver.abandon?.(item.call);
      else if (item.kind === "hold") driver.hold?.(item.holding);
      else driver.release?.(item.holding);
    } catch (cause) {
      throw new HostError(
        "host-driver",
        `the driver ${driver.name} threw at ${point}: ${textOf(cause)}`,
        cause,
      );
    }
    this.#fault(`${point}.after`);
  }
}

const isDurable = (item: Item): boolean =>
  item.kind === "order" ? item.durable : item.kind !== "abandon";

function claim(table: Map<string, Lane>, what: string, type: string, lane: Lane): void {
  const other = table.get(type);
  if (other !== undefined) {
    throw new HostError(
      "host-no-driver",
      `the ${what} ${type} is claimed by the drivers ${other.driver.name} and ${lane.driver.name}`,
    );
  }
  table.set(type, lane);
}

/** A driver that drops what it is asked for: says openly which effects and resources a program does without. */
export const discard = <E extends Typed = Typed, R extends Typed = Typed>(
  effects: readonly E["type"][],
  resources: readonly R["type"][] = [],
): Driver<E, R> => ({
  name: "discard",
  effects,
  resources,
  start: () => {},
  perform: () => {},
  ask: () => {},
  close: () => Promise.resolve(),
});
