import { performance } from "node:perf_hooks";
import type { StoreReply, StoreRequest } from "../../protocol/tcpstore/mod.ts";
import { TcpStoreError, type TcpStoreErrorCode } from "./errors.ts";

/** A call as the conversation takes it: one request, or a wait and the request that it is for. */
export interface Call {
  readonly requests: readonly [StoreRequest] | readonly [StoreRequest, StoreRequest];
  /** For messages. */
  readonly operation: string;
  readonly keys: readonly string[];
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export type Phase = "queued" | "sent" | "done";

/** A call under way. */
export interface Slot {
  readonly call: Call;
  readonly since: number;
  readonly resolve: (reply: StoreReply | undefined) => void;
  readonly reject: (error: TcpStoreError) => void;
  phase: Phase;
  /** Which of the call's requests is on its way. */
  at: number;
  timer?: ReturnType<typeof setTimeout> | undefined;
  /** Why it was stopped, if it was. */
  why?: "timeout" | "aborted";
}

/** The call failed because the connection did. */
export function lost(slot: Slot, failure: TcpStoreError): TcpStoreError {
  return failed(
    slot,
    failure.server,
    failure.code,
    `${slot.call.operation}: ${failure.message}`,
    failure,
  );
}

/** The caller's signal fired. */
export function aborted(slot: Slot, server: string): TcpStoreError {
  const { operation, signal } = slot.call;
  return failed(slot, server, "aborted", `${operation} aborted`, signal?.reason);
}

/** The call's deadline passed: in a wait, before it was sent, or without a reply. */
export function late(slot: Slot, server: string): TcpStoreError {
  const ms = Math.round(performance.now() - slot.since);
  const { operation, requests } = slot.call;
  const waits = requests.length === 2 || operation === "wait" || operation === "barrier";
  if (waits && slot.at === 0 && slot.phase !== "queued") {
    return failed(
      slot,
      server,
      "wait-timeout",
      `${operation} timeout after ${ms} ms, ${named(slot)}`,
    );
  }
  const what = slot.phase === "queued"
    ? `was not sent within ${ms} ms: it stood behind a wait of the same client, or the server does not read`
    : `was not answered within ${ms} ms`;
  return failed(slot, server, "deadline", `${operation} ${what}, ${named(slot)}`);
}

function failed(
  slot: Slot,
  server: string,
  code: TcpStoreErrorCode,
  message: string,
  cause?: unknown,
): TcpStoreError {
  return new TcpStoreError(code, message, {
    server,
    operation: slot.call.operation,
    keys: slot.call.keys.slice(0, SHOWN),
    waitedMs: Math.round(performance.now() - slot.since),
    sent: slot.phase !== "queued",
    cause,
  });
}

/** So many keys are named in a message. */
const SHOWN = 8;

function named({ call: { keys } }: Slot): string {
  if (keys.length === 0) return "no keys";
  const shown = keys.slice(0, SHOWN).map((key) => JSON.stringify(key)).join(", ");
  return `keys: ${shown}${keys.length > SHOWN ? ` and ${keys.length - SHOWN} more` : ""}`;
}
