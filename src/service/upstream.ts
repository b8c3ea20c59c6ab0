/**
 * The orchestrator of a cluster of *original* external-load-balancer servers, through their own HTTP API (wire spec, 7.1): the same request
 * to all old ranks at once, one deadline for the whole, and an answer that does not claim more than the ranks said.
 *
 * The original has no abort over HTTP. When a rank fails or is silent, the others find out by themselves, at the latest by
 * their own time limits, and nobody can take the operation back; this says so instead of guessing.
 */
import { patientRequest } from "./request.ts";

export interface UpstreamRequest {
  /** The servers of all old ranks, rank 0 first. */
  readonly ranks: readonly string[];
  readonly target: number;
  /** For the whole (default 20 minutes: the original's own limits add up to that). */
  readonly deadlineMs?: number;
  readonly drainTimeout?: number;
  /** Newest releases know operations by name. */
  readonly operation?: string;
  readonly say?: (text: string) => void;
}

export interface UpstreamRank {
  readonly rank: number;
  readonly url: string;
  readonly answer: "completed" | "failed" | "refused" | "silent" | "unreachable";
  readonly status: number | null;
  readonly text: string;
}

export interface UpstreamReport {
  readonly outcome: "completed" | "failed" | "inDoubt";
  readonly target: number;
  readonly ranks: readonly UpstreamRank[];
  /** The first rank that did not complete, in the order in which they answered. */
  readonly firstError: UpstreamRank | null;
  /** Ranks that left, when it completed. */
  readonly safeToDelete: readonly number[];
  readonly sentence: string;
}

const DEADLINE_MS = 20 * 60_000;

/** Asks every old rank to scale, and waits for all of them. Never rejects. */
export async function scaleUpstream(request: UpstreamRequest): Promise<UpstreamReport> {
  const { ranks: urls, target, deadlineMs = DEADLINE_MS, say = () => {} } = request;
  const body = JSON.stringify({
    new_data_parallel_size: target,
    ...(request.drainTimeout === undefined ? {} : { drain_timeout: request.drainTimeout }),
    ...(request.operation === undefined ? {} : { operation_id: request.operation }),
  });
  const signal = AbortSignal.timeout(deadlineMs);
  let firstError: UpstreamRank | null = null;
  const ranks = await Promise.all(urls.map(async (url, rank) => {
    const said = await ask(rank, url, body, signal);
    say(`rank ${rank}: ${said.answer}${said.text === "" ? "" : ` (${said.text})`}`);
    if (said.answer !== "completed") firstError ??= said;
    return said;
  }));
  const all = (answer: UpstreamRank["answer"]) => ranks.every((r) => r.answer === answer);
  const some = (answer: UpstreamRank["answer"]) => ranks.some((r) => r.answer === answer);
  const outcome = all("completed")
    ? "completed"
    // Nobody completed and everybody answered: all of them know that it failed.
    : !some("completed") && !some("silent") && !some("unreachable")
    ? "failed"
    : "inDoubt";
  const safeToDelete = outcome === "completed"
    ? urls.flatMap((_, rank) => rank >= target ? [rank] : [])
    : [];
  return {
    outcome,
    target,
    ranks,
    firstError,
    safeToDelete,
    sentence: sentenceOf(outcome, target, ranks, firstError, safeToDelete),
  };
}

async function ask(
  rank: number,
  url: string,
  body: string,
  signal: AbortSignal,
): Promise<UpstreamRank> {
  try {
    const { status, text: said } = await patientRequest({
      method: "POST",
      url: new URL("/scale_elastic_ep", url),
      headers: { "Content-Type": "application/json" },
      body,
      signal,
    });
    const text = wordsOf(said);
    if (status === 200) return { rank, url, answer: "completed", status, text: "" };
    const answer = status === 400 || status === 409 ? "refused" : "failed";
    return { rank, url, answer, status, text };
  } catch (error) {
    const { message, code = "" } = error as Error & { code?: string };
    const cause = message || code;
    const answer = signal.aborted ? "silent" : "unreachable";
    return { rank, url, answer, status: null, text: cause };
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

function sentenceOf(
  outcome: UpstreamReport["outcome"],
  target: number,
  ranks: readonly UpstreamRank[],
  first: UpstreamRank | null,
  safeToDelete: readonly number[],
): string {
  if (outcome === "completed") {
    const leavers = safeToDelete.length === 0
      ? ""
      : ` Ranks ${safeToDelete.join(", ")} left and can be deleted.`;
    return `Scaled to ${target} data parallel engines.${leavers}`;
  }
  const why = first === null ? "" : ` Rank ${first.rank} ${first.answer}: ${first.text}.`;
  const done = ranks.filter((r) => r.answer === "completed").map((r) => r.rank);
  return outcome === "failed"
    ? `Scaling to ${target} failed on every rank.${why} Original ranks that prepared cannot abandon it: restart them before the next attempt.`
    : `Nobody can say in how many ranks the cluster serves.${why} ${
      done.length === 0 ? "No rank" : `Ranks ${done.join(", ")}`
    } completed. Restart the ranks that did not.`;
}
