import type { CallOptions, Store, StoreValue, WriteOptions } from "./store.ts";

/**
 * A store within a store, as torch's `PrefixStore`: every key `k` is `<prefix>/k` of the inner one. Prefixes nest, and
 * nothing is normalised. `numKeys` counts the whole server.
 */
export class PrefixStore implements Store {
  readonly prefix: string;
  readonly inner: Store;

  constructor(prefix: string, inner: Store) {
    this.prefix = prefix;
    this.inner = inner;
  }

  set(key: string, value: StoreValue, options?: WriteOptions): Promise<void> {
    return this.inner.set(this.#key(key), value, options);
  }

  get(key: string, options?: CallOptions): Promise<Uint8Array> {
    return this.inner.get(this.#key(key), options);
  }

  peek(key: string, options?: CallOptions): Promise<Uint8Array | undefined> {
    return this.inner.peek(this.#key(key), options);
  }

  compareSet(
    key: string,
    expected: StoreValue,
    desired: StoreValue,
    options?: CallOptions,
  ): Promise<Uint8Array> {
    return this.inner.compareSet(this.#key(key), expected, desired, options);
  }

  add(key: string, delta: bigint | number, options?: CallOptions): Promise<bigint> {
    return this.inner.add(this.#key(key), delta, options);
  }

  check(keys: readonly string[], options?: CallOptions): Promise<boolean> {
    return this.inner.check(keys.map((key) => this.#key(key)), options);
  }

  wait(keys: readonly string[], options?: CallOptions): Promise<void> {
    return this.inner.wait(keys.map((key) => this.#key(key)), options);
  }

  deleteKey(key: string, options?: CallOptions): Promise<boolean> {
    return this.inner.deleteKey(this.#key(key), options);
  }

  append(key: string, value: StoreValue, options?: WriteOptions): Promise<void> {
    return this.inner.append(this.#key(key), value, options);
  }

  multiGet(keys: readonly string[], options?: CallOptions): Promise<Uint8Array[]> {
    return this.inner.multiGet(keys.map((key) => this.#key(key)), options);
  }

  multiSet(
    entries: readonly (readonly [key: string, value: StoreValue])[],
    options?: WriteOptions,
  ): Promise<void> {
    return this.inner.multiSet(entries.map(([key, value]) => [this.#key(key), value]), options);
  }

  numKeys(options?: CallOptions): Promise<number> {
    return this.inner.numKeys(options);
  }

  async listKeys(options?: CallOptions): Promise<string[]> {
    const start = `${this.prefix}/`;
    const keys = await this.inner.listKeys(options);
    return keys.filter((key) => key.startsWith(start)).map((key) => key.slice(start.length));
  }

  queuePush(key: string, item: StoreValue, options?: WriteOptions): Promise<void> {
    return this.inner.queuePush(this.#key(key), item, options);
  }

  queuePop(
    key: string,
    options?: CallOptions & { readonly block?: boolean },
  ): Promise<Uint8Array> {
    return this.inner.queuePop(this.#key(key), options);
  }

  queueLen(key: string, options?: CallOptions): Promise<number> {
    return this.inner.queueLen(this.#key(key), options);
  }

  /** Not the BARRIER operation, but a counter and a key that the last one sets: what torch's `PrefixStore` does. */
  async barrier(key: string, worldSize: number, options?: CallOptions): Promise<void> {
    const arrived = await this.add(`${key}/num_members`, 1, options);
    const last = `${key}/last_member`;
    if (arrived >= BigInt(worldSize)) await this.set(last, "1", options);
    await this.wait([last], options);
  }

  #key(key: string): string {
    return `${this.prefix}/${key}`;
  }
}
