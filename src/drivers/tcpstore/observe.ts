import { Buffer } from "node:buffer";
import { setMaxListeners } from "node:events";
import { TcpStoreClient } from "./client.ts";
import type { ConnectOptions } from "./connect.ts";
import { TcpStoreError } from "./errors.ts";
import { PrefixStore } from "./prefix.ts";
import type { Store } from "./store.ts";

/** A key has a value that it did not have when it was last looked at: hex, or null when it is gone. */
export interface KeyChange {
  readonly key: string;
  readonly value: string | null;
}

/** Which keys of which store to observe, and whom to tell. */
export interface ObserveOptions extends Omit<ConnectOptions, "signal"> {
  /** Put before every key, as `PrefixStore` does. */
  readonly prefix?: string;
  /** Keys that are written once: each is reported when it is there, and not looked at again. */
  readonly keys: readonly string[];
  /** Keys that are written again: each new value is reported. What is overwritten before it was seen is not. */
  readonly follow?: readonly string[];
  /**
   * `wait`, the default: a blocking WAIT for every key, each on a connection of its own, up to `maxWaits`; what a WAIT
   * cannot do (a value that changes, one key too many, a connection that is refused) is polled.
   * `poll`: everything is polled.
   */
  readonly mode?: "wait" | "poll";
  /** Most connections that wait. Default: 64. */
  readonly maxWaits?: number;
  /** How long one WAIT lasts before it is renewed, which proves that the server is alive. Default: 30 s. */
  readonly renewMs?: number;
  /** Deadline of a reply to a poll. Default: 10 s. */
  readonly replyMs?: number;
  /** Is told each change. It must not throw. */
  readonly onChange: (change: KeyChange) => void;
  /** The store cannot be asked any more; nothing is reported after this. */
  readonly onLost: (reason: TcpStoreError) => void;
  /** Waits between two polls; for tests. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The original's pauses between two looks: the last one is repeated, and a change starts them again. */
export const POLL_PAUSES_MS: readonly number[] = [100, 200, 400, 800];

const MAX_WAITS = 64;
const RENEW_MS = 30_000;
const REPLY_MS = 10_000;

/**
 * Observes keys until it is closed, or the store is lost. Waiting and polling report the same changes; a look that finds
 * nothing new reports nothing (tcpstore-wire, section 5; the pauses are those of external elastic scaling).
 */
export class KeyObservation {
  readonly #options: ObserveOptions;
  readonly #end = new AbortController();
  /** What each key was when it was last looked at. Absent: nothing yet, or gone. */
  readonly #seen = new Map<string, string>();
  /** Keys that no WAIT is for. */
  readonly #polled: Set<string>;
  readonly #follow: ReadonlySet<string>;
  readonly #clients = new Set<TcpStoreClient>();
  #waits = 0;
  #polling = false;

  /** Starts observing. Nothing is thrown: what goes wrong is told to `onLost`. */
  static start(options: ObserveOptions): KeyObservation {
    const observation = new KeyObservation(options);
    observation.#begin();
    return observation;
  }

  private constructor(options: ObserveOptions) {
    // Every connection listens to it.
    setMaxListeners(0, this.#end.signal);
    this.#options = options;
    this.#follow = new Set(options.follow ?? []);
    this.#polled = new Set([...options.keys, ...this.#follow]);
  }

  /** Stops. No change is reported after this returns, and no connection remains. */
  close(): void {
    if (this.#end.signal.aborted) return;
    this.#end.abort();
    for (const client of this.#clients) client.close();
    this.#clients.clear();
  }

  #begin(): void {
    if (this.#options.mode !== "poll") this.#waitForMore();
    this.#pollOn();
  }

  /** Moves keys from polling to waiting, as many as there may be. */
  #waitForMore(): void {
    for (const key of [...this.#polled]) {
      if (this.#waits >= (this.#options.maxWaits ?? MAX_WAITS)) return;
      if (this.#seen.has(key)) continue;
      this.#polled.delete(key);
      this.#waits++;
      void this.#waitFor(key);
    }
  }

  async #waitFor(key: string): Promise<void> {
    let client: TcpStoreClient | undefined;
    let value: Uint8Array | undefined;
    try {
      client = await this.#connect();
      value = await this.#first(this.#prefixed(client), key);
    } catch {
      // A wait cannot be had: the key is polled, and a poll tells whether the store is lost.
    }
    if (client !== undefined) this.#release(client);
    this.#waits--;
    if (this.#ended) return;
    // So is a value that may change again.
    if (value === undefined || this.#follow.has(key)) this.#polled.add(key);
    if (value !== undefined) {
      this.#look(key, value);
      this.#waitForMore();
    }
    this.#pollOn();
  }

  /** Waits for a key's first value, however long that takes. */
  async #first(store: Store, key: string): Promise<Uint8Array> {
    const timeoutMs = this.#options.renewMs ?? RENEW_MS;
    const signal = this.#end.signal;
    for (;;) {
      try {
        return await store.get(key, { timeoutMs, signal });
      } catch (error) {
        if (!(error instanceof TcpStoreError) || error.code !== "wait-timeout") throw error;
      }
    }
  }

  #pollOn(): void {
    if (this.#polling || this.#ended || this.#polled.size === 0) return;
    this.#polling = true;
    void this.#poll();
  }

  async #poll(): Promise<void> {
    let client: TcpStoreClient | undefined;
    try {
      client = await this.#connect();
      const store = this.#prefixed(client);
      for (let failures = 0; this.#polled.size > 0 && !this.#ended; failures++) {
        if (await this.#round(store)) failures = 0;
        if (this.#ended || this.#polled.size === 0) break;
        await this.#pause(POLL_PAUSES_MS[Math.min(failures, POLL_PAUSES_MS.length - 1)]!);
      }
      this.#polling = false;
      this.#release(client);
      this.#pollOn();
    } catch (error) {
      this.#polling = false;
      if (this.#ended) return;
      this.close();
      this.#options.onLost(error as TcpStoreError);
    }
  }

  /** One look at every polled key, in one write. Answers whether something was new. */
  async #round(store: Store): Promise<boolean> {
    const options = { timeoutMs: this.#options.replyMs ?? REPLY_MS, signal: this.#end.signal };
    const keys = [...this.#polled];
    const values = await Promise.all(keys.map((key) => store.peek(key, options)));
    let news = false;
    for (const [i, key] of keys.entries()) {
      if (this.#ended) return news;
      if (this.#look(key, values[i])) news = true;
      if (values[i] !== undefined && !this.#follow.has(key)) this.#polled.delete(key);
    }
    return news;
  }

  /** Reports what is new about a key; answers whether anything was. */
  #look(key: string, bytes: Uint8Array | undefined): boolean {
    const value = bytes === undefined ? undefined : Buffer.from(bytes).toString("hex");
    if (this.#seen.get(key) === value) return false;
    if (value === undefined) this.#seen.delete(key);
    else this.#seen.set(key, value);
    this.#options.onChange({ key, value: value ?? null });
    return true;
  }

  get #ended(): boolean {
    return this.#end.signal.aborted;
  }

  async #connect(): Promise<TcpStoreClient> {
    const client = await TcpStoreClient.connect({ ...this.#options, signal: this.#end.signal });
    if (this.#ended) client.close();
    else this.#clients.add(client);
    return client;
  }

  #release(client: TcpStoreClient): void {
    client.close();
    this.#clients.delete(client);
  }

  #prefixed(client: TcpStoreClient): Store {
    const { prefix } = this.#options;
    return prefix === undefined ? client : new PrefixStore(prefix, client);
  }

  async #pause(ms: number): Promise<void> {
    const { signal } = this.#end;
    if (this.#options.pause !== undefined) return await this.#options.pause(ms, signal);
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener("abort", done);
    });
  }
}
