import { join } from "node:path";
import process from "node:process";
import type { DeviceMap } from "../../planning/mod.ts";
import {
  drawKeeperPlace,
  type ExitEvent,
  KeeperClient,
  KeeperError,
  type KeeperHandlers,
  type KeeperPlace,
  startKeeper,
} from "../keeper/mod.ts";
import { environmentOf } from "./environment.ts";
import {
  type End,
  Exits,
  type Launched,
  type Launcher,
  LauncherError,
  type LaunchExit,
  type LaunchOrder,
  type Stopped,
} from "./launcher.ts";

/** A process on this host. */
export interface LocalOrder extends LaunchOrder {
  /** Pass on all of the coordinator's environment; default true. */
  readonly inherit?: boolean;
  /** Devices of its ranks, by local rank. */
  readonly devices?: { readonly map: DeviceMap; readonly localRanks: readonly number[] };
}

export interface LocalLauncherOptions {
  /** Directory for one log a launch. Absolute. */
  readonly logs: string;
  /** Counts the owners: a later one takes the keeper over. Default 1. */
  readonly fence?: number;
  /** How long launches outlive the coordinator, in milliseconds. Default 0. */
  readonly leaseMs?: number;
  /** The place of a keeper that runs already, to adopt what it holds; default: a new one. */
  readonly adopt?: KeeperPlace;
}

/**
 * Processes on this host, children of a keeper: they end with the coordinator, or are found again by the next one within the lease.
 */
export class LocalLauncher implements Launcher<LocalOrder> {
  readonly kind: string = "local";
  /** Where the keeper is, for whoever will adopt it. */
  readonly place: KeeperPlace;
  readonly #client: KeeperClient;
  readonly #logs: string;
  readonly #exits: Exits;
  readonly #ranks: Map<string, readonly number[]>;
  readonly #asked = new Set<string>();
  readonly #over: { text: string | null };

  private constructor(
    place: KeeperPlace,
    client: KeeperClient,
    logs: string,
    shared: Pick<LocalLauncherState, "exits" | "ranks" | "over">,
  ) {
    this.place = place;
    this.#client = client;
    this.#logs = logs;
    this.#exits = shared.exits;
    this.#ranks = shared.ranks;
    this.#over = shared.over;
  }

  /**
   * Starts a keeper, or adopts one that runs.
   * @throws LauncherError `launcher-unreachable`
   */
  static async open(options: LocalLauncherOptions): Promise<LocalLauncher> {
    const place = options.adopt ?? drawKeeperPlace();
    const hire = { fence: options.fence ?? 1, leaseMs: options.leaseMs ?? 0 };
    const state: LocalLauncherState = {
      exits: new Exits(),
      ranks: new Map(),
      over: { text: null },
      launcher: null,
      early: [],
    };
    const handlers: KeeperHandlers = {
      exited: (exit) => {
        if (state.launcher === null) state.early.push(exit);
        else state.launcher.#ended(exit);
      },
      lost: (how, reason) => {
        if (state.launcher !== null) {
          state.launcher.#lost(`the keeper was lost (${how}): ${reason}`);
        }
      },
    };
    try {
      const client = options.adopt === undefined
        ? await startKeeper({ place, ...hire }, handlers)
        : await KeeperClient.connect(place, hire, handlers);
      const launcher = new LocalLauncher(place, client, options.logs, state);
      for (const child of client.welcome.children) {
        if (child.alive) state.ranks.set(child.id, []);
      }
      state.launcher = launcher;
      for (const exit of [...client.welcome.exits, ...state.early]) launcher.#ended(exit);
      return launcher;
    } catch (error) {
      if (!(error instanceof KeeperError)) throw error;
      throw new LauncherError("launcher-unreachable", error.message);
    }
  }

  get keeperPid(): number {
    return this.#client.welcome.keeper.pid;
  }

  async start(order: LocalOrder): Promise<Launched> {
    if (order.argv.length === 0) {
      throw new LauncherError("launch-refused", `launch ${order.id} names no program`);
    }
    this.#ranks.set(order.id, order.ranks);
    const { pid } = await this.#ask(this.#client.spawn({
      id: order.id,
      argv: [...order.argv],
      env: environmentOf({
        own: process.env,
        inherit: order.inherit ?? true,
        env: order.env,
        ...(order.devices === undefined ? {} : { devices: order.devices }),
      }),
      cwd: order.cwd ?? process.cwd(),
      log: this.logOf(order.id),
    }));
    return { id: order.id, where: "this host", pid };
  }

  async stop(id: string, deadlineMs: number): Promise<Stopped> {
    this.#asked.add(id);
    const { killed, stuck } = await this.#ask(this.#client.stop(id, deadlineMs));
    return { killed: killed.includes(id), left: stuck.includes(id) };
  }

  exited(listener: (exit: LaunchExit) => void): () => void {
    return this.#exits.listen(listener);
  }

  logs(id: string, lines = 20): Promise<readonly string[]> {
    return this.#ask(this.#client.tail(id, lines));
  }

  /** The file that takes a launch's output. */
  logOf(id: string): string {
    return join(this.#logs, `${id.replace(/[^\w.-]/g, "_")}.log`);
  }

  async close(deadlineMs = 5000): Promise<void> {
    for (const id of this.#ranks.keys()) this.#asked.add(id);
    if (this.#over.text === null) await this.#client.hostStop(deadlineMs).catch(() => {});
  }

  /** Lets go without stopping anything: the lease begins. */
  detach(): void {
    this.#client.detach();
  }

  async #ask<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (!(error instanceof KeeperError)) throw error;
      const code = error.code === "keeper-unknown-launch"
        ? "unknown-launch"
        : error.code === "keeper-bad-request"
        ? "launch-refused"
        : "launcher-unreachable";
      throw new LauncherError(code, error.message);
    }
  }

  #ended(exit: ExitEvent): void {
    this.#tell(exit.id, endOf(exit), exit.tail, exit.at);
    void this.#client.acknowledge(exit.seq).catch(() => {});
  }

  #lost(text: string): void {
    this.#over.text = text;
    for (const id of [...this.#ranks.keys()]) {
      this.#tell(id, { kind: "unknown", text }, [], Date.now());
    }
  }

  #tell(id: string, end: End, tail: readonly string[], at: number): void {
    const ranks = this.#ranks.get(id) ?? [];
    this.#ranks.delete(id);
    this.#exits.tell({ id, ranks, end, asked: this.#asked.has(id), tail, at });
  }
}

interface LocalLauncherState {
  readonly exits: Exits;
  readonly ranks: Map<string, readonly number[]>;
  readonly over: { text: string | null };
  launcher: LocalLauncher | null;
  /** Exits that came before the hello was through. */
  readonly early: ExitEvent[];
}

function endOf(exit: ExitEvent): End {
  if (exit.error !== undefined) return { kind: "not-started", text: exit.error.message };
  if (exit.signal !== null) return { kind: "signal", signal: exit.signal };
  if (exit.code !== null) return { kind: "exit", code: exit.code };
  return { kind: "unknown", text: "the system reported neither exit code nor signal" };
}
