/** A value to store: bytes, or text for its UTF-8 form. */
export type StoreValue = Uint8Array | string;

/** How long an operation may take. */
export interface CallOptions {
  /** Deadline, counted from the call. Default: the store's own. */
  readonly timeoutMs?: number;
  /** Ends the operation with the code `aborted`. */
  readonly signal?: AbortSignal;
}

/** How a write is made. */
export interface WriteOptions extends CallOptions {
  /**
   * Wait until the server has it. Writes have no reply, so without this a write is done when the operating system has
   * taken its bytes; with it a CHECK follows on the same connection, whose reply proves that the write was served.
   */
  readonly confirm?: boolean;
}

/**
 * A key-value store as torch's `Store` has it. Keys are text; every failure is a `TcpStoreError`.
 * `TcpStoreClient` and `PrefixStore` are such stores.
 */
export interface Store {
  /** Stores a value. */
  set(key: string, value: StoreValue, options?: WriteOptions): Promise<void>;
  /** Waits for the key, then answers its value. (A key deleted in between: empty, or `closed` by torch's legacy server.) */
  get(key: string, options?: CallOptions): Promise<Uint8Array>;
  /** The value if the key is there now, else `undefined`: a CHECK, then a GET. */
  peek(key: string, options?: CallOptions): Promise<Uint8Array | undefined>;
  /**
   * Stores `desired` if the value is `expected` (an absent key counts as empty), and answers the value afterwards: for
   * an absent key with another expectation that is, on this protocol, `expected` itself.
   */
  compareSet(
    key: string,
    expected: StoreValue,
    desired: StoreValue,
    options?: CallOptions,
  ): Promise<Uint8Array>;
  /** Adds to a counter, which an absent key starts at 0, and answers the sum; 64 bits, wrapping. */
  add(key: string, delta: bigint | number, options?: CallOptions): Promise<bigint>;
  /** Whether every one of the keys is there now. */
  check(keys: readonly string[], options?: CallOptions): Promise<boolean>;
  /** Waits until every one of the keys has been there. */
  wait(keys: readonly string[], options?: CallOptions): Promise<void>;
  /** Removes a key, and answers whether it was there. */
  deleteKey(key: string, options?: CallOptions): Promise<boolean>;
  /** Appends to a value, which an absent key starts as empty. */
  append(key: string, value: StoreValue, options?: WriteOptions): Promise<void>;
  /** Waits for the keys, then answers their values, in order. */
  multiGet(keys: readonly string[], options?: CallOptions): Promise<Uint8Array[]>;
  /** Stores several values in one request. */
  multiSet(
    entries: readonly (readonly [key: string, value: StoreValue])[],
    options?: WriteOptions,
  ): Promise<void>;
  /** How many keys the whole server has, also those outside a prefix. */
  numKeys(options?: CallOptions): Promise<number>;
  /** The keys, in no particular order. */
  listKeys(options?: CallOptions): Promise<string[]>;
  /** Appends an item to a queue (not on torch's legacy server, which closes the connection). */
  queuePush(key: string, item: StoreValue, options?: WriteOptions): Promise<void>;
  /**
   * Takes the oldest item of a queue; `block` (the default) waits for one.
   * @throws TcpStoreError `queue-empty` when there is none, or another client was faster.
   */
  queuePop(key: string, options?: CallOptions & { readonly block?: boolean }): Promise<Uint8Array>;
  /** How many items a queue has. */
  queueLen(key: string, options?: CallOptions): Promise<number>;
  /** Waits until `worldSize` callers have come to this barrier. It does not close again. */
  barrier(key: string, worldSize: number, options?: CallOptions): Promise<void>;
}
