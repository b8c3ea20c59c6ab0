/** The DP coordinator alone: its machine, its three sockets, and a journal of its own. For front-ends that bring everything else. */
import { DpCoordinatorDriver, type DpCoordinatorOptions } from "../drivers/dp-coordinator.ts";
import { type JournalStore, MemoryStore } from "../journal/mod.ts";
import {
  Kernel,
  type KernelEvent,
  type Note,
  start,
  type SystemDefinition,
} from "../kernel/mod.ts";
import {
  type CoordinatorSocket,
  type CoordinatorSockets,
  waves,
  type WavesContext,
  type WavesEffect,
  type WavesInput,
} from "../machines/mod.ts";
import { wavesEffects } from "../machines/effects/waves.ts";
import type { LoadTable } from "../peers/load-table.ts";
import { Host } from "./host.ts";
import type { Logger } from "./logger.ts";
import type { View } from "./views.ts";

export const dpCoordinatorSystem: SystemDefinition<WavesEffect> = {
  charts: { waves: { machine: waves } },
  effects: wavesEffects,
  boot: (configured: KernelEvent) => [
    start("waves", "waves", (configured as unknown as { input: never }).input),
  ],
};

export interface DpCoordinatorSettings extends DpCoordinatorOptions {
  /** Where to bind; port 0 for one that the system chooses. */
  readonly sockets: CoordinatorSockets;
  /** How many engines must subscribe before they may go on. */
  readonly engines: number;
  /** Are waves coordinated (mixture of experts), or only statistics relayed? */
  readonly coordinates: boolean;
  readonly rule?: WavesInput["rule"];
  /** Columns of a published row; 2 for front-ends before the newest, 3 by default. */
  readonly loadColumns?: 2 | 3;
  readonly remindMs?: number;
  readonly journal?: JournalStore;
  readonly logger?: Logger;
}

/** Where it stands, for people. */
export interface DpCoordinatorState {
  readonly state: "binding" | "gathering" | "paused" | "running";
  readonly wave: number;
  readonly engines: number;
  readonly subscribed: number;
  readonly sockets: CoordinatorSockets;
  /** What peers said that cannot be read, by kind. */
  readonly strangers: Readonly<Record<string, number>>;
}

export class DpCoordinator {
  readonly #host: Host<WavesEffect, CoordinatorSocket>;
  readonly #driver: DpCoordinatorDriver;
  readonly #strangers: Map<string, number>;
  readonly #notes: Note[];

  private constructor(
    host: Host<WavesEffect, CoordinatorSocket>,
    driver: DpCoordinatorDriver,
    strangers: Map<string, number>,
    notes: Note[],
  ) {
    this.#host = host;
    this.#driver = driver;
    this.#strangers = strangers;
    this.#notes = notes;
  }

  /**
   * Resolves when the sockets are bound.
   *
   * @throws Error that names the address when one cannot be bound; JournalError, HostError
   */
  static async start(settings: DpCoordinatorSettings): Promise<DpCoordinator> {
    const { sockets, engines, coordinates, rule = "evidence", remindMs = 5000, loadColumns = 3 } =
      settings;
    const driver = new DpCoordinatorDriver(settings);
    const strangers = new Map<string, number>();
    const notes: Note[] = [];
    let bound = (_problem?: Error): void => {};
    const settled = new Promise<void>((resolve, reject) => {
      bound = (problem) => problem === undefined ? resolve() : reject(problem);
    });
    settled.catch(() => {});
    const listener: View = {
      version: 1,
      apply: ({ input: { event }, notes: said }) => {
        // Alone, there is no start-up that would want to know that the sockets are bound.
        for (const note of said) if (note.kind !== "nobody") notes.push(note);
        if (event.type === "bound") bound();
        if (event.type === "bindFailed") bound(new Error(String(event["text"])));
        if (event.type !== "strangers") return;
        const kind = String(event["kind"]);
        strangers.set(kind, (strangers.get(kind) ?? 0) + Number(event["count"]));
      },
      save: () => null,
      load: () => {},
    };
    const host = await Host.open<WavesEffect, CoordinatorSocket>({
      kernel: new Kernel<WavesEffect, CoordinatorSocket>(dpCoordinatorSystem),
      journal: settings.journal ?? new MemoryStore(),
      drivers: [driver as never],
      configuration: { input: { sockets, engines, coordinates, rule, remindMs, loadColumns } },
      views: { listener },
      ...(settings.logger === undefined ? {} : { logger: settings.logger }),
    });
    try {
      await settled;
      return new DpCoordinator(host, driver, strangers, notes);
    } catch (error) {
      await host.close();
      throw error;
    }
  }

  state(): DpCoordinatorState {
    const { value, context } = this.#host.system.instances.get("waves")!.state.snapshot;
    const { wave, engines, subscribed, sockets } = context as WavesContext;
    const serving = (value as { serving?: string | object }).serving;
    return {
      state: serving === undefined
        ? value as "binding" | "gathering"
        : serving === "running"
        ? "running"
        : "paused",
      wave,
      engines,
      subscribed,
      sockets,
      strangers: Object.fromEntries(this.#strangers),
    };
  }

  /** The loads as they are known now. */
  get loads(): LoadTable | undefined {
    return this.#driver.loads;
  }

  /** Events that the machine did not expect. */
  get notes(): readonly Note[] {
    return this.#notes;
  }

  /** Inputs so far. */
  get seq(): number {
    return this.#host.system.seq;
  }

  close(): Promise<void> {
    return this.#host.close();
  }
}
