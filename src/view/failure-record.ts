/** One failure, told so that somebody who was not there knows what happened and what to do. */
import { rankOf } from "../kernel/mod.ts";
import type { Failure, FailureCode, RunConfiguration } from "../machines/mod.ts";
import { FAILURES } from "./failures.ts";
import { refusalText } from "./refusal-text.ts";
import type { ClusterStatus, ProcessStatus, RankStatus } from "./status.ts";
import { upstreamText } from "./upstream-text.ts";
import { duration, exitText, rankList } from "./words.ts";

export interface FailureRecord {
  /** Stable; see the table of failures. */
  readonly code: FailureCode;
  /** The rank it is about, where it is about one. */
  readonly rank: number | null;
  /** What that rank was doing: `connect`, `load`, `serve`, or `adopt` after a restart of the coordinator. */
  readonly phase: string | null;
  /** One sentence: which, when, in what phase. */
  readonly sentence: string;
  /** One sentence: what to do. */
  readonly remedy: string;
  /** How long was really waited for that rank in that phase (milliseconds). */
  readonly waitedMs: number;
  /** Wall-clock milliseconds and the journal's sequence number. */
  readonly at: number;
  readonly seq: number;
  /** Ranks that were not ready at that moment, with their state. */
  readonly missing: readonly { readonly rank: number; readonly state: string }[];
  /** The process's last lines. */
  readonly tail: readonly string[];
  /** What the original says in this case, with `strict: "upstream"`. */
  readonly upstream: string | null;
}

interface Moment {
  readonly status: ClusterStatus;
  readonly configuration: RunConfiguration;
  readonly seq: number;
  readonly at: number;
}

const PHASES: Readonly<Record<string, string>> = {
  connect: "before its HELLO",
  load: "while loading, after its HELLO and before its READY",
  serve: "while serving",
  adopt: "when its coordinator had come back",
};

export function recordOf(failure: Failure, moment: Moment): FailureRecord {
  const { status, at, seq } = moment;
  const rank = rankOf(failure.of ?? "") ?? null;
  const of = status.ranks.find((r) => r.rank === rank);
  const launch = failure.of?.startsWith("process/")
    ? failure.of.slice("process/".length)
    : of?.launch;
  const process = status.processes.find((p) => p.launch === launch);
  const waitedMs = at - waitedSince(failure, of, status);
  return {
    code: failure.code,
    rank: rank ?? process?.ranks[0] ?? null,
    phase: failure.phase,
    sentence: sentence(failure, { ...moment, rank, of, process, waitedMs }),
    remedy: remedy(failure, process),
    waitedMs,
    at,
    seq,
    missing: status.ranks.filter((r) => r.state !== "ready").map((r) => ({
      rank: r.rank,
      state: r.state,
    })),
    tail: failure.code === "engine-exited" ? process?.tail ?? [] : [],
    upstream: moment.configuration.strict === "upstream"
      ? upstreamText(failure, rank, moment.configuration)
      : null,
  };
}

interface Told extends Moment {
  readonly rank: number | null;
  readonly of: RankStatus | undefined;
  readonly process: ProcessStatus | undefined;
  readonly waitedMs: number;
}

/** A process that was killed from outside cannot say why, and one that wrote nothing has no last lines. */
function remedy({ code, detail }: Failure, process: ProcessStatus | undefined): string {
  if (code !== "engine-exited") return FAILURES[code].remedy;
  if (detail["signal"] === "SIGKILL") {
    return "Find out who killed it (the kernel's out-of-memory killer writes to dmesg), then start again.";
  }
  return (process?.tail ?? []).length > 0
    ? FAILURES[code].remedy
    : "It wrote nothing; start it by hand to see why it ends, then start again.";
}

/** Since when the rank was in the phase that failed. */
function waitedSince(failure: Failure, of: RankStatus | undefined, status: ClusterStatus): number {
  if (failure.phase === "adopt") return of?.since ?? status.startedAt;
  if (failure.phase === "serve") return of?.readyAt ?? status.startedAt;
  return failure.phase === "load" ? of?.connectedAt ?? status.startedAt : status.startedAt;
}

function sentence(failure: Failure, told: Told): string {
  const { rank, of, process, status, configuration } = told;
  const waited = duration(told.at - status.startedAt);
  const detail = failure.detail;
  const phase = PHASES[failure.phase ?? ""] ?? "";
  const whose = process === undefined
    ? ""
    : ` (process ${process.launch}, pid ${process.pid ?? "unknown"})`;
  switch (failure.code) {
    case "bind-failed":
      return `The ${detail["socket"]} socket could not be bound: ${detail["text"]}.`;
    case "spawn-failed":
      return `The process ${process?.launch ?? "of an engine"} (${
        rankList(process?.ranks ?? [])
      }) could not be started: ${detail["text"]}.`;
    case "keeper-lost":
      return `The keeper of the local engines was lost after ${waited}: ${detail["text"]}.`;
    case "engine-exited": {
      const exit = exitText({
        code: detail["code"] as number | null,
        signal: detail["signal"] as string | null,
      });
      return `Rank ${rank}${whose} ${exit} ${phase}, ${waited} after the start.`;
    }
    case "engine-silent":
      return `Process ${process?.launch} (${rankList(process?.ranks ?? [])}, pid ${
        process?.pid ?? "unknown"
      }) wrote nothing for ${duration(configuration.limits.progressMs)}.`;
    case "engine-late": {
      const missing = status.ranks.filter((r) => r.state !== "ready").map((r) => r.rank);
      return failure.phase === "connect"
        ? `Rank ${rank} never said ${
          (of?.refused ?? null) === null ? "HELLO" : "a HELLO that could be accepted"
        } within ${duration(configuration.limits.connectMs)}${
          (of?.refused ?? null) === null ? "" : ` (${of!.refused!.last})`
        }; not ready: ${rankList(missing)}.`
        : `Rank ${rank} said HELLO and then no READY within ${
          duration(configuration.limits.readyMs)
        }${progress(told)}; not ready: ${rankList(missing)}.`;
    }
    case "engine-unresponsive":
      if (failure.phase === "adopt") {
        return `Rank ${rank}${whose} did not answer within ${
          duration(Number(detail["afterMs"]))
        } ${phase}, so it was not adopted${why(detail["why"])}.`;
      }
      return `Rank ${rank} gave no sign of life for ${
        duration(Number(detail["afterMs"]))
      } while serving${why(detail["why"])}.`;
    case "engine-restarted":
      return `Rank ${rank} said HELLO again after it had been ready; its group of ranks is broken.`;
    case "engine-refused":
      return `Rank ${rank} said ${detail["message"]} ${phase}, which was refused: ${
        detail["reason"] === "unexpected"
          ? detail["text"] ?? "unexpected"
          : refusalText(detail, configuration.mode)
      }.`;
    case "configuration-mismatch":
      return detail["hash"] === null
        ? `Rank ${rank}'s READY lacks what the others have: hash ${detail["hash"]}, blocks ${
          detail["blocks"]
        }.`
        : `Rank ${rank} runs another configuration than the rest: its hash is ${
          detail["hash"]
        }, the reference is ${reference(detail["expected"], told)}.`;
    case "start-up-late": {
      const missing = status.ranks.filter((r) => r.state !== "ready").map((r) => r.rank);
      return `Start-up took longer than ${duration(configuration.limits.totalMs)}; not ready: ${
        rankList(missing)
      }.`;
    }
    case "stranger":
      return `A stranger spoke on the handshake socket (${detail["kind"]}: ${detail["sample"]}).`;
  }
}

const why = (text: unknown): string => text === null ? "" : `: ${text}`;

/** A rank that is late although its process goes on writing only needs longer; one that hangs does not. */
const progress = ({ process, at }: Told): string =>
  process === undefined || (process.progressAt ?? null) === null
    ? ""
    : `, although its process still made progress (it wrote something ${
      duration(at - process.progressAt!)
    } before)`;

const reference = (expected: unknown, { configuration, status }: Told): string =>
  configuration.parallelConfigHash ??
    `${expected}, that of the first rank that was ready (${
      status.ranks.find((r) => r.state === "ready")?.rank ?? "?"
    })`;
