import {
  REQUEST_LIMITS,
  type StoreLimits,
  type StoreProtocolCode,
} from "../../protocol/tcpstore/mod.ts";

/** How a store server listens and what it takes. Everything may be left out. */
export interface StoreServerOptions {
  /** Address to bind. Default: every address, IPv6 and IPv4 (IPv4 alone where there is no IPv6). */
  readonly host?: string;
  /** Port to bind; 0, the default, takes a free one. */
  readonly port?: number;
  readonly limits?: Partial<StoreServerLimits>;
  /** Is told each connection that was closed for what it did. Not called for those that close by themselves. */
  readonly onStranger?: (stranger: StoreStranger) => void;
}

/** What bounds memory and patience. Bytes, milliseconds; 0 milliseconds is for ever. */
export interface StoreServerLimits extends StoreLimits {
  /** Most connections at a time. Keep it below the process's limit of open files, which else ends connections uncounted. */
  readonly maxConnections: number;
  /** Most bytes that one connection may have outstanding: unfinished requests and replies that it did not read. */
  readonly maxConnectionBytes: number;
  /** The same for all connections together. Beyond it, those that hold most are closed. */
  readonly maxBufferedBytes: number;
  /** Most bytes of keys, values, queues and waits. A request that would exceed it closes its connection. */
  readonly maxStoreBytes: number;
  /** How long a connection may take for its opening VALIDATE. */
  readonly handshakeMs: number;
  /** How long a connection may take for one request, from its first byte to its last. */
  readonly requestMs: number;
  /** How long a connection may leave replies unread. */
  readonly drainMs: number;
}

const MIB = 1024 * 1024;

/** The limits of a server that is not told otherwise. */
export const SERVER_LIMITS: StoreServerLimits = {
  ...REQUEST_LIMITS,
  maxConnections: 65_536,
  maxConnectionBytes: 128 * MIB,
  maxBufferedBytes: 512 * MIB,
  maxStoreBytes: 1024 * MIB,
  handshakeMs: 60_000,
  requestMs: 300_000,
  drainMs: 300_000,
};

/** Why a server closed a connection, or did not take it. */
export type StoreCloseCode =
  | StoreProtocolCode
  /** ADD or BARRIER on a value that is no number. */
  | "not-an-integer"
  /** No VALIDATE, no whole request, or unread replies, for too long. */
  | "handshake-deadline"
  | "request-deadline"
  | "drain-deadline"
  /** Too many bytes outstanding: for one connection, or it held most when all together had too many. */
  | "too-much-outstanding"
  /** The store itself is at its limit. */
  | "store-full"
  /** The other side closed in the middle of a request, which was dropped. */
  | "cut-short"
  /** There are `maxConnections` already. */
  | "too-many-connections"
  /** The operating system gave no more sockets. */
  | "accept-failed";

/** A connection that was closed for what it did. */
export interface StoreStranger {
  readonly code: StoreCloseCode;
  readonly message: string;
  /** `address:port` of the other side, or `unknown`. */
  readonly remote: string;
}

/** What a server did and holds. */
export interface StoreServerStats {
  /** Open connections, all ever accepted, and those with a pending wait. */
  readonly connections: number;
  readonly accepted: number;
  readonly waiting: number;
  /** Requests served. */
  readonly requests: number;
  readonly keys: number;
  /** About how many bytes keys, values, queues and waits take. */
  readonly storeBytes: number;
  /** Bytes of unfinished requests and unread replies, of all connections. */
  readonly bufferedBytes: number;
  /** How many connections were closed for which reason. */
  readonly closed: Readonly<Partial<Record<StoreCloseCode, number>>>;
}
