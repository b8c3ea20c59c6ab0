/** Calls that all ranks are to answer together, as programs make them: pause and resume (wire spec, sections 4 and 7). */
import { randomUUID } from "node:crypto";
import type { Effect, GroupCallOutcome, Resource, Unanswered } from "../machines/mod.ts";
import { ids } from "../machines/mod.ts";
import type { EngineRequest } from "../machines/effects/scaling.ts";
import { rankList } from "../view/mod.ts";
import type { Host } from "./host.ts";

/**
 * Ranks did not do what all of them were asked. `silent` are those that answer nothing at all: pause and resume are collective, so
 * the others may only be waiting for them.
 */
export class GroupCallError extends Error {
  readonly code = "rank-unanswered";
  readonly unanswered: readonly Unanswered[];
  readonly silent: readonly number[];
  constructor(what: string, outcome: GroupCallOutcome, silent: readonly number[]) {
    const { unanswered } = outcome;
    const waiting = unanswered.filter((u) => u.late && !silent.includes(u.rank)).map((u) => u.rank);
    const refusing = unanswered.filter((u) => !u.late);
    super([
      `${what} did not happen everywhere.`,
      ...(silent.length === 0 ? [] : [`Silent: ${rankList(silent)}.`]),
      ...(waiting.length === 0 ? [] : [`Alive and waiting for the others: ${rankList(waiting)}.`]),
      ...refusing.map((u) => `Rank ${u.rank} refused: ${u.text}.`),
      "Look at the ranks that are named first; asking again is harmless.",
    ].join(" "));
    this.name = "GroupCallError";
    this.unanswered = unanswered;
    this.silent = silent;
  }
}

export interface GroupCallOptions {
  /** For every rank's answer, in milliseconds (default one minute). A collective waits for its slowest rank. */
  readonly deadlineMs?: number;
}

type ClusterHost = Pick<Host<Effect, Resource>, "submit" | "subscribe">;

/**
 * Asks these ranks for the same at once, and tells what those do who did not answer.
 *
 * @throws GroupCallError that names the ranks which did not do it
 */
export async function callAll(
  host: ClusterHost,
  ranks: readonly number[],
  what: string,
  request: EngineRequest,
  { deadlineMs = 60_000 }: GroupCallOptions,
): Promise<void> {
  const ended = await ask(host, ranks, request, deadlineMs);
  if (ended.unanswered.length === 0) return;
  const late = ended.unanswered.filter((u) => u.late).map((u) => u.rank);
  const alive = { method: "is_scheduler_paused" } as const;
  const { unanswered } = await ask(host, late, alive, Math.min(deadlineMs, 2000));
  throw new GroupCallError(what, ended, unanswered.map((u) => u.rank));
}

/** Asks ranks at once, and resolves when each has answered or is late. */
async function ask(
  host: ClusterHost,
  ranks: readonly number[],
  request: EngineRequest,
  deadlineMs: number,
): Promise<GroupCallOutcome> {
  const id = randomUUID();
  const outcome = new Promise<GroupCallOutcome>((resolve) => {
    const off = host.subscribe(({ transitions }) => {
      for (const { instance, event } of transitions) {
        if (instance !== ids.calls || event["from"] !== `group/${id}`) continue;
        off();
        resolve(event["output"] as GroupCallOutcome);
      }
    });
  });
  await host.submit(ids.calls, { type: "callAll", id, ranks, request, deadlineMs });
  return await outcome;
}
