import type { ByteString } from "../../protocol/tcpstore/mod.ts";

/** Who speaks: a number in the server, a name in a model. */
export type ConnectionId = number | string;

/** Rough cost of one key of one wait beside the key's bytes: places in two sets, and a line if it is the first. */
const WAIT_BYTES = 256;

/**
 * Who waits for which keys. A wait is a latch per key: a key that came counts, also when it goes again before the
 * others come (tcpstore-wire, section 5). A connection has one wait at a time; waiters of a key stand in line.
 */
export class Waiters {
  readonly #line = new Map<ByteString, Set<ConnectionId>>();
  readonly #pending = new Map<ConnectionId, Set<ByteString>>();
  #bytes = 0;

  /** How many connections wait. */
  get size(): number {
    return this.#pending.size;
  }

  /** About how much memory the waits take. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What a wait for these keys adds to `bytes`, if all are missing. */
  cost(keys: readonly ByteString[]): number {
    let bytes = 0;
    for (const key of keys) bytes += WAIT_BYTES + key.length;
    return bytes;
  }

  has(connection: ConnectionId): boolean {
    return this.#pending.has(connection);
  }

  /** The connection waits for these keys, and for nothing that it waited for before. */
  register(connection: ConnectionId, missing: Iterable<ByteString>): void {
    this.drop(connection);
    const keys = new Set(missing);
    this.#pending.set(connection, keys);
    for (const key of keys) this.#enter(key, connection);
  }

  /** The connection waits no longer. */
  drop(connection: ConnectionId): void {
    const keys = this.#pending.get(connection);
    if (keys === undefined) return;
    this.#pending.delete(connection);
    for (const key of keys) this.#leave(key, connection);
  }

  /** The key came: everybody in its line waits for one key less. Answers who waits for nothing more, in order. */
  satisfyAll(key: ByteString): readonly ConnectionId[] {
    const line = this.#line.get(key);
    if (line === undefined) return NOBODY;
    if (line.size === 1) return this.satisfyOldest(key);
    return [...line].filter((connection) => this.#satisfy(key, connection));
  }

  /** The key came for one only, the first in its line. */
  satisfyOldest(key: ByteString): readonly ConnectionId[] {
    const line = this.#line.get(key);
    if (line === undefined) return NOBODY;
    const [oldest] = line;
    return this.#satisfy(key, oldest!) ? [oldest!] : NOBODY;
  }

  /** The lines, as data. */
  toJSON(): [ByteString, ConnectionId[]][] {
    return [...this.#line].map(([key, line]) => [key, [...line]]);
  }

  /** Waiters with these lines. */
  static from(lines: Iterable<readonly [ByteString, readonly ConnectionId[]]>): Waiters {
    const waiters = new Waiters();
    for (const [key, line] of lines) {
      for (const connection of line) {
        waiters.#enter(key, connection);
        const keys = waiters.#pending.get(connection);
        if (keys === undefined) waiters.#pending.set(connection, new Set([key]));
        else keys.add(key);
      }
    }
    return waiters;
  }

  #satisfy(key: ByteString, connection: ConnectionId): boolean {
    this.#leave(key, connection);
    const keys = this.#pending.get(connection)!;
    keys.delete(key);
    if (keys.size > 0) return false;
    this.#pending.delete(connection);
    return true;
  }

  #enter(key: ByteString, connection: ConnectionId): void {
    const line = this.#line.get(key);
    if (line === undefined) this.#line.set(key, new Set([connection]));
    else line.add(connection);
    this.#bytes += WAIT_BYTES + key.length;
  }

  #leave(key: ByteString, connection: ConnectionId): void {
    const line = this.#line.get(key)!;
    this.#bytes -= WAIT_BYTES + key.length;
    line.delete(connection);
    if (line.size === 0) this.#line.delete(key);
  }
}

const NOBODY: readonly ConnectionId[] = [];
