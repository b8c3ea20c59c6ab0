/** What can go wrong for a store client. Codes are stable. */
export type TcpStoreErrorCode =
  /** Nobody could be reached before the deadline, or at the first attempt if it does not retry. */
  | "connect-failed"
  /** Somebody listens there, and does not answer as a TCPStore. */
  | "not-a-store"
  /** The connection ended: by the other side, or by `close`. It is never opened again. */
  | "closed"
  /** A reply did not come in time. */
  | "deadline"
  /** The keys that were waited for did not come in time. */
  | "wait-timeout"
  /** The caller's signal fired. */
  | "aborted"
  /** The other side broke the protocol. */
  | "bad-reply"
  /** Another client took the item first, or there was none. */
  | "queue-empty"
  /** A key, a value or a number that the protocol or the server does not take; nothing was sent. */
  | "refused";

/** More about a failure. */
export interface TcpStoreErrorDetail {
  /** `host:port` of the server. */
  readonly server: string;
  /** What was asked, if something was. */
  readonly operation?: string;
  /** The keys concerned, as the caller wrote them; the first few of many. */
  readonly keys?: readonly string[];
  /** How long was really waited. */
  readonly waitedMs?: number;
  /** Whether the request had left: if it had, and it changes something, that may have happened. */
  readonly sent?: boolean;
  readonly cause?: unknown;
}

/** A failed operation of a store client, with what was asked of whom, how long was waited, and whether it had left. */
export class TcpStoreError extends Error implements TcpStoreErrorDetail {
  override readonly name = "TcpStoreError";
  readonly code: TcpStoreErrorCode;
  readonly server: string;
  readonly operation?: string;
  readonly keys?: readonly string[];
  readonly waitedMs?: number;
  readonly sent?: boolean;

  constructor(code: TcpStoreErrorCode, message: string, detail: TcpStoreErrorDetail) {
    super(message, detail.cause === undefined ? {} : { cause: detail.cause });
    this.code = code;
    this.server = detail.server;
    if (detail.operation !== undefined) this.operation = detail.operation;
    if (detail.keys !== undefined) this.keys = detail.keys;
    if (detail.waitedMs !== undefined) this.waitedMs = detail.waitedMs;
    if (detail.sent !== undefined) this.sent = detail.sent;
  }
}
