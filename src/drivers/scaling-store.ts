/**
 * Scaling's stores over real connections: calls with their fences, facts watched with a blocking WAIT (and polled with the
 * original's back-off where that does not help), and the store servers of operations.
 */
import { Buffer } from "node:buffer";
import { type InstanceId, rankOf } from "../kernel/mod.ts";
import type {
  ScalingEffect,
  ScalingResource,
  StoreAddress,
  StoreRole,
} from "../machines/effects/scaling.ts";
import {
  CURRENT_EPOCH,
  decisionKey,
  entryOf,
  epochViewKeys,
  epochViewOf,
  errorKey,
  keyOf,
  phaseKey,
} from "../machines/scaling/store-view.ts";
import { bytesOf } from "../protocol/tcpstore/mod.ts";
import type { Driver, DriverPort, Holding, Order } from "./driver.ts";
import { StoreWatch, type Waiting } from "./scaling-watch.ts";
import { TcpStoreClient, TcpStoreServer } from "./tcpstore/mod.ts";

type StoreEffect = Extract<ScalingEffect, { type: `store.${string}` }>;
type StoreResource = Extract<ScalingResource, { type: `store.${string}` }>;

/** Whoever hosts store servers: this process by default, or one that outlives it. */
export interface StoreHost {
  /** A new, empty store, or the one that was opened under this name before. Resolves with its port. */
  serve(name: string): Promise<number>;
  stop(port: number): Promise<void>;
  /** This coordinator ends. */
  close(): Promise<void>;
}

/** Stores in this process: they end with it, and whoever watches them finds that out. */
export class OwnStores implements StoreHost {
  readonly #host: string | undefined;
  readonly #servers = new Map<number, TcpStoreServer>();
  readonly #named = new Map<string, number>();

  /** @param host where they listen; on all addresses by default. */
  constructor(host?: string) {
    this.#host = host;
  }

  async serve(name: string): Promise<number> {
    const known = this.#named.get(name);
    if (known !== undefined && this.#servers.has(known)) return known;
    const server = await TcpStoreServer.listen(
      this.#host === undefined ? {} : { host: this.#host },
    );
    this.#servers.set(server.port, server);
    this.#named.set(name, server.port);
    return server.port;
  }

  async stop(port: number): Promise<void> {
    const server = this.#servers.get(port);
    this.#servers.delete(port);
    await server?.close();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#servers.keys()].map((port) => this.stop(port)));
  }
}

export interface ScalingStoreOptions {
  /** `events`: blocking waits, and rare polls beside them; `polls`: the original's back-off alone. Default: `events`. */
  readonly waiting?: Waiting;
  /** For every call (default 10 s). */
  readonly timeoutMs?: number;
  /** So long a store may be out of reach before it counts as lost (default 10 s). */
  readonly lostMs?: number;
  /** Where stores of operations live. */
  readonly stores?: StoreHost;
}

export class ScalingStoreDriver implements Driver<StoreEffect, StoreResource> {
  readonly name = "scaling-store";
  readonly effects = [
    "store.lookUp",
    "store.write",
    "store.decide",
    "store.fail",
    "store.check",
    "store.serve",
  ] as const;
  readonly resources = ["store.facts", "store.epoch", "store.server"] as const;
  readonly #options: Required<ScalingStoreOptions>;
  #port: DriverPort | undefined;
  #clients = new Map<string, Promise<TcpStoreClient>>();
  /** By what is watched; and what a holder's key watches. */
  #watches = new Map<string, StoreWatch>();
  #held = new Map<string, string>();
  #closed = false;

  constructor(options: ScalingStoreOptions = {}) {
    this.#options = {
      waiting: "events",
      timeoutMs: 10_000,
      lostMs: 10_000,
      stores: new OwnStores(),
      ...options,
    };
  }

  start(port: DriverPort): void {
    this.#port = port;
  }

  /** Calls to one store keep their order, which is what makes a CHECK a fence. */
  channel({ from, effect }: Order<StoreEffect>): string {
    return effect.type === "store.serve" ? from : nameOf(effect.at);
  }

  perform(order: Order<StoreEffect>): void {
    void this.#conclude(order, (client) => this.#call(order, client));
  }

  /** What is written already is not written again: a phase may have moved on meanwhile. */
  ask(order: Order<StoreEffect>): void {
    void this.#conclude(order, async (client) => {
      const { effect, from } = order;
      if (effect.type !== "store.write") return this.#call(order, client);
      const entries = effect.sets.map((set) => entryOf(set, effect.epoch, rankOf(from) ?? 0));
      const there = await Promise.all(entries.map(([key]) => client!.check([key])));
      await write(client!, entries.filter((_, i) => !there[i]));
      return { type: "written", store: effect.store };
    });
  }

  hold({ holder, key, resource }: Holding<StoreResource>): void {
    // A server lives until it is released; one of an earlier life is gone, and its watchers find that out.
    if (resource.type === "store.server") return;
    this.#leave(holder, key);
    // Ranks of one process watch alike: one of them asks for all.
    const what = JSON.stringify(resource);
    const { waiting, lostMs } = this.#options;
    const watch = this.#watches.get(what) ??
      new StoreWatch(resource, this.#port!, { waiting, lostMs });
    this.#watches.set(what, watch);
    this.#held.set(`${holder} ${key}`, what);
    watch.join(holder);
  }

  release({ holder, key, resource }: Holding<StoreResource>): void {
    if (resource.type === "store.server") return void this.#options.stores.stop(resource.at.port);
    this.#leave(holder, key);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const watch of this.#watches.values()) watch.close();
    for (const client of this.#clients.values()) await client.then((c) => c.close(), () => {});
    await this.#options.stores.close();
  }

  #leave(holder: InstanceId, key: string): void {
    const what = this.#held.get(`${holder} ${key}`);
    if (what === undefined) return;
    this.#held.delete(`${holder} ${key}`);
    const watch = this.#watches.get(what)!;
    if (watch.leave(holder) > 0) return;
    watch.close();
    this.#watches.delete(what);
  }

  async #conclude(
    order: Order<StoreEffect>,
    act: (client: TcpStoreClient | undefined) => Promise<{ type: string; [key: string]: unknown }>,
  ): Promise<void> {
    const { id, from, effect } = order;
    try {
      const client = effect.type === "store.serve" ? undefined : await this.#client(effect.at);
      this.#port!.outcome(id, from, await act(client));
    } catch (error) {
      if (this.#closed) return;
      const text = error instanceof Error ? error.message : String(error);
      if (effect.type === "store.serve") {
        return this.#port!.outcome(id, from, { type: "storeServeFailed", text });
      }
      const failed = { type: "storeFailed", store: storeOf(effect), text };
      this.#port!.outcome(id, from, failed);
    }
  }

  async #call(
    { id, from, effect }: Order<StoreEffect>,
    client: TcpStoreClient | undefined,
  ): Promise<{ type: string; [key: string]: unknown }> {
    const rank = rankOf(from) ?? 0;
    switch (effect.type) {
      case "store.serve": {
        const port = await this.#options.stores.serve(id);
        return { type: "storeServing", address: { host: effect.host, port } };
      }
      case "store.lookUp":
        return { type: "epochRead", view: await readEpoch(client!) };
      case "store.check": {
        const keys = effect.key === "eep_ready" ? [`eep_ready/${rank}`] : [
          keyOf("old_rank_finished", effect.epoch, rank),
          keyOf("shutdown_complete", effect.epoch, rank),
        ];
        const found = await Promise.all(keys.map((key) => client!.check([key])));
        return { type: found.includes(true) ? "keyFound" : "keyAbsent" };
      }
      case "store.write":
        await write(client!, effect.sets.map((set) => entryOf(set, effect.epoch, rank)));
        return { type: "written", store: effect.store };
      case "store.decide": {
        const held = await client!.compareSet(decisionKey(effect.epoch), "", effect.propose);
        const outcome = new TextDecoder().decode(held) === "commit" ? "commit" : "abort";
        return { type: "decided", epoch: effect.epoch, outcome };
      }
      case "store.fail": {
        const phase = phaseKey(effect.epoch);
        await Promise.all([
          client!.compareSet(errorKey(effect.epoch), "", effect.text),
          client!.set(phase, "failed", { confirm: true }),
        ]);
        return { type: "failureWritten", store: effect.store };
      }
    }
  }

  #client(at: StoreAddress): Promise<TcpStoreClient> {
    const name = nameOf(at);
    const known = this.#clients.get(name);
    if (known !== undefined) return known;
    const { timeoutMs } = this.#options;
    const opened = TcpStoreClient.connect({
      host: at.host,
      port: at.port,
      timeoutMs,
      connectMs: timeoutMs,
    });
    this.#clients.set(name, opened);
    const forget = () => {
      if (this.#clients.get(name) === opened) this.#clients.delete(name);
    };
    opened.then((client) => client.onClosed(forget), forget);
    return opened;
  }
}

const nameOf = (at: StoreAddress): string => `${at.host}:${at.port}`;

const storeOf = (effect: StoreEffect): StoreRole =>
  "store" in effect ? effect.store : effect.type === "store.check" ? "reconfig" : "control";

/** Sets in order on one connection; the CHECK behind the last of them is answered when all are served. */
async function write(
  client: TcpStoreClient,
  entries: readonly (readonly [key: string, value: string])[],
): Promise<void> {
  await Promise.all(
    entries.map(([key, value], i) =>
      client.set(key, Buffer.from(bytesOf(value)), { confirm: i === entries.length - 1 })
    ),
  );
}

/** What the store says of its current epoch, read key by key. */
export async function readEpoch(client: TcpStoreClient): Promise<ReturnType<typeof epochViewOf>> {
  const found = new Map<string, string>();
  const read = async (key: string) => {
    const value = await client.peek(key);
    if (value !== undefined) found.set(key, Buffer.from(value).toString("latin1"));
  };
  await read(CURRENT_EPOCH);
  const epoch = found.get(CURRENT_EPOCH);
  // In this order on one connection: what says that a thing is whole before the thing, its end last.
  if (epoch !== undefined) { for (const key of epochViewKeys(epoch)) await read(key); }
  return epochViewOf((key) => found.get(key));
}
