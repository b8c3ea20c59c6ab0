/**
 * One scaling operation across all ranks: what the original leaves to its callers. It asks every old rank to prepare, says commit when all
 * are prepared, and aborts everywhere when one fails or the deadline for the whole passes. What it says of the end is what the ranks
 * know: completed, failed, or in doubt with what would settle it.
 *
 * preparing --everyone prepared--> committing --everyone ended--> completed | failed; inDoubt while nobody can say.
 */
import { assign, setup } from "xstate";
import { type Chart, type Output, rankOf, start, STARTER, stop, tell } from "../kernel/mod.ts";
import type { Bootstrap } from "./effects/scaling.ts";
import type { ScalingCause } from "./scaling.ts";

export interface OperationInput {
  readonly operation: string;
  readonly oldSize: number;
  readonly target: number;
  /** For the whole: preparing and committing. */
  readonly deadlineMs: number;
  /** After an abort or the deadline: until ranks that say nothing are no longer waited for. */
  readonly settleMs: number;
  /** How new ranks are started; null where somebody else does it. */
  readonly joiner: JoinerTemplate | null;
  /** Engines have an instance that is to know that they leave. */
  readonly watchesEngines: boolean;
  /** The old ranks whose front-ends are here; all of them by default. Those of others hear of the operation where they are. */
  readonly fronts?: readonly number[];
  /** Every old rank is told this name of the operation. Default true. */
  readonly shared?: boolean;
}

/** A launch with `{rank}`, `{size}` and `{scaleUp}` to be filled in. */
export interface JoinerTemplate {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | null;
  readonly inherit: boolean;
  readonly stopMs: number;
}

/** What a completed operation led to. */
export interface NewTopology {
  readonly epoch: string;
  readonly bootstrap: Bootstrap;
  readonly redundancy: number;
}

/** A rank's failure; the first of an operation is its cause, later ones follow from it. */
export interface RankFailure {
  readonly rank: number | null;
  readonly code: string;
  readonly text: string;
}

export interface OperationContext extends OperationInput {
  /** Ranks whose answer the current phase waits for. */
  readonly waiting: readonly number[];
  /** Commit was said: from here the ranks decide. */
  readonly told: boolean;
  readonly prepared: readonly number[];
  /** Ranks whose part has ended, by outcome. */
  readonly completed: readonly number[];
  readonly failed: readonly number[];
  readonly stranded: readonly number[];
  /** Ranks that cannot say how it ends, and what would tell them. */
  readonly doubts: readonly { readonly rank: number; readonly settledBy: string }[];
  readonly enginesToRestart: readonly number[];
  /** As a rank that completed says. */
  readonly topology: NewTopology | null;
  readonly firstError: RankFailure | null;
  readonly laterErrors: readonly RankFailure[];
}

export type OperationEvent =
  /** Rank 0 listens for new ranks. */
  | { type: "rankGreeting"; from: string; endpoint: string }
  | { type: "rankPrepared"; from: string }
  | { type: "rankCommitting"; from: string }
  | { type: "rankTooLate"; from: string; text: string }
  | { type: "rankInDoubt"; from: string; settledBy: string }
  | {
    type: "rankEnded";
    from: string;
    outcome: "completed" | "failed" | "stranded";
    cause: ScalingCause | null;
    engineToRestart: boolean;
    topology: NewTopology | null;
  }
  /** A new rank's process ended or could not be started. */
  | { type: "joinerLost"; rank: number; text: string }
  | { type: "abort"; text: string };

/** What is left of an operation. */
export interface OperationOutput {
  readonly operation: string;
  /** `inDoubt`: the stores that know are gone, or the ranks (some of them not Muster's) disagree. */
  readonly outcome: "completed" | "failed" | "inDoubt";
  readonly target: number;
  /** In how many ranks the cluster serves now; null when nobody can say. */
  readonly effectiveSize: number | null;
  readonly topology: NewTopology | null;
  readonly firstError: RankFailure | null;
  readonly laterErrors: readonly RankFailure[];
  readonly enginesToRestart: readonly number[];
  /** Ranks that have left the group and can be deleted. */
  readonly safeToDelete: readonly number[];
  /** Ranks that never said how it ended. */
  readonly unanswered: readonly number[];
}

type Args = { context: OperationContext; event: OperationEvent };
type Ended = OperationEvent & { type: "rankEnded" };

const senderOf = (event: OperationEvent): number => rankOf((event as { from: string }).from) ?? -1;
const without = (ranks: readonly number[], rank: number): readonly number[] =>
  ranks.filter((r) => r !== rank);
const withRank = (ranks: readonly number[], rank: number): readonly number[] =>
  ranks.includes(rank) ? ranks : [...ranks, rank].sort((a, b) => a - b);
const oldRanks = ({ oldSize }: OperationInput): number[] =>
  Array.from({ length: oldSize }, (_, rank) => rank);
/** The old ranks that are asked and answer here. */
const parties = (input: OperationInput): readonly number[] => input.fronts ?? oldRanks(input);
const endedRanks = ({ completed, failed, stranded }: OperationContext): readonly number[] => [
  ...completed,
  ...failed,
  ...stranded,
];
const newRanks = ({ oldSize, target }: OperationInput): number[] =>
  Array.from({ length: Math.max(0, target - oldSize) }, (_, i) => oldSize + i);
const engineOf = (rank: number): string => `rank/${rank}/engine`;
const launchOf = (rank: number, operation: string): string => `rank-${rank}-${operation}`;
const tellLeavers = (context: OperationContext, type: "leave" | "stay"): Output[] =>
  context.watchesEngines
    ? parties(context).filter((rank) => rank >= context.target).map((rank) =>
      tell(engineOf(rank), { type })
    )
    : [];
const filled = (
  text: string,
  { target }: OperationInput,
  rank: number,
  endpoint: string,
): string =>
  text.replaceAll("{rank}", String(rank)).replaceAll("{size}", String(target))
    .replaceAll("{scaleUp}", endpoint);
const toRank = (rank: number): string => `rank/${rank}/topology`;

const failureFrom = (event: OperationEvent): RankFailure | null => {
  switch (event.type) {
    case "rankEnded":
      return event.cause === null ? null : { rank: senderOf(event), ...event.cause };
    case "joinerLost":
      return { rank: event.rank, code: "joiner-lost", text: event.text };
    case "abort":
      return { rank: null, code: "aborted", text: event.text || "the operation was aborted" };
    default:
      return null;
  }
};

const DEADLINE: RankFailure = {
  rank: null,
  code: "operation-late",
  text: "the operation did not end within its deadline",
};

const reports = {
  // What a rank says of its preparation may cross with what ends it: it is no answer to that.
  rankGreeting: {},
  rankPrepared: {},
  rankCommitting: {},
  rankTooLate: {},
  rankInDoubt: { actions: "noteDoubt" },
  rankEnded: { actions: "noteEnded" },
  joinerLost: { actions: "noteError" },
} as const;

export const operation: Chart<OperationContext, OperationEvent> = setup({
  types: {} as {
    context: OperationContext;
    events: OperationEvent;
    input: OperationInput;
    output: OperationOutput;
  },
  delays: {
    deadline: ({ context }: { context: OperationContext }) => context.deadlineMs,
    settle: ({ context }: { context: OperationContext }) => context.settleMs,
  },
  guards: {
    nobodyAwaited: ({ context }: Args) => context.waiting.length === 0,
    wasTold: ({ context }: Args) => context.told,
  },
  actions: {
    askToPrepare: ({ context }: Args): Output[] =>
      parties(context).map((rank) =>
        tell(toRank(rank), {
          type: "prepare",
          operation: context.operation,
          target: context.target,
          remains: rank < context.target,
          report: `operation/${context.operation}`,
          shared: context.shared ?? true,
          ...(context.shared === false ? { autoCommit: false } : {}),
          prepareMs: context.deadlineMs,
        })
      ),
    askToCommit: ({ context }: Args): Output[] =>
      parties(context).map((rank) =>
        tell(toRank(rank), { type: "commit", operation: context.operation })
      ),
    askToAbort: ({ context }: Args): Output[] => {
      const ended = endedRanks(context);
      return parties(context).filter((rank) => !ended.includes(rank)).map((rank) =>
        tell(toRank(rank), {
          type: "abort",
          operation: context.operation,
          text: context.firstError?.text ?? "the operation was aborted",
        })
      );
    },
    launchJoiners: ({ context, event }: Args): Output[] => {
      const { joiner, operation } = context;
      if (joiner === null) return [];
      const { endpoint } = event as OperationEvent & { type: "rankGreeting" };
      const ranks = newRanks(context);
      const { stopMs, ...template } = joiner;
      const launches = ranks.map((rank) => ({
        ...template,
        id: launchOf(rank, operation),
        ranks: [rank],
        argv: template.argv.map((text) => filled(text, context, rank, endpoint)),
        env: Object.fromEntries(
          Object.entries(template.env).map(([k, v]) => [k, filled(v, context, rank, endpoint)]),
        ),
        stopMs,
        progressMs: 0,
      }));
      return [
        ...ranks.flatMap((rank) => [
          stop(engineOf(rank)),
          start(engineOf(rank), "joiner", { report: `operation/${operation}`, rank }),
        ]),
        tell("launcher", { type: "add", launches }),
      ];
    },
    /** New ranks of an operation that failed have nothing to join. */
    dismissJoiners: ({ context }: Args): Output[] =>
      context.joiner === null || outcomeOf(context) === "completed"
        ? []
        : newRanks(context).flatMap((rank) => [
          tell(`process/${launchOf(rank, context.operation)}`, { type: "stop" }),
          stop(engineOf(rank)),
        ]),
    expectLeavers: ({ context }: Args): Output[] => tellLeavers(context, "leave"),
    keepLeavers: ({ context }: Args): Output[] =>
      outcomeOf(context) === "failed" ? tellLeavers(context, "stay") : [],
    saySettling: ({ context }: Args) =>
      tell(STARTER, { type: "operationSettling", waiting: context.waiting }),
    sayInDoubt: ({ context }: Args) =>
      tell(STARTER, { type: "operationInDoubt", waiting: context.waiting }),
    noteTold: assign({ told: true }),
    noteError: assign(({ context, event }: Args) => linked(context, failureFrom(event))),
    noteDeadline: assign(({ context }: Args) => linked(context, DEADLINE)),
    awaitPrepared: assign({ waiting: ({ context }: Args) => parties(context) }),
    awaitEnds: assign({
      waiting: ({ context }: Args) => {
        const ended = endedRanks(context);
        return parties(context).filter((rank) => !ended.includes(rank));
      },
    }),
    notePrepared: assign(({ context, event }: Args) => ({
      waiting: without(context.waiting, senderOf(event)),
      prepared: withRank(context.prepared, senderOf(event)),
    })),
    noteDoubt: assign(({ context, event }: Args) => {
      const { settledBy } = event as OperationEvent & { type: "rankInDoubt" };
      const rank = senderOf(event);
      return { doubts: [...context.doubts.filter((d) => d.rank !== rank), { rank, settledBy }] };
    }),
    noteEnded: assign(({ context, event }: Args) => {
      const { outcome, engineToRestart, topology } = event as Ended;
      const rank = senderOf(event);
      return {
        ...linked(context, failureFrom(event)),
        waiting: without(context.waiting, rank),
        doubts: context.doubts.filter((d) => d.rank !== rank),
        [outcome]: withRank(context[outcome], rank),
        topology: context.topology ?? topology,
        enginesToRestart: engineToRestart
          ? withRank(context.enginesToRestart, rank)
          : context.enginesToRestart,
      };
    }),
  },
}).createMachine({
  id: "operation",
  context: ({ input }: { input: OperationInput }) => ({
    ...input,
    waiting: [],
    told: false,
    prepared: [],
    completed: [],
    failed: [],
    stranded: [],
    doubts: [],
    enginesToRestart: [],
    topology: null,
    firstError: null,
    laterErrors: [],
  }),
  output: ({ context }: { context: OperationContext }): OperationOutput => {
    const { operation, target, oldSize, laterErrors, enginesToRestart } = context;
    const outcome = outcomeOf(context);
    return {
      operation,
      outcome,
      target,
      effectiveSize: outcome === "completed" ? target : outcome === "failed" ? oldSize : null,
      topology: outcome === "completed" ? context.topology : null,
      firstError: named(context),
      laterErrors,
      // A rank that did not say how it ended may have asked its engine to reconfigure.
      enginesToRestart: context.waiting.reduce(withRank, enginesToRestart),
      safeToDelete: outcome === "completed"
        ? oldRanks(context).filter((rank) => rank >= target)
        : [],
      unanswered: context.waiting,
    };
  },
  initial: "running",
  states: {
    running: {
      initial: "preparing",
      meta: { timers: { deadline: "deadline" } },
      on: reports,
      after: {
        deadline: [
          { guard: "wasTold", target: "settling", actions: ["noteDeadline", "askToAbort"] },
          { target: "aborting", actions: "noteDeadline" },
        ],
      },
      states: {
        preparing: {
          entry: ["awaitPrepared", "askToPrepare"],
          on: {
            rankGreeting: { actions: "launchJoiners" },
            rankPrepared: { actions: "notePrepared" },
            // Whatever ends before the commit ends the operation.
            rankEnded: { target: "#operation.aborting", actions: "noteEnded" },
            joinerLost: { target: "#operation.aborting", actions: "noteError" },
            abort: { target: "#operation.aborting", actions: "noteError" },
          },
          always: { guard: "nobodyAwaited", target: "committing" },
        },
        committing: {
          entry: ["noteTold", "awaitEnds", "expectLeavers", "askToCommit"],
          on: {
            abort: { target: "#operation.settling", actions: ["noteError", "askToAbort"] },
          },
          always: { guard: "nobodyAwaited", target: "#operation.ended" },
        },
      },
    },
    /** Nobody was told to commit, so nobody has: it has failed, whoever does not answer. */
    aborting: {
      entry: ["awaitEnds", "askToAbort"],
      on: { ...reports, rankInDoubt: {}, abort: {} },
      after: { settle: "ended" },
      always: { guard: "nobodyAwaited", target: "ended" },
    },
    /** Told to commit, and asked to abort: the ranks' decision says which. */
    settling: {
      entry: "saySettling",
      on: { ...reports, abort: { actions: "askToAbort" } },
      after: { settle: "inDoubt" },
      always: { guard: "nobodyAwaited", target: "ended" },
    },
    /** Some rank that voted cannot say, or does not answer. It ends when all of them can. */
    inDoubt: {
      entry: "sayInDoubt",
      on: { ...reports, abort: { actions: "askToAbort" } },
      always: { guard: "nobodyAwaited", target: "ended" },
    },
    ended: { type: "final", entry: ["dismissJoiners", "keepLeavers"] },
  },
});

/** The first error stays the cause; what comes later is linked to it. */
function linked(
  context: OperationContext,
  failure: RankFailure | null,
): Pick<OperationContext, "firstError" | "laterErrors"> {
  const { firstError, laterErrors } = context;
  if (failure === null) return { firstError, laterErrors };
  return firstError === null
    ? { firstError: failure, laterErrors }
    : { firstError, laterErrors: [...laterErrors, failure] };
}

/** A deadline is somebody's: the ranks that had not prepared, or after the commit those that never said how it ended. */
function named(context: OperationContext): RankFailure | null {
  const { firstError, told, prepared, waiting } = context;
  if (firstError?.code !== DEADLINE.code) return firstError;
  const late = told ? waiting : parties(context).filter((rank) => !prepared.includes(rank));
  if (late.length === 0) return firstError;
  const who = late.length === 1 ? `rank ${late[0]}` : `ranks ${late.join(", ")}`;
  return {
    ...firstError,
    rank: late.length === 1 ? late[0]! : null,
    text: `${firstError.text}: ${who} ${told ? "never said how it ended" : "had not prepared"}`,
  };
}

function outcomeOf(
  { completed, failed, stranded, told }: OperationContext,
): OperationOutput["outcome"] {
  if (!told) return "failed";
  if (failed.length > 0) return completed.length > 0 ? "inDoubt" : "failed";
  if (completed.length > 0) return "completed";
  return stranded.length > 0 ? "inDoubt" : "failed";
}
