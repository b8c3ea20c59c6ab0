import { Buffer } from "node:buffer";
import {
  type ByteString,
  byteString,
  FLAG_READY,
  REQUEST_LIMITS,
  type StoreLimits,
  type StoreReply,
  type StoreRequest,
  textOf,
  utf8,
} from "../../protocol/tcpstore/mod.ts";
import { type ConnectOptions, openConversation } from "./connect.ts";
import type { Conversation } from "./conversation.ts";
import type { Call } from "./call.ts";
import { TcpStoreError } from "./errors.ts";
import type { CallOptions, Store, StoreValue, WriteOptions } from "./store.ts";

/** How a client connects and how patient it is. */
export interface TcpStoreClientOptions extends ConnectOptions {
  /** Deadline of every operation that names none. Default: 300 s, torch's own. */
  readonly timeoutMs?: number;
  /** What the server takes; longer keys and values are refused before anything is sent. Default: torch's libuv server. */
  readonly limits?: Pick<StoreLimits, "maxKeyBytes" | "maxValueBytes" | "maxKeys">;
}

const TIMEOUT_MS = 300_000;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/**
 * A client of a TCPStore, torch's or Muster's. It has one connection, which it never opens again: when it is lost,
 * everything under way fails with `closed` and so does every later call. Every reply has a deadline, and every
 * operation takes an `AbortSignal`. Calls may overlap: requests leave in order, several in one write, but nothing
 * passes a pending wait; use a `clone` to wait beside other work.
 *
 * ```ts
 * const store = await TcpStoreClient.connect({ host: "127.0.0.1", port: 29500 });
 * await store.set("greeting", "hello");
 * const value = await store.get("greeting", { timeoutMs: 1_000 });
 * ```
 */
export class TcpStoreClient implements Store {
  readonly #conversation: Conversation;
  readonly #options: TcpStoreClientOptions;
  readonly #limits: Pick<StoreLimits, "maxKeyBytes" | "maxValueBytes" | "maxKeys">;

  /**
   * Connects and makes the handshake.
   * @throws TcpStoreError `connect-failed` (nobody listens), `not-a-store` (no or a wrong answer), `aborted`.
   */
  static async connect(options: TcpStoreClientOptions): Promise<TcpStoreClient> {
    return new TcpStoreClient(await openConversation(options), options);
  }

  private constructor(conversation: Conversation, options: TcpStoreClientOptions) {
    this.#conversation = conversation;
    this.#options = options;
    this.#limits = options.limits ?? REQUEST_LIMITS;
  }

  /** `host:port` of the server. */
  get server(): string {
    return `${this.#options.host}:${this.#options.port}`;
  }

  /** Why the connection ended, or `undefined` while it is open. */
  get failure(): TcpStoreError | undefined {
    return this.#conversation.failure;
  }

  /** Another connection to the same server, with the same options but for the signal, which was for connecting. */
  clone(options: Partial<TcpStoreClientOptions> = {}): Promise<TcpStoreClient> {
    const { signal: _, ...same } = this.#options;
    return TcpStoreClient.connect({ ...same, ...options });
  }

  /** Is told once when the connection has ended, for whatever reason. */
  onClosed(listener: (reason: TcpStoreError) => void): void {
    this.#conversation.onClosed(listener);
  }

  /** Closes the connection; what is under way fails with `closed`. */
  close(): void {
    this.#conversation.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async set(key: string, value: StoreValue, options: WriteOptions = {}): Promise<void> {
    await this.#write(
      { op: "set", key: this.#key(key), value: this.#value(value) },
      [key],
      options,
    );
  }

  async get(key: string, options: CallOptions = {}): Promise<Uint8Array> {
    const wire = this.#key(key);
    const wait: StoreRequest = { op: "wait", keys: [wire] };
    return valueIn(await this.#call("get", [key], options, wait, { op: "get", key: wire }));
  }

  async peek(key: string, options: CallOptions = {}): Promise<Uint8Array | undefined> {
    if (!await this.check([key], options)) return undefined;
    const request: StoreRequest = { op: "get", key: this.#key(key) };
    const value = valueIn(await this.#call("peek", [key], options, request));
    // An absent key's value is empty too: it may have been deleted between the two requests.
    if (value.length === 0 && !await this.check([key], options)) return undefined;
    return value;
  }

  async compareSet(
    key: string,
    expected: StoreValue,
    desired: StoreValue,
    options: CallOptions = {},
  ): Promise<Uint8Array> {
    const request: StoreRequest = {
      op: "compareSet",
      key: this.#key(key),
      expected: this.#value(expected),
      desired: this.#value(desired),
    };
    return valueIn(await this.#call("compareSet", [key], options, request));
  }

  add(key: string, delta: bigint | number, options: CallOptions = {}): Promise<bigint> {
    return this.#add(this.#key(key), key, delta, options);
  }

  async check(keys: readonly string[], options: CallOptions = {}): Promise<boolean> {
    const reply = await this.#call("check", keys, options, { op: "check", keys: this.#keys(keys) });
    return reply!.kind === "flag" && reply!.value === FLAG_READY;
  }

  async wait(keys: readonly string[], options: CallOptions = {}): Promise<void> {
    await this.#call("wait", keys, options, { op: "wait", keys: this.#keys(keys) });
  }

  async deleteKey(key: string, options: CallOptions = {}): Promise<boolean> {
    const request: StoreRequest = { op: "deleteKey", key: this.#key(key) };
    return integerIn(await this.#call("deleteKey", [key], options, request)) === 1n;
  }

  async append(key: string, value: StoreValue, options: WriteOptions = {}): Promise<void> {
    const request: StoreRequest = { op: "append", key: this.#key(key), value: this.#value(value) };
    await this.#write(request, [key], options);
  }

  async multiGet(keys: readonly string[], options: CallOptions = {}): Promise<Uint8Array[]> {
    const wire = this.#keys(keys);
    const wait: StoreRequest = { op: "wait", keys: wire };
    const request: StoreRequest = { op: "multiGet", keys: wire };
    const reply = await this.#call("multiGet", keys, options, wait, request);
    return reply!.kind === "values" ? reply!.values.map(toBytes) : [];
  }

  async multiSet(
    entries: readonly (readonly [key: string, value: StoreValue])[],
    options: WriteOptions = {},
  ): Promise<void> {
    const keys = entries.map(([key]) => key);
    const values = entries.map(([, value]) => this.#value(value));
    await this.#write({ op: "multiSet", keys: this.#keys(keys), values }, keys, options);
  }

  async numKeys(options: CallOptions = {}): Promise<number> {
    return Number(integerIn(await this.#call("numKeys", [], options, { op: "numKeys" })));
  }

  async listKeys(options: CallOptions = {}): Promise<string[]> {
    const reply = await this.#call("listKeys", [], options, { op: "listKeys" });
    // What does not start with "/" is torch's own (`init/`).
    return reply!.kind === "keys"
      ? reply!.keys.filter((key) => key.startsWith("/")).map((key) => textOf(key.slice(1)))
      : [];
  }

  async queuePush(key: string, item: StoreValue, options: WriteOptions = {}): Promise<void> {
    const request: StoreRequest = {
      op: "queuePush",
      key: this.#key(key),
      value: this.#value(item),
    };
    await this.#write(request, [key], options);
  }

  async queuePop(
    key: string,
    options: CallOptions & { readonly block?: boolean } = {},
  ): Promise<Uint8Array> {
    const wire = this.#key(key);
    const pop: StoreRequest = { op: "queuePop", key: wire };
    const reply = options.block === false
      ? await this.#call("queuePop", [key], options, pop)
      : await this.#call("queuePop", [key], options, { op: "wait", keys: [wire] }, pop);
    if (reply!.kind === "popped" && reply!.item !== undefined) return toBytes(reply!.item);
    const why = options.block === false ? "is empty" : "was emptied by another client first";
    throw new TcpStoreError("queue-empty", `queue ${JSON.stringify(key)} ${why}`, {
      server: this.server,
      operation: "queuePop",
      keys: [key],
      sent: true,
    });
  }

  async queueLen(key: string, options: CallOptions = {}): Promise<number> {
    const request: StoreRequest = { op: "queueLen", key: this.#key(key) };
    return Number(integerIn(await this.#call("queueLen", [key], options, request)));
  }

  async barrier(key: string, worldSize: number, options: CallOptions = {}): Promise<void> {
    const size = String(this.#integer(worldSize, "a world size"));
    const request: StoreRequest = { op: "barrier", key: this.#key(key), worldSize: size };
    await this.#call("barrier", [key], options, request);
  }

  /** Asks whether the server is there: PING. */
  async ping(options: CallOptions = {}): Promise<void> {
    const nonce = Math.floor(Math.random() * 2 ** 32);
    const reply = await this.#call("ping", [], options, { op: "ping", nonce });
    if (reply!.kind === "nonce" && reply!.value === nonce) return;
    this.close();
    throw new TcpStoreError("bad-reply", `${this.server} answered a PING with another nonce`, {
      server: this.server,
      operation: "ping",
    });
  }

  /**
   * Counts this client among the workers, as torch's constructor does with `wait_for_workers` and a world size, and
   * answers how many there are now. The counter's key is outside the name space of `set` and `get`.
   */
  joinWorkers(options: CallOptions = {}): Promise<number> {
    return this.#add(WORKERS, WORKERS, 1, options).then(Number);
  }

  /** Waits, by asking every 10 ms, until `worldSize` workers have joined; torch's master does so. */
  async awaitWorkers(worldSize: number, options: CallOptions = {}): Promise<void> {
    const until = Date.now() + (options.timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS);
    for (;;) {
      const timeoutMs = Math.max(0, until - Date.now());
      const wait: StoreRequest = { op: "wait", keys: [WORKERS] };
      const get: StoreRequest = { op: "get", key: WORKERS };
      const reply = await this.#call(
        "awaitWorkers",
        [WORKERS],
        { ...options, timeoutMs },
        wait,
        get,
      );
      const joined = Number.parseInt(textOf(reply!.kind === "value" ? reply!.value : ""), 10);
      if (joined >= worldSize) return;
      if (timeoutMs === 0) {
        throw new TcpStoreError("wait-timeout", `${joined} of ${worldSize} workers joined`, {
          server: this.server,
          operation: "awaitWorkers",
          keys: [WORKERS],
        });
      }
      await new Promise((resolve) => setTimeout(resolve, WORKERS_POLL_MS));
    }
  }

  async #add(
    wire: ByteString,
    key: string,
    delta: bigint | number,
    options: CallOptions,
  ): Promise<bigint> {
    const request: StoreRequest = {
      op: "add",
      key: wire,
      delta: String(this.#integer(delta, "a delta")),
    };
    return integerIn(await this.#call("add", [key], options, request));
  }

  async #write(
    request: StoreRequest,
    keys: readonly string[],
    options: WriteOptions,
  ): Promise<void> {
    const written = this.#call(request.op, keys, options, request);
    if (options.confirm !== true) return void await written;
    const fence: StoreRequest = { op: "check", keys: "key" in request ? [request.key] : [] };
    await Promise.all([written, this.#call(request.op, keys, options, fence)]);
  }

  #call(
    operation: string,
    keys: readonly string[],
    options: CallOptions,
    ...requests: [StoreRequest] | [StoreRequest, StoreRequest]
  ): Promise<StoreReply | undefined> {
    const timeoutMs = options.timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS;
    const call: Call = { requests, operation, keys, timeoutMs, signal: options.signal };
    return this.#conversation.call(call);
  }

  #keys(keys: readonly string[]): ByteString[] {
    if (keys.length > this.#limits.maxKeys) {
      throw this.#refused(`${keys.length} keys in one request`, this.#limits.maxKeys);
    }
    return keys.map((key) => this.#key(key));
  }

  /** Torch's clients put "/" before every key, so that their own counter stays out of the way. */
  #key(key: string): ByteString {
    const wire = `/${utf8(key)}`;
    if (wire.length > this.#limits.maxKeyBytes) {
      throw this.#refused(`a key of ${wire.length} bytes on the wire`, this.#limits.maxKeyBytes);
    }
    return wire;
  }

  #value(value: StoreValue): ByteString {
    const wire = typeof value === "string"
      ? utf8(value)
      : byteString(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    if (wire.length > this.#limits.maxValueBytes) {
      throw this.#refused(`a value of ${wire.length} bytes`, this.#limits.maxValueBytes);
    }
    return wire;
  }

  #integer(value: bigint | number, what: string): bigint {
    if (typeof value === "number" && !Number.isSafeInteger(value)) {
      throw this.#refused(`${what} of ${value}: not an exact integer`);
    }
    const integer = BigInt(value);
    if (integer < INT64_MIN || integer > INT64_MAX) {
      throw this.#refused(`${what} of ${integer}: more than 64 bits`);
    }
    return integer;
  }

  #refused(what: string, limit?: number): TcpStoreError {
    const most = limit === undefined ? "" : `, at most ${limit} are taken`;
    return new TcpStoreError("refused", `${what}${most}; nothing was sent`, {
      server: this.server,
      sent: false,
    });
  }
}

const WORKERS = "init/";
const WORKERS_POLL_MS = 10;

const toBytes = (text: ByteString): Uint8Array => Buffer.from(text, "latin1");
const valueIn = (reply: StoreReply | undefined): Uint8Array =>
  toBytes(reply!.kind === "value" ? reply!.value : "");
const integerIn = (reply: StoreReply | undefined): bigint =>
  BigInt(reply!.kind === "integer" ? reply!.value : "0");
