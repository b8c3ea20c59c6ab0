/**
 * What a host does about an earlier life: bring resources and timers back, listen for a grace, deliver what is overdue, and
 * then see to the calls that are owed.
 */
import type { EffectTraits, System, Typed } from "../kernel/mod.ts";
import type { Clock } from "./clock.ts";
import type { Outbox } from "./outbox.ts";
import type { Pipeline } from "./pipeline.ts";
import type { OwedCall } from "./report.ts";
import type { Timers } from "./timers.ts";

export interface RestartOptions {
  /**
   * How long drivers are listened to before overdue timers fire and owed calls are treated: what peers sent while nobody was there arrives
   * now (default 1,000).
   */
  readonly graceMs?: number;
  /** Ends the grace early: asked after every step of it, for example whether every adopted peer has answered. */
  readonly settled?: (system: System) => boolean;
}

export interface RestartParts<E extends Typed, R extends Typed> {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly outbox: Outbox;
  readonly pipeline: Pipeline<E, R>;
  readonly traits: Readonly<Record<string, EffectTraits>>;
}

/** What a restart came to. */
export interface Restarted {
  readonly overdue: number;
  readonly owed: readonly OwedCall[];
}

export class Restart<E extends Typed, R extends Typed> {
  /** Resources that were brought back. */
  readonly held: number;
  #owed: OwedCall[] = [];
  readonly #options: RestartOptions;
  readonly #parts: RestartParts<E, R>;
  readonly #done: (restarted: Restarted) => void;
  #grace: unknown;
  #over = false;

  /** Brings back what the system holds, and its timers; the latter wait for the end of the grace. */
  constructor(
    options: RestartOptions,
    parts: RestartParts<E, R>,
    done: (restarted: Restarted) => void,
  ) {
    this.#options = options;
    this.#parts = parts;
    this.#done = done;
    const { system } = parts.pipeline;
    let held = 0;
    for (const { id, timers, calls, held: holdings } of system.instances) {
      for (const { key, resource } of holdings) {
        parts.outbox.hold(system.seq, { holder: id, key, resource });
        held++;
      }
      for (const { timer, generation, dueAt } of timers) {
        parts.timers.arm({ to: id, timer, generation, dueAt });
      }
      for (const call of calls) {
        this.#owed.push({ call: call.id, instance: id, effect: call.effect.type, done: undefined });
        parts.outbox.owe({ id: call.id, from: id, kind: "call", effect: call.effect });
      }
    }
    this.held = held;
  }

  get owed(): readonly OwedCall[] {
    return this.#owed;
  }

  /** The grace begins. */
  listen(): void {
    const { clock } = this.#parts;
    this.#grace = clock.setTimeout(() => this.#end(), this.#options.graceMs ?? 1000);
    this.stepped();
  }

  /** Asked after each step. */
  stepped(): void {
    if (this.#over || this.#grace === undefined) return;
    if (this.#options.settled?.(this.#parts.pipeline.system) === true) this.#end();
  }

  cancel(): void {
    this.#over = true;
    this.#parts.clock.clearTimeout(this.#grace);
  }

  /** The grace is over: overdue timers first, then the calls that are still owed. */
  #end(): void {
    this.cancel();
    const { timers, pipeline } = this.#parts;
    const overdue = timers.overdue();
    timers.start();
    // Overdue timers are inputs now, behind what has arrived: when they have been stepped, what is still open is owed.
    queueMicrotask(() => {
      pipeline.pump();
      this.#owed = this.#owed.map((call) => this.#treat(call));
      this.#done({ overdue, owed: this.#owed });
    });
  }

  #treat(owed: OwedCall): OwedCall {
    const { pipeline, outbox, traits } = this.#parts;
    const instance = pipeline.system.instances.get(owed.instance);
    const open = instance?.calls.find((c) => c.id === owed.call);
    if (open === undefined) return { ...owed, done: "concluded" };
    const { id, effect } = open;
    const ask = traits[effect.type]!.recovery === "ask";
    outbox.order(pipeline.system.seq, { id, from: owed.instance, kind: "call", effect }, ask);
    return { ...owed, done: ask ? "asked" : "repeated" };
  }
}
