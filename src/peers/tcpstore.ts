/**
 * The TCPStore as a pure function over plain data, for models and properties. The server (`drivers/tcpstore`) runs the
 * same `StoreTables` without taking them apart after each request.
 * @module
 */
import type { ByteString, StoreRequest } from "../protocol/tcpstore/mod.ts";
import { type StoreAnswer, StoreTables } from "./tcpstore/tables.ts";
import { type ConnectionId, Waiters } from "./tcpstore/waiters.ts";

export {
  type Answer,
  type StoreAnswer,
  type StoreRefusal,
  StoreTables,
} from "./tcpstore/tables.ts";
export { type ConnectionId, Waiters } from "./tcpstore/waiters.ts";

/** A store as JSON. Keys are sorted, so equal stores are equal text. */
export interface StoreState {
  readonly keys: { readonly [key: ByteString]: ByteString };
  /** Queues that are not empty. */
  readonly queues: { readonly [key: ByteString]: readonly ByteString[] };
  /** Who still waits for a key, the longest waiting first. */
  readonly waiters: { readonly [key: ByteString]: readonly ConnectionId[] };
}

/** What somebody is told. */
export interface Addressed {
  readonly to: ConnectionId;
  readonly answer: StoreAnswer;
}

/** A store with nothing in it. */
export const EMPTY_STORE: StoreState = { keys: {}, queues: {}, waiters: {} };

/**
 * Serves one request: the store afterwards, and the answers in the order in which they are given. The given store is
 * unchanged.
 */
export function serve(
  store: StoreState,
  from: ConnectionId,
  request: StoreRequest,
): [store: StoreState, answers: readonly Addressed[]] {
  const tables = tablesOf(store);
  const answers: Addressed[] = [];
  tables.serve(from, request, (to, answer) => answers.push({ to, answer }));
  return [stateOf(tables), answers];
}

/** The connection is gone: it waits no longer. */
export function disconnect(store: StoreState, connection: ConnectionId): StoreState {
  const tables = tablesOf(store);
  tables.disconnect(connection);
  return stateOf(tables);
}

/** Running tables with this content. */
export function tablesOf(store: StoreState): StoreTables {
  return new StoreTables(
    Object.entries(store.keys),
    Object.entries(store.queues),
    Waiters.from(Object.entries(store.waiters)),
  );
}

/** The content of running tables, as data. */
export function stateOf(tables: StoreTables): StoreState {
  return {
    keys: sorted(tables.keys),
    queues: sorted([...tables.queues].map(([key, items]) => [key, items.toArray()])),
    waiters: sorted(tables.waiters.toJSON()),
  };
}

function sorted<T>(entries: Iterable<readonly [string, T]>): { [key: string]: T } {
  return Object.fromEntries([...entries].sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0));
}
