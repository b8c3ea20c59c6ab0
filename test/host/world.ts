/** A small world for the kernel's fixture: a driver that remembers what left, and answers calls when told to. */
import type { Driver, DriverPort, Holding, Order } from "../../src/drivers/driver.ts";
import type { Clock } from "../../src/host/mod.ts";
import type { EffectId, KernelEvent, Typed } from "../../src/kernel/mod.ts";
import type { Effects } from "../kernel/fixture.ts";

export class World {
  /** What left, in order: `init 2.1`, `hold rank/0/engine bus`. */
  readonly log: string[] = [];
  readonly orders: Order[] = [];
  port!: DriverPort;
  closed = false;

  driver(): Driver<Effects, Typed> {
    const said = (holding: Holding) => `${holding.holder} ${holding.key}`;
    return {
      name: "world",
      effects: ["init", "pause", "announce"],
      resources: ["bus"],
      start: (port) => void (this.port = port),
      perform: (order) => {
        this.log.push(`${order.effect.type} ${order.id}`);
        this.orders.push(order);
      },
      abandon: (call) => this.log.push(`abandon ${call}`),
      hold: (holding) => this.log.push(`hold ${said(holding)}`),
      release: (holding) => this.log.push(`release ${said(holding)}`),
      close: () => Promise.resolve(void (this.closed = true)),
    };
  }

  say(to: string, event: KernelEvent): void {
    this.port.input(to, event);
  }

  answer(call: EffectId, to: string, event: KernelEvent): void {
    this.port.outcome(call, to, event);
  }
}

/** A clock that moves when told to. */
export class ManualClock implements Clock {
  #now = 1_000_000;
  #next = 1;
  readonly #waiting = new Map<number, { at: number; action: () => void }>();

  now(): number {
    return this.#now;
  }

  setTimeout(action: () => void, delayMs: number): unknown {
    this.#waiting.set(this.#next, { at: this.#now + delayMs, action });
    return this.#next++;
  }

  clearTimeout(handle: unknown): void {
    this.#waiting.delete(handle as number);
  }

  /** Sets the clock without anything happening, also back. */
  set(now: number): void {
    this.#now = now;
  }

  /** Moves on, letting everything happen that is due, and lets promises settle. */
  async pass(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (;;) {
      await settle();
      const due = [...this.#waiting].filter(([, w]) => w.at <= until);
      if (due.length === 0) break;
      const [handle, { at, action }] = due.reduce((a, b) => b[1].at < a[1].at ? b : a);
      this.#waiting.delete(handle);
      this.#now = Math.max(this.#now, at);
      action();
    }
    this.#now = until;
    await settle();
  }
}

/** Lets everything that is under way without a clock come to its end. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}
