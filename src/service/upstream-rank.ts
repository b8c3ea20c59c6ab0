/**
 * One server of an external-load-balancer cluster as its orchestrator sees it: ask it to scale, and find out how it ended, also when the
 * connection was lost meanwhile. A server of Muster knows operations by their names, so that a coordinator that came back can be
 * asked; an original one that is lost is lost.
 */
import type { OperationRecord } from "../view/scaling.ts";
import { patientRequest } from "./request.ts";

export interface UpstreamRank {
  readonly rank: number;
  readonly url: string;
  /** `inDoubt`: it says itself that it cannot say. */
  readonly answer: "completed" | "failed" | "refused" | "inDoubt" | "silent" | "unreachable";
  readonly status: number | null;
  readonly text: string;
}

export interface RankRequest {
  readonly rank: number;
  readonly url: string;
  readonly body: string;
  readonly operation: string;
  readonly token: string | undefined;
  /** The deadline of the whole. */
  readonly signal: AbortSignal;
  /** So long is waited for a server to come back whose connection was lost. */
  readonly returnMs: number;
}

type Said = Pick<UpstreamRank, "answer" | "status" | "text">;

const LOOK_MS = 250;

/** Asks it to scale, and waits until it says how that ended. Never rejects. */
export async function askRank(request: RankRequest): Promise<UpstreamRank> {
  const { rank, url, signal } = request;
  const last = await attempt(request);
  // It cannot say now; it may be able to before the time is over.
  const said = last.answer === "inDoubt" && !signal.aborted ? await follow(request, last) : last;
  return { rank, url, ...said };
}

/** Asks it to end the operation. An original server has no such path, and says so, which is as well. */
export async function abortRank(request: RankRequest, reason: string): Promise<void> {
  const { operation } = request;
  await send(request, "POST", `/operations/${operation}/abort`, JSON.stringify({ reason }))
    .catch(() => {});
}

async function attempt(request: RankRequest): Promise<Said> {
  try {
    const { status, text } = await send(request, "POST", "/scale_elastic_ep", request.body);
    return saidBy(status, text);
  } catch (error) {
    const lost = failureOf(error, request.signal);
    const asked = (error as { code?: string }).code !== "ECONNREFUSED";
    return lost.answer === "unreachable" && asked ? await follow(request, lost) : lost;
  }
}

/** Asks how the operation stands until it has ended, the server stays away for too long, or the time is over. */
async function follow(request: RankRequest, lost: Said): Promise<Said> {
  const { operation, signal, returnMs } = request;
  let answeredAt = Date.now();
  let last = lost;
  while (Date.now() - answeredAt < returnMs) {
    try {
      const { status, text } = await send(request, "GET", `/operations/${operation}`);
      const record = status === 200 ? recordIn(text) : undefined;
      // Not one of Muster's: it does not know operations.
      if (record === undefined && !(status === 404 && text.includes("no such operation"))) {
        return lost;
      }
      answeredAt = Date.now();
      // The coordinator died before it wrote that it was asked.
      if (record === undefined) return await attempt(request);
      if (record.phase === "completed") return { answer: "completed", status, text: "" };
      if (record.phase === "failed") return { answer: "failed", status, text: reasonOf(record) };
      if (record.phase === "inDoubt") last = { answer: "inDoubt", status, text: reasonOf(record) };
    } catch (error) {
      if (signal.aborted) return last === lost ? failureOf(error, signal) : last;
    }
    await pause(LOOK_MS, signal);
    if (signal.aborted) {
      return last === lost ? { answer: "silent", status: null, text: "the time is over" } : last;
    }
  }
  return last;
}

function send(
  { url, token, signal }: RankRequest,
  method: "GET" | "POST",
  path: string,
  body?: string,
): Promise<{ readonly status: number; readonly text: string }> {
  return patientRequest({
    method,
    url: new URL(path, url),
    headers: {
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body }),
    signal,
  });
}

const failureOf = (error: unknown, signal: AbortSignal): Said => {
  const { message, code = "" } = error as Error & { code?: string };
  return {
    answer: signal.aborted ? "silent" : "unreachable",
    status: null,
    text: message || code,
  };
};

function saidBy(status: number, text: string): Said {
  if (status === 200) return { answer: "completed", status, text: "" };
  if (status === 400 || status === 409) return { answer: "refused", status, text: wordsOf(text) };
  const record = recordIn(text);
  if (record === undefined) return { answer: "failed", status, text: wordsOf(text) };
  const answer = record.phase === "inDoubt" ? "inDoubt" : "failed";
  return { answer, status, text: reasonOf(record) };
}

const reasonOf = ({ firstError }: OperationRecord): string => firstError?.text ?? "";

/** The record of an operation as a server of Muster tells it, by itself or with the answer of a request. */
function recordIn(text: string): OperationRecord | undefined {
  try {
    const body = JSON.parse(text) as { phase?: unknown; operation?: unknown } | null;
    const record = typeof body?.operation === "object" ? body.operation : body;
    const { operation, phase } = (record ?? {}) as { operation?: unknown; phase?: unknown };
    return typeof operation === "string" && typeof phase === "string"
      ? record as OperationRecord
      : undefined;
  } catch {
    return undefined;
  }
}

function wordsOf(text: string): string {
  try {
    const body = JSON.parse(text) as { detail?: unknown; error?: unknown; message?: unknown };
    const said = body.detail ?? body.error ?? body.message;
    if (said !== undefined) return typeof said === "string" ? said : JSON.stringify(said);
  } catch { /* as it came */ }
  return text.slice(0, 300);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
  });
}
