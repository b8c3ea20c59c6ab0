/**
 * The sockets between a front-end and its engines (wire spec, section 4): bound before INIT, so that it can say where they
 * are; then utility calls out, and what engines say in. First frames are inputs, statistics are observations.
 */
import { rankOf } from "../kernel/mod.ts";
import type { BusSocket, Heartbeat } from "../machines/mod.ts";
import type {
  EngineFacts,
  ScalingNotification,
  SchedulerStats,
  Utility,
  WireRank,
} from "../protocol/mod.ts";
import type { Driver, DriverPort, Holding } from "./driver.ts";
import { Pulses } from "./pulses.ts";
import { LastWords } from "./last-words.ts";
import type { EngineAnswer, EngineCaller } from "./scaling-engines.ts";
import {
  bindEngineBus,
  callIdOf,
  type CallOutcome,
  type EngineBus,
  type Notification,
} from "./zmq/engine-bus.ts";

/** What is seen of engines without being an input. */
export type BusObservation =
  /** What an engine tells of itself, beyond what machines use. */
  | { readonly type: "engine-facts"; readonly rank: number; readonly facts: EngineFacts | null }
  | { readonly type: "engine-stats"; readonly rank: number; readonly stats: SchedulerStats }
  | { readonly type: "engine-status"; readonly rank: number; readonly status: string }
  /** Some engine is dying; the frame does not say which. */
  | { readonly type: "engine-dying" };

type NotificationListener = (
  rank: number,
  notification: "RECONFIGURE_FINISHED" | "SHUTDOWN_COMPLETE",
) => void;

interface Open {
  readonly client: number;
  readonly bus: Promise<EngineBus | undefined>;
  lastWords?: LastWords;
}

export class BusDriver implements Driver<never, BusSocket | Heartbeat>, EngineCaller {
  readonly name = "bus";
  readonly effects = [] as const;
  readonly resources = ["socket.bus", "heartbeat"] as const;
  readonly #open = new Map<string, Open>();
  readonly #listeners: NotificationListener[] = [];
  readonly #pulses = new Pulses({
    bus: () => this.#first(),
    unresponsive: (holder, afterMs, why) =>
      this.#port!.input(holder, { type: "unresponsive", afterMs, why }),
  });
  #port: DriverPort | undefined;

  start(port: DriverPort): void {
    this.#port = port;
  }

  perform(): void {}

  hold({ holder, key, resource }: Holding<BusSocket | Heartbeat>): void {
    const name = `${holder} ${key}`;
    if (resource.type === "heartbeat") {
      const { everyMs, withinMs } = resource;
      const rank = rankOf(holder) as WireRank;
      return this.#pulses.watch(name, { holder, rank, everyMs, withinMs });
    }
    if (this.#open.has(name)) return;
    const open: Open = { client: resource.client, bus: this.#bind(holder, key, resource) };
    this.#open.set(name, open);
  }

  release({ holder, key }: Holding<BusSocket | Heartbeat>): void {
    const name = `${holder} ${key}`;
    this.#pulses.drop(name);
    this.#open.get(name)?.lastWords?.close();
    void this.#open.get(name)?.bus.then((bus) => bus?.close());
    this.#open.delete(name);
  }

  async close(): Promise<void> {
    this.#pulses.close();
    for (const { bus, lastWords } of this.#open.values()) {
      lastWords?.close();
      (await bus)?.close();
    }
    this.#open.clear();
  }

  /** Calls a utility of one rank; late at the deadline. `call` is an effect id, the same in every life of the run. */
  async callWithin(
    rank: number,
    utility: Utility,
    call: string,
    deadlineMs: number | null,
  ): Promise<CallOutcome> {
    const bus = await this.#first();
    if (bus === undefined) {
      return { type: "failed", failure: "there is no bus to the engines", unasked: true };
    }
    return bus.call({
      rank: rank as WireRank,
      callId: callIdOf(call, rank),
      utility,
      ...(deadlineMs === null ? {} : { deadlineMs }),
    });
  }

  /** As {@link EngineCaller} says: somebody else watches the time. */
  async call(rank: number, utility: Utility, call: string): Promise<EngineAnswer> {
    const outcome = await this.callWithin(rank, utility, call, null);
    switch (outcome.type) {
      case "replied":
        return { ok: true, value: outcome.value };
      case "failed":
        return {
          ok: false,
          failure: outcome.failure,
          ...(outcome.unasked === true ? { unasked: true } : {}),
        };
      case "late":
      case "abandoned":
        return new Promise(() => {});
    }
  }

  async forget(rank: number, call: string): Promise<string | null> {
    const bus = await this.#first();
    return bus?.abandon(callIdOf(call, rank)) ?? null;
  }

  onNotification(listener: NotificationListener): void {
    this.#listeners.push(listener);
  }

  /** Notifications come to client 0, so calls leave there too. */
  #first(): Promise<EngineBus | undefined> {
    const [first] = [...this.#open.values()].sort((a, b) => a.client - b.client);
    return first?.bus ?? Promise.resolve(undefined);
  }

  async #bind(holder: string, key: string, bus: BusSocket): Promise<EngineBus | undefined> {
    const port = this.#port!;
    const see = (observation: BusObservation) => port.observe(observation);
    const spoken = new Set<WireRank>();
    let lastWords: LastWords | undefined;
    try {
      const bound = await bindEngineBus({
        input: bus.input,
        output: bus.output,
        clientIndex: bus.client,
        expects: (rank) => bus.ranks.some(([first, last]) => first <= rank && rank <= last),
        onFirstFrame: (rank, facts) => {
          spoken.add(rank);
          see({ type: "engine-facts", rank, facts });
          port.input(`rank/${rank}/engine`, {
            type: "firstFrame",
            blocks: facts?.numGpuBlocks ?? null,
            ...(facts?.coordStorePort == null ? {} : { storePort: facts.coordStorePort }),
          });
        },
        onStats: (rank, stats) => see({ type: "engine-stats", rank, stats }),
        onNotification: (rank, notification) => {
          const left = notification.type === "scaling-notification" &&
            notification.notification === "SHUTDOWN_COMPLETE";
          if (left) spoken.delete(rank); // it goes as it was asked to
          this.#notified(rank, notification);
        },
        onEngineDead: () => {
          see({ type: "engine-dying" });
          void lastWords?.heard();
        },
        onMalformed: (rank, refusal) =>
          port.input(holder, {
            type: "strangers",
            kind: "message",
            count: 1,
            sample: `first frame of rank ${rank}: ${refusal.text}`,
          }),
        onStrangers: (strangers) => port.input(holder, { type: "strangers", ...strangers }),
      });
      // Every front-end hears it; the first one looks for whom it was.
      if (bus.client === 0) lastWords = this.#listenFor(`${holder} ${key}`, bound, spoken);
      port.input(holder, { type: "bound", socket: key, endpoints: bound.endpoints });
      return bound;
    } catch (error) {
      port.input(holder, { type: "bindFailed", socket: key, text: (error as Error).message });
      return undefined;
    }
  }

  /** The process of an engine elsewhere is not seen to end, so that its last words end in the same input as if it were. */
  #listenFor(name: string, bus: EngineBus, spoken: ReadonlySet<WireRank>): LastWords {
    const lastWords = new LastWords({
      bus,
      ranks: () => [...spoken],
      gone: (rank) =>
        this.#port!.input(`rank/${rank}/engine`, { type: "exited", code: null, signal: null }),
    });
    const open = this.#open.get(name);
    if (open !== undefined) open.lastWords = lastWords;
    return lastWords;
  }

  #notified(rank: number, said: Notification): void {
    if (said.type === "engine-status") {
      const observation: BusObservation = { type: "engine-status", rank, status: said.status };
      return this.#port!.observe(observation);
    }
    if (!isOfTwoPhases(said.notification)) return;
    for (const listener of this.#listeners) listener(said.rank, said.notification);
  }
}

/** The notifications of releases since the two-phase commit. */
const isOfTwoPhases = (
  notification: ScalingNotification,
): notification is "RECONFIGURE_FINISHED" | "SHUTDOWN_COMPLETE" =>
  notification === "RECONFIGURE_FINISHED" || notification === "SHUTDOWN_COMPLETE";
