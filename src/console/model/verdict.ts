import {
  type ClusterStatus,
  countRanks,
  countsText,
  duration,
  rankList,
  type RankStatus,
} from "../../view/mod.ts";

/** Nothing is wrong with a rank that serves, comes or goes. */
const IN_ORDER = new Set<RankStatus["state"]>(["ready", "joining", "leaving", "left", "stopped"]);

/** How bad it is, for colour and for the screen reader's words. */
export type Level = "good" | "working" | "attention" | "bad" | "unknown";

/** The state of a cluster in words: what somebody must know in the first second. */
export interface Verdict {
  readonly level: Level;
  /** A word or two: `Failed`, `Forming`, `Serving`. */
  readonly title: string;
  /** One sentence. */
  readonly sentence: string;
  /** What to do, where something is to be done. */
  readonly remedy?: string;
  /** Further facts, one sentence each. */
  readonly also: readonly string[];
  /** The record where it went wrong. */
  readonly seq?: number;
}

/** What a status means, seen at a moment (wall-clock milliseconds). */
export function verdictOf(status: ClusterStatus, now: number): Verdict {
  const also = remarksOf(status);
  if (status.failure !== null) {
    const { sentence, remedy, seq } = status.failure;
    return { level: "bad", title: "Failed", sentence, remedy, also, seq };
  }
  const waited = duration(Math.max(0, now - status.startedAt));
  switch (status.phase) {
    case "binding":
      if (status.size === 0) {
        return { level: "unknown", title: "Empty", sentence: "Nothing is recorded yet.", also };
      }
      return {
        level: "working",
        title: "Starting",
        sentence: `Binding sockets since ${waited}.`,
        also,
      };
    case "forming":
      return {
        level: "working",
        title: "Forming",
        sentence: `${status.ready} of ${status.size} ranks are ready after ${waited}; ${
          waitText(status)
        }.`,
        also,
      };
    case "regrouping":
      return { level: "working", title: "Restarting", sentence: "All engines start anew.", also };
    case "formed": {
      const silent = status.ranks.filter((r) => r.state === "adopting").map((r) => r.rank);
      const bad = status.ranks.filter((r) => !IN_ORDER.has(r.state) && r.state !== "adopting");
      const since = duration(Math.max(0, now - status.since));
      if (bad.length === 0 && silent.length > 0) {
        return {
          level: "working",
          title: "Adopting",
          sentence: `The coordinator came back, and waits for an answer of ${rankList(silent)}.`,
          also,
        };
      }
      const { ready, joining, leaving } = countRanks(status.ranks);
      if (bad.length === 0 && joining + leaving > 0) {
        return {
          level: "working",
          title: "Scaling",
          sentence: `${countsText(status.ranks)}.`,
          also,
        };
      }
      if (bad.length === 0) {
        return {
          level: also.length > 0 ? "attention" : "good",
          title: "Serving",
          sentence: `All ${ready} ranks are ready since ${since}.`,
          also,
        };
      }
      const which = `${rankList(bad.map((r) => r.rank))}: ${bad[0]!.state}`;
      return { level: "bad", title: "Degraded", sentence: `${which}.`, also };
    }
    case "stopping":
      return {
        level: "working",
        title: "Stopping",
        sentence: "Processes are being stopped.",
        also,
      };
    case "stopped":
      return {
        level: "unknown",
        title: "Stopped",
        sentence: "The cluster was stopped on request.",
        also,
      };
    default:
      return { level: "bad", title: "Failed", sentence: "The start-up failed.", also };
  }
}

/** `waiting for rank 3 (its HELLO) and ranks 5 and 7 (their READY)`. */
function waitText({ ranks }: ClusterStatus): string {
  const of = (state: RankStatus["state"]) =>
    ranks.filter((r) => r.state === state).map((r) => r.rank);
  const parts = [
    ...waitPart(of("awaited"), "HELLO"),
    ...waitPart(of("connected"), "READY"),
  ];
  return parts.length === 0 ? "waiting for nobody" : `waiting for ${parts.join(" and ")}`;
}

function waitPart(ranks: readonly number[], message: string): readonly string[] {
  if (ranks.length === 0) return [];
  return [`${message} of ${rankList(ranks.slice(0, 12))}${ranks.length > 12 ? " and more" : ""}`];
}

/** What one rank waits for, in words; empty when it waits for nothing. */
export function waitOf(rank: RankStatus): string {
  switch (rank.state) {
    case "awaited":
      return "its HELLO";
    case "connected":
      return "its READY (it loads the model)";
    case "adopting":
      return "its answer to a coordinator that came back";
    case "late":
      return "nothing any more: its deadline passed";
    case "lost":
      return "a new life of its process";
    case "restarted":
      return "a restart of all ranks";
    default:
      return "";
  }
}

const NOTE_WORDS: Readonly<Record<string, string>> = {
  unexpected: "that no state knows",
  refused: "that every guard refused",
  failed: "whose action failed",
};

/** Counts that must not be silent: strangers, refusals, takeovers, events nobody took. */
function remarksOf(status: ClusterStatus): readonly string[] {
  const found: string[] = [];
  for (const { kind, count, sample } of status.strangers) {
    found.push(`${count} × a stranger on the handshake socket (${kind}: ${sample}).`);
  }
  for (const rank of status.ranks) {
    if (rank.refused) {
      found.push(`Rank ${rank.rank} was refused ${rank.refused.count} × (${rank.refused.reason}).`);
    }
    if (rank.takeovers > 0) {
      found.push(`Rank ${rank.rank} started anew ${rank.takeovers} × before it was ready.`);
    }
  }
  for (const { kind, what, count } of status.notes) {
    const words = NOTE_WORDS[kind];
    if (words) found.push(`${count} × ${what}, an event ${words}.`);
  }
  return found;
}
