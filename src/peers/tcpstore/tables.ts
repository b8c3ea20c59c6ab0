import {
  type ByteString,
  FLAG_NOT_READY,
  FLAG_READY,
  type StoreReply,
  type StoreRequest,
} from "../../protocol/tcpstore/mod.ts";
import { atLeast, counterOf, sum } from "./counter.ts";
import { Fifo } from "./fifo.ts";
import { type ConnectionId, Waiters } from "./waiters.ts";

/** The protocol has no error reply: a request that cannot be served closes its connection. */
export interface StoreRefusal {
  readonly kind: "refused";
  readonly code: "not-an-integer";
  readonly message: string;
}

/** What a connection is told: a reply, or that it is to be closed. */
export type StoreAnswer = StoreReply | StoreRefusal;

/** Takes an answer for a connection: the one that asked, or one whose wait is over. */
export type Answer = (to: ConnectionId, answer: StoreAnswer) => void;

/** Rough cost of an entry beside its bytes, for `bytes`. */
const ENTRY_BYTES = 64;
/** The longest counter. */
const COUNTER_BYTES = 20;

const GO: StoreReply = { kind: "flag", value: FLAG_READY };
const NOT_READY: StoreReply = { kind: "flag", value: FLAG_NOT_READY };
const NONE: StoreReply = { kind: "popped", before: "0" };

/**
 * The store: keys, queues and who waits for them, and what every request does to them (tcpstore-wire, sections 4 to 6).
 * No clock, no I/O, no randomness: the same requests in the same order give the same answers. Requests are atomic.
 * `src/peers/tcpstore.ts` has the same as a pure function over plain data.
 */
export class StoreTables {
  readonly keys: Map<ByteString, ByteString>;
  readonly queues: Map<ByteString, Fifo<ByteString>>;
  readonly waiters: Waiters;
  #bytes = 0;

  constructor(
    keys: Iterable<readonly [ByteString, ByteString]> = [],
    queues: Iterable<readonly [ByteString, readonly ByteString[]]> = [],
    waiters: Waiters = new Waiters(),
  ) {
    this.keys = new Map(keys);
    this.queues = new Map([...queues].map(([key, items]) => [key, new Fifo(items)]));
    this.waiters = waiters;
    for (const [key, value] of this.keys) this.#bytes += ENTRY_BYTES + key.length + value.length;
    for (const [key, items] of this.queues) {
      this.#bytes += ENTRY_BYTES + key.length;
      for (const item of items.toArray()) this.#bytes += ENTRY_BYTES + item.length;
    }
  }

  /** About how much memory keys, values, queues and waits take. */
  get bytes(): number {
    return this.#bytes + this.waiters.bytes;
  }

  /** At most by how much a request makes `bytes` grow. */
  growth(request: StoreRequest): number {
    switch (request.op) {
      case "set":
      case "append":
      case "queuePush":
        return 2 * ENTRY_BYTES + request.key.length + request.value.length;
      case "compareSet":
        return ENTRY_BYTES + request.key.length + request.desired.length;
      case "add":
        return ENTRY_BYTES + request.key.length + COUNTER_BYTES;
      case "barrier":
        return ENTRY_BYTES + request.key.length + COUNTER_BYTES + this.waiters.cost([request.key]);
      case "wait":
        return this.waiters.cost(request.keys);
      case "multiSet": {
        let bytes = ENTRY_BYTES * request.keys.length;
        for (const key of request.keys) bytes += key.length;
        for (const value of request.values) bytes += value.length;
        return bytes;
      }
      default:
        return 0;
    }
  }

  /** Serves one request. Answers, to whomever they go, are given to `answer` before this returns. */
  serve(from: ConnectionId, request: StoreRequest, answer: Answer): void {
    switch (request.op) {
      case "set":
        this.#put(request.key, request.value);
        return this.#came(request.key, answer);
      case "get":
        return answer(from, { kind: "value", value: this.keys.get(request.key) ?? "" });
      case "compareSet":
        return this.#compareSet(from, request, answer);
      case "add":
        return this.#add(from, request, answer);
      case "check":
        return answer(from, request.keys.every((key) => this.#has(key)) ? GO : NOT_READY);
      case "wait":
        return this.#wait(from, request.keys, answer);
      case "numKeys":
        return answer(from, integer(this.keys.size));
      case "deleteKey":
        return answer(from, integer(this.#delete(request.key) ? 1 : 0));
      case "append":
        this.#put(request.key, (this.keys.get(request.key) ?? "") + request.value);
        return this.#came(request.key, answer);
      case "multiGet":
        return answer(from, {
          kind: "values",
          values: request.keys.map((key) => this.keys.get(key) ?? ""),
        });
      case "multiSet":
        request.keys.forEach((key, i) => {
          this.#put(key, request.values[i]!);
          this.#came(key, answer);
        });
        return;
      case "cancelWait":
        this.waiters.drop(from);
        return answer(from, NOT_READY);
      case "ping":
        return answer(from, { kind: "nonce", value: request.nonce });
      case "queuePush":
        return this.#push(request.key, request.value, answer);
      case "queuePop":
        return answer(from, this.#pop(request.key));
      case "queueLen":
        return answer(from, integer(this.queues.get(request.key)?.length ?? 0));
      case "listKeys":
        return answer(from, { kind: "keys", keys: [...this.keys.keys()] });
      case "barrier":
        return this.#barrier(from, request, answer);
    }
  }

  /** The connection is gone: it waits no longer. What it stored stays. */
  disconnect(connection: ConnectionId): void {
    this.waiters.drop(connection);
  }

  #has(key: ByteString): boolean {
    return this.keys.has(key) || this.queues.has(key);
  }

  #put(key: ByteString, value: ByteString): void {
    const old = this.keys.get(key);
    this.#bytes += value.length - (old === undefined ? -ENTRY_BYTES - key.length : old.length);
    this.keys.set(key, value);
  }

  #delete(key: ByteString): boolean {
    const old = this.keys.get(key);
    if (old === undefined) return false;
    this.#bytes -= ENTRY_BYTES + key.length + old.length;
    return this.keys.delete(key);
  }

  #came(key: ByteString, answer: Answer): void {
    for (const connection of this.waiters.satisfyAll(key)) answer(connection, GO);
  }

  #wait(from: ConnectionId, keys: readonly ByteString[], answer: Answer): void {
    let missing: ByteString[] | undefined;
    for (const key of keys) if (!this.#has(key)) (missing ??= []).push(key);
    if (missing !== undefined) return this.waiters.register(from, missing);
    this.waiters.drop(from);
    answer(from, GO);
  }

  /** Wakes waiters exactly when the key exists afterwards; the original's two servers do so always, and never. */
  #compareSet(
    from: ConnectionId,
    { key, expected, desired }: StoreRequest & { op: "compareSet" },
    answer: Answer,
  ): void {
    const current = this.keys.get(key);
    // An absent key equals nothing but the empty value, and then the original answers with what was expected.
    if ((current ?? "") !== expected) {
      return answer(from, { kind: "value", value: current ?? expected });
    }
    this.#put(key, desired);
    answer(from, { kind: "value", value: desired });
    this.#came(key, answer);
  }

  #add(
    from: ConnectionId,
    { key, delta }: StoreRequest & { op: "add" },
    answer: Answer,
  ): void {
    const counter = this.#counter(from, key, answer);
    if (counter === undefined) return;
    const value = sum(counter, delta);
    this.#put(key, value);
    answer(from, { kind: "integer", value });
    this.#came(key, answer);
  }

  /** The counter stays after a barrier has opened, so its key opens at once when it is used again. */
  #barrier(
    from: ConnectionId,
    { key, worldSize }: StoreRequest & { op: "barrier" },
    answer: Answer,
  ): void {
    const counter = this.#counter(from, key, answer);
    if (counter === undefined) return;
    const arrived = sum(counter, "1");
    this.#put(key, arrived);
    if (!atLeast(arrived, worldSize)) return this.waiters.register(from, [key]);
    this.waiters.drop(from);
    answer(from, GO);
    this.#came(key, answer);
  }

  #counter(from: ConnectionId, key: ByteString, answer: Answer): string | undefined {
    const value = this.keys.get(key);
    const counter = counterOf(value);
    if (counter === undefined) {
      const shown = value!.length > 40 ? `${value!.slice(0, 40)}...` : value!;
      answer(from, {
        kind: "refused",
        code: "not-an-integer",
        message: `key ${JSON.stringify(key)} holds ${
          JSON.stringify(shown)
        }, which is not a 64-bit integer`,
      });
    }
    return counter;
  }

  #push(key: ByteString, item: ByteString, answer: Answer): void {
    const queue = this.queues.get(key);
    if (queue === undefined) {
      this.queues.set(key, new Fifo([item]));
      this.#bytes += ENTRY_BYTES + key.length;
    } else queue.push(item);
    this.#bytes += ENTRY_BYTES + item.length;
    for (const connection of this.waiters.satisfyOldest(key)) answer(connection, GO);
  }

  #pop(key: ByteString): StoreReply {
    const queue = this.queues.get(key);
    if (queue === undefined) return NONE;
    const before = String(queue.length);
    const item = queue.shift()!;
    this.#bytes -= ENTRY_BYTES + item.length;
    if (queue.length === 0) {
      this.queues.delete(key);
      this.#bytes -= ENTRY_BYTES + key.length;
    }
    return { kind: "popped", before, item };
  }
}

const integer = (value: number): StoreReply => ({ kind: "integer", value: String(value) });
