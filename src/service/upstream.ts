/**
 * The orchestrator of a cluster of external-load-balancer servers, original ones or Muster's, through the HTTP API that they share (wire
 * spec, 7.1): the same request to all old ranks at once, one deadline for the whole, and an answer that does not claim more than
 * the ranks said.
 *
 * The original has no abort over HTTP. When a rank of an original cluster fails or is silent, the others find out by themselves, at the
 * latest by their own time limits, and nobody can take the operation back; this says so instead of guessing. Servers of Muster are asked
 * to abort, and go by what the ranks decide.
 */
import { randomUUID } from "node:crypto";
import { abortRank, askRank, type RankRequest, type UpstreamRank } from "./upstream-rank.ts";

export type { UpstreamRank } from "./upstream-rank.ts";

export interface UpstreamRequest {
  /** The servers of all old ranks, rank 0 first. */
  readonly ranks: readonly string[];
  readonly target: number;
  /** For the whole (default 20 minutes: the original's own limits add up to that). */
  readonly deadlineMs?: number;
  readonly drainTimeout?: number;
  /** Newest releases and Muster know operations by name; drawn by default. */
  readonly operation?: string;
  /** Of servers that need one. */
  readonly token?: string;
  /** So long is waited for a server of Muster to come back whose connection was lost (default 30 s). */
  readonly returnMs?: number;
  readonly say?: (text: string) => void;
}

export interface UpstreamReport {
  readonly outcome: "completed" | "failed" | "inDoubt";
  readonly operation: string;
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
  const { operation = randomUUID(), token, returnMs = 30_000 } = request;
  const body = JSON.stringify({
    new_data_parallel_size: target,
    ...(request.drainTimeout === undefined ? {} : { drain_timeout: request.drainTimeout }),
    operation_id: operation,
  });
  const signal = AbortSignal.timeout(deadlineMs);
  const open = new Map(urls.map((url, rank): [number, RankRequest] => [
    rank,
    { rank, url, body, operation, token, signal, returnMs },
  ]));
  let firstError: UpstreamRank | null = null;
  const ranks = await Promise.all([...open.values()].map(async (of) => {
    const said = await askRank(of);
    open.delete(of.rank);
    say(`rank ${of.rank}: ${said.answer}${said.text === "" ? "" : ` (${said.text})`}`);
    if (said.answer !== "completed" && firstError === null) {
      firstError = said;
      // The others need not wait for it until their own time limits.
      const reason = `rank ${of.rank} ${said.answer}${said.text === "" ? "" : `: ${said.text}`}`;
      for (const other of open.values()) void abortRank(other, reason);
    }
    return said;
  }));
  const all = (answer: UpstreamRank["answer"]) => ranks.every((r) => r.answer === answer);
  const some = (...answers: UpstreamRank["answer"][]) =>
    ranks.some((r) => answers.includes(r.answer));
  const outcome = all("completed")
    ? "completed"
    // Nobody completed and everybody answered: all of them know that it failed.
    : !some("completed", "inDoubt", "silent", "unreachable")
    ? "failed"
    : "inDoubt";
  const safeToDelete = outcome === "completed"
    ? urls.flatMap((_, rank) => rank >= target ? [rank] : [])
    : [];
  return {
    outcome,
    operation,
    target,
    ranks,
    firstError,
    safeToDelete,
    sentence: sentenceOf(outcome, target, ranks, firstError, safeToDelete),
  };
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
    ? `Scaling to ${target} failed on every rank.${why} Ranks that prepared cannot abandon it: restart them before the next attempt.`
    : `Nobody can say in how many ranks the cluster serves.${why} ${
      done.length === 0 ? "No rank" : `Ranks ${done.join(", ")}`
    } completed. Restart the ranks that did not.`;
}
