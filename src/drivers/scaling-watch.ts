/** One watched store: facts or the epoch, by a blocking wait with polls beside it, or by polls alone. */
import { Buffer } from "node:buffer";
import type { InstanceId, KernelEvent } from "../kernel/mod.ts";
import type { StoreFact, WatchEpoch, WatchFacts } from "../machines/effects/scaling.ts";
import {
  decisionKey,
  errorKey,
  factIn,
  keysOfFact,
  missingFor,
  operationKey,
} from "../machines/scaling/store-view.ts";
import type { DriverPort } from "./driver.ts";
import { readEpoch } from "./scaling-store.ts";
import { TcpStoreClient, TcpStoreError } from "./tcpstore/mod.ts";

/** How a watch learns: the original's back-off alone, or blocking waits with rare polls beside them. */
export type Waiting = "events" | "polls";

export interface WatchOptions {
  readonly waiting: Waiting;
  readonly lostMs: number;
}

/** The original's schedule: 0.1, 0.2, 0.4, 0.8, 0.8, ... seconds. */
export const BACK_OFF_MS: readonly number[] = [100, 200, 400, 800];

export class StoreWatch {
  readonly #resource: WatchFacts | WatchEpoch;
  readonly #holders = new Set<InstanceId>();
  readonly #port: DriverPort;
  readonly #options: WatchOptions;
  readonly #ending = new AbortController();
  readonly #clients = new Set<TcpStoreClient>();
  #told: readonly KernelEvent[] = [];
  #lastView = "";
  #reported = new Set<StoreFact>();
  #lost = false;

  constructor(
    resource: WatchFacts | WatchEpoch,
    port: DriverPort,
    options: WatchOptions,
  ) {
    this.#resource = resource;
    this.#port = port;
    this.#options = options;
    if (resource.type === "store.epoch") {
      void this.#follow((client) => this.#lookAtEpoch(client), epochKeys(resource));
    } else if (options.waiting === "polls") {
      void this.#follow((client) => this.#lookAtFacts(client, resource, resource.facts), null);
    } else {
      // Nothing passes a pending wait, so every fact has a connection of its own.
      for (const fact of resource.facts) {
        const look = (client: TcpStoreClient) => this.#lookAtFacts(client, resource, [fact]);
        void this.#follow(
          look,
          keysOfFact(fact, resource).map((any, rank) =>
            // A rank that leaves ends with the last of its keys.
            any.length > 1 && rank >= resource.target ? any.at(-1)! : any[0]!
          ),
        );
      }
    }
  }

  /** Somebody more is told, at once also what was found so far. */
  join(holder: InstanceId): void {
    this.#holders.add(holder);
    for (const event of this.#told) this.#port.input(holder, event);
  }

  /** How many are left to be told. */
  leave(holder: InstanceId): number {
    this.#holders.delete(holder);
    return this.#holders.size;
  }

  #tell(event: KernelEvent): void {
    // The latest view of an epoch replaces the earlier ones; facts stay.
    this.#told = [...this.#told.filter((e) => e.type !== "epochSeen"), event];
    for (const holder of this.#holders) this.#port.input(holder, event);
  }

  close(): void {
    this.#ending.abort();
    for (const client of this.#clients) client.close();
  }

  get #closed(): boolean {
    return this.#ending.signal.aborted;
  }

  /** Looks until there is nothing more to find; between looks it waits for keys, or backs off. */
  async #follow(
    look: (client: TcpStoreClient) => Promise<boolean>,
    keys: readonly string[] | null,
  ): Promise<void> {
    let failing = 0;
    let attempt = 0;
    // Once the keys are there, waiting for them says nothing more.
    let waits = this.#options.waiting === "events";
    let client: TcpStoreClient | undefined;
    while (!this.#closed) {
      try {
        client ??= await this.#connect();
        if (await look(client)) break;
        failing = 0;
        const ms = BACK_OFF_MS[Math.min(attempt++, BACK_OFF_MS.length - 1)]!;
        if (waits && keys !== null) waits = !await this.#wait(client, keys, ms);
        else await this.#pause(ms);
      } catch (error) {
        if (this.#closed) break;
        if (client !== undefined) this.#drop(client);
        client = undefined;
        failing ||= Date.now();
        if (Date.now() - failing > this.#options.lostMs) {
          this.#lose(error);
          break;
        }
        await this.#pause(100);
      }
    }
    if (client !== undefined) this.#drop(client);
  }

  async #connect(): Promise<TcpStoreClient> {
    const { host, port } = this.#resource.at;
    const client = await TcpStoreClient.connect({
      host,
      port,
      timeoutMs: 5_000,
      connectMs: 2_000,
      retry: false,
      signal: this.#ending.signal,
    });
    if (this.#closed) client.close();
    this.#clients.add(client);
    return client;
  }

  #drop(client: TcpStoreClient): void {
    client.close();
    this.#clients.delete(client);
  }

  /**
   * Until the keys are there, or it is time for a look: some servers do not wake for some writes (torch's legacy one for
   * compare_set), and original ranks do not announce. True when they came.
   */
  async #wait(client: TcpStoreClient, keys: readonly string[], ms: number): Promise<boolean> {
    try {
      await client.wait(keys, { timeoutMs: ms });
      return true;
    } catch (error) {
      if (error instanceof TcpStoreError && error.code === "wait-timeout") return false;
      throw error;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms);
      const { signal } = this.#ending;
      function done() {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      }
      signal.addEventListener("abort", done);
    });
  }

  #lose(error: unknown): void {
    if (this.#lost) return;
    this.#lost = true;
    const store = this.#resource.type === "store.epoch" ? "control" : this.#resource.store;
    const text = error instanceof Error ? error.message : String(error);
    this.#tell({ type: "storeLost", store, text });
  }

  async #lookAtEpoch(client: TcpStoreClient): Promise<boolean> {
    const view = await readEpoch(client);
    const text = JSON.stringify(view);
    if (view === null || text === this.#lastView || this.#closed) return false;
    this.#lastView = text;
    this.#tell({ type: "epochSeen", view });
    return false;
  }

  /** True when all of these facts are reported. */
  async #lookAtFacts(
    client: TcpStoreClient,
    watched: WatchFacts,
    facts: readonly StoreFact[],
  ): Promise<boolean> {
    const found = new Map<string, string>();
    for (const fact of facts) {
      if (this.#reported.has(fact)) continue;
      // One question for all ranks; which of them are missing is asked only when somebody is.
      const keys = keysOfFact(fact, watched);
      const all = keys.every((any) => any.length === 1) &&
        await client.check(keys.map(([k]) => k!));
      if (all) { for (const [key] of keys) found.set(key!, "1"); }
      else if (keys.flat().length > 1) await this.#findEach(client, keys.flat(), found);
      else continue;
      if (fact === "decision") await this.#read(client, decisionKey(watched.epoch), found);
      if (fact === "error") {
        // An end that is there too was there first.
        const ended = watched.facts.includes("completed") && !this.#reported.has("completed");
        if (ended && await this.#lookAtFacts(client, watched, ["completed"])) return true;
        await this.#read(client, errorKey(watched.epoch), found);
      }
      const look = (key: string) => found.get(key);
      const event = factIn(look, fact, watched);
      if (this.#closed || this.#reported.has(fact)) return true;
      if (event === undefined) {
        this.#port.observe({
          type: "store.missing",
          holders: [...this.#holders],
          fact,
          ranks: missingFor(look, fact, watched),
        } as never);
        continue;
      }
      this.#reported.add(fact);
      this.#tell(event as never);
    }
    return facts.every((fact) => this.#reported.has(fact));
  }

  async #findEach(
    client: TcpStoreClient,
    keys: readonly string[],
    found: Map<string, string>,
  ): Promise<void> {
    const there = await Promise.all(keys.map((key) => client.check([key])));
    keys.forEach((key, i) => there[i] && found.set(key, "1"));
  }

  async #read(client: TcpStoreClient, key: string, found: Map<string, string>): Promise<void> {
    const value = await client.peek(key);
    if (value !== undefined) found.set(key, Buffer.from(value).toString("latin1"));
  }
}

/** What announces a new epoch, where anything does. */
const epochKeys = ({ operation }: WatchEpoch): string[] | null =>
  operation === null ? null : [operationKey(operation)];
