/** What the history of a scaling operation says of it: in which phase it must be, whom it must tell what, and how it must end. */
import type { Happening } from "../src/checker/mod.ts";
import type { Json, KernelEvent } from "../src/kernel/mod.ts";
import type { OperationOutput } from "../src/machines/mod.ts";

export interface OperationSetting {
  readonly operation: string;
  readonly oldSize: number;
  readonly target: number;
}

type Outcome = "completed" | "failed" | "stranded";
type Phase = "none" | "preparing" | "committing" | "aborting" | "settling" | "inDoubt" | "ended";

/** Something that is to be told in this step: to whom, and some of its members. */
type Telling = readonly [to: string, event: Readonly<Record<string, Json>>];

export interface OperationHistory {
  readonly phase: Phase;
  readonly prepared: readonly number[];
  readonly ended: Readonly<Record<string, Outcome>>;
  readonly restart: readonly number[];
  /** Codes of what went wrong, the first one first. */
  readonly errors: readonly string[];
  readonly commit: boolean;
  readonly end: OperationOutput | null;
  readonly owed: readonly Telling[];
  readonly wrong: string | null;
}

export const BEGIN: OperationHistory = {
  phase: "none",
  prepared: [],
  ended: {},
  restart: [],
  errors: [],
  commit: false,
  end: null,
  owed: [],
  wrong: null,
};

const between = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
const rankOf = (event: KernelEvent): number => Number(String(event["from"]).split("/")[1]);
const withRank = (ranks: readonly number[], rank: number): number[] =>
  [...new Set([...ranks, rank])].sort();

/** The outcome that follows from what the ranks said. Before the commit nobody can have completed. */
export function outcomeOf({ commit, ended }: OperationHistory): OperationOutput["outcome"] {
  const said = new Set(Object.values(ended));
  if (!commit) return "failed";
  if (said.has("completed")) return said.has("failed") ? "inDoubt" : "completed";
  return said.has("failed") ? "failed" : "inDoubt";
}

export function remember(
  history: OperationHistory,
  happening: Happening,
  setting: OperationSetting,
): OperationHistory {
  const said = sayingOf(happening);
  if (said === undefined) return history;
  const [to, event] = said;
  if (happening.kind === "took" && (happening.how === "failed" || happening.how === "unexpected")) {
    return { ...history, wrong: `${to}: ${event.type} ${happening.how}` };
  }
  const paid = pay(history, to, event);
  if (paid === history && !FROM_OUTSIDE.has(event.type)) {
    return { ...history, wrong: `${to} is told ${event.type}` };
  }
  if (to === "operations") return atDesk(paid, event, setting);
  return to === `operation/${setting.operation}` ? atOperation(paid, event, setting) : paid;
}

/** To whom something is said, and what: an event that somebody takes, or an answer to the operator. */
function sayingOf(happening: Happening): [string, KernelEvent] | undefined {
  if (happening.kind === "effect") {
    const { effect } = happening;
    return effect.type !== "operation.answer" || effect["operation"] === "next"
      ? undefined
      : ["operator", effect as KernelEvent];
  }
  if (happening.kind !== "took") return undefined;
  const { instance, event } = happening;
  // What others decide of their own accord is not told by operations; and an operation after this one is not looked at.
  const beside = ["does", "says", "exited"].includes(event.type) || instance === "operation/next" ||
    [event["operation"], (event["output"] as { operation?: string } | undefined)?.operation]
      .includes("next");
  return beside ? undefined : [instance, event];
}

/** What the operator, ranks and timers say; everything else must be owed to whom it is told. */
const FROM_OUTSIDE: ReadonlySet<string> = new Set([
  "scaleAsked",
  "abortAsked",
  "rankGreeting",
  "rankPrepared",
  "rankCommitting",
  "rankTooLate",
  "rankInDoubt",
  "rankEnded",
  "joinerLost",

  "xstate.after.deadline.operation.running",
  ...["aborting", "settling"].map((s) => `xstate.after.settle.operation.${s}`),
]);

function pay(history: OperationHistory, to: string, event: KernelEvent): OperationHistory {
  const i = history.owed.findIndex(([who, what]) =>
    who === to && Object.entries(what).every(([name, value]) => event[name] === value)
  );
  return i < 0 ? history : { ...history, owed: history.owed.filter((_, n) => n !== i) };
}

const owe = (history: OperationHistory, ...tellings: Telling[]): OperationHistory => ({
  ...history,
  owed: [...history.owed, ...tellings],
});
const answer = (operation: Json, outcome: Json): Telling => ["operator", { operation, outcome }];

// ---- where operations are asked for -----------------------------------------------------------------------------

function atDesk(
  history: OperationHistory,
  event: KernelEvent,
  setting: OperationSetting,
): OperationHistory {
  const { operation, oldSize, target } = setting;
  const running = history.phase !== "none" && history.end === null;
  switch (event.type) {
    case "scaleAsked": {
      const asked = event["operation"] as string;
      if (history.end !== null && asked === operation) {
        return owe(history, answer(operation, history.end.outcome));
      }
      const wanted = event["target"] as number;
      if (running) return owe(history, answer(asked, wanted === target ? "joined" : "refused"));
      const size = history.end?.effectiveSize ?? oldSize;
      if (wanted === size) return owe(history, answer(asked, "completed"));
      if (asked !== operation) return owe(history, answer(asked, "refused"));
      return owe(
        { ...history, phase: "preparing" },
        answer(operation, "accepted"),
        ...between(0, oldSize).map((rank): Telling => [`rank/${rank}/topology`, {
          type: "prepare",
          operation,
          target,
          remains: rank < target,
        }]),
      );
    }
    case "abortAsked":
      return running && event["operation"] === operation
        ? owe(history, [`operation/${operation}`, { type: "abort" }])
        : history;
    case "operationInDoubt":
      return owe(history, answer(operation, "inDoubt"));
    case "ended": {
      if (event["chart"] !== "operation") return history;
      const end = event["output"] as unknown as OperationOutput;
      const left = end.outcome === "completed" ? between(target, oldSize) : [];
      return owe(
        { ...history, end },
        answer(operation, end.outcome),
        ...left.map((r): Telling => [`rank/${r}/engine`, { type: "dismissed" }]),
      );
    }
    default:
      return history;
  }
}

// ---- the operation ----------------------------------------------------------------------------------------------

function atOperation(
  history: OperationHistory,
  event: KernelEvent,
  setting: OperationSetting,
): OperationHistory {
  const { oldSize, operation, target } = setting;
  const old = between(0, oldSize);
  const { phase } = history;
  const failed = (h: OperationHistory, code: string): OperationHistory => ({
    ...h,
    errors: [...h.errors, code],
  });
  const abort = (h: OperationHistory, phase: Phase): OperationHistory =>
    owe(
      { ...h, phase },
      ...old.filter((r) => h.ended[r] === undefined)
        .map((r): Telling => [`rank/${r}/topology`, { type: "abort", operation }]),
    );
  const stopped = (h: OperationHistory): OperationHistory =>
    h.commit
      ? owe(abort(h, "settling"), ["operations", { type: "operationSettling" }])
      : abort(h, "aborting");
  switch (event.type.replace(/^xstate\.after\.(\w+).*/, "$1")) {
    // What crosses with an abort is too late.
    case "rankGreeting":
      return phase === "preparing" ? owe(history, ["launcher", { type: "add" }]) : history;
    case "rankPrepared": {
      if (phase !== "preparing") return history;
      const prepared = withRank(history.prepared, rankOf(event));
      const next = { ...history, prepared };
      if (prepared.length < oldSize) return next;
      return owe(
        { ...next, phase: "committing", commit: true },
        ...between(target, oldSize).map((r): Telling => [`rank/${r}/engine`, { type: "leave" }]),
        ...old.map((r): Telling => [`rank/${r}/topology`, { type: "commit", operation }]),
      );
    }
    case "rankEnded": {
      const rank = rankOf(event);
      const cause = event["cause"] as { code: string } | null;
      const next: OperationHistory = {
        ...history,
        ended: { ...history.ended, [rank]: event["outcome"] as Outcome },
        restart: event["engineToRestart"] === true
          ? withRank(history.restart, rank)
          : history.restart,
        errors: cause === null ? history.errors : [...history.errors, cause.code],
      };
      const everyone = old.every((r) => next.ended[r] !== undefined);
      if (everyone) return finish(next, setting);
      return phase === "preparing" ? stopped(next) : next;
    }
    case "joinerLost":
      return phase === "preparing"
        ? stopped(failed(history, "joiner-lost"))
        : failed(history, "joiner-lost");
    case "abort":
      if (phase === "aborting") return history;
      return phase === "preparing" || phase === "committing"
        ? stopped(failed(history, "aborted"))
        : abort(history, phase);
    case "deadline":
      return stopped(failed(history, "operation-late"));
    case "settle":
      return phase === "aborting"
        ? finish(history, setting)
        : owe({ ...history, phase: "inDoubt" }, ["operations", { type: "operationInDoubt" }]);
    default:
      return history;
  }
}

function finish(history: OperationHistory, setting: OperationSetting): OperationHistory {
  const { operation, oldSize, target } = setting;
  const outcome = outcomeOf(history);
  return owe(
    { ...history, phase: "ended" },
    ...(outcome === "completed" ? [] : between(oldSize, target).map((r): Telling => [
      `process/rank-${r}-${operation}`,
      { type: "stop" },
    ])),
    ...(outcome === "failed"
      ? between(target, oldSize).map((r): Telling => [`rank/${r}/engine`, { type: "stay" }])
      : []),
    ["operations", { type: "ended", chart: "operation" }],
  );
}

/** Whether the record of an ended operation is what its history says. */
export function recordHolds(history: OperationHistory, setting: OperationSetting): boolean {
  const { end, ended, restart, errors } = history;
  if (end === null) return true;
  const { oldSize, target } = setting;
  const outcome = outcomeOf(history);
  const silent = between(0, oldSize).filter((r) => ended[r] === undefined);
  const size = { completed: target, failed: oldSize, inDoubt: null }[outcome];
  const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
  return end.outcome === outcome && end.effectiveSize === size &&
    (end.topology !== null) === (outcome === "completed") &&
    same(end.unanswered, silent) &&
    same(end.enginesToRestart, silent.reduce(withRank, restart)) &&
    same(end.safeToDelete, outcome === "completed" ? between(target, oldSize) : []) &&
    same([end.firstError, ...end.laterErrors].flatMap((e) => e === null ? [] : [e.code]), errors);
}
