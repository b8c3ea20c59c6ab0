/**
 * One operation across all ranks, and the desk where it is asked for: the machines of production, and ranks that do what ranks of Muster
 * may do at that height: they prepare, vote, decide together, finish, fail, fall silent. The operator asks, asks again, asks for
 * something else, and aborts, at any moment. How ranks do what they do is in `scaling.ts`.
 */
import {
  defineModel,
  type Model,
  ModelError,
  put,
  type Reducer,
  type World,
} from "../src/checker/mod.ts";
import { effect, type Json, type KernelEvent, type Output, tell } from "../src/kernel/mod.ts";
import {
  DEFAULT_SCALING_LIMITS,
  operation as operationChart,
  operations as operationsChart,
  type OperationsInput,
} from "../src/machines/mod.ts";
import { joiner } from "../src/machines/joiner.ts";
import { bystander, heard, listener } from "./bystander.ts";
import { BEGIN, type OperationHistory, recordHolds, remember } from "./operation-history.ts";

export interface OperationOptions {
  /** Ranks before. Default 2. */
  readonly ranks?: number;
  /** Ranks after. Default 3. */
  readonly target?: number;
  /** Whether the operator may abort, any number of times. Default true. */
  readonly abort?: boolean;
  /** Whether a rank that voted may lose its store, so that it never knows. Default true. */
  readonly strands?: boolean;
  /** Whether processes of new ranks may end. Default true. */
  readonly joinersEnd?: boolean;
  /** Whether another operation begins after the first one, in which no rank says anything. Default false. */
  readonly next?: boolean;
}

const ID = "op";
const NEXT = "next";
const OPERATION = `operation/${ID}`;
const TOPOLOGY = { epoch: "e", bootstrap: { masterIp: "h", storePort: 1 }, redundancy: 0 };

// ---- ranks ------------------------------------------------------------------------------------------------------

type Stage = "idle" | "preparing" | "prepared" | "voted" | "committed" | "ended";

interface Rank {
  readonly stage: Stage;
  /** Rank 0, when new ranks come: it listens for them. */
  readonly greets: boolean;
  readonly doubts: boolean;
  /** It was told to abort before its vote. */
  readonly aborts: boolean;
}

/** What a rank decides of its own accord; whether it may is for the model to say. */
type Deed =
  | "greets"
  | "prepares"
  | "gives up"
  | "decides commit"
  | "decides abort"
  | "learns commit"
  | "learns abort"
  | "aborts"
  | "doubts"
  | "completes all"
  | "fails all"
  | "ends completed"
  | "ends failed"
  | "is stranded";

const rank: Reducer = {
  id: "rank",
  initial: () => ({ state: { stage: "idle", greets: false, doubts: false, aborts: false } }),
  step: (state, event) => {
    const before = state as unknown as Rank;
    const { stage } = before;
    const to = (change: Partial<Rank>, ...outputs: Output[]) => ({
      state: { ...before, ...change } as unknown as Json,
      outputs,
    });
    const report = (event: { type: string; [member: string]: Json }) => tell(OPERATION, event);
    const ended = (outcome: string, code: string | null) =>
      to(
        { stage: "ended", doubts: false, aborts: false },
        report({
          type: "rankEnded",
          outcome,
          cause: code === null ? null : { code, text: code },
          engineToRestart: outcome === "failed" && (stage === "voted" || stage === "committed"),
          topology: outcome === "completed" ? TOPOLOGY : null,
        }),
      );
    const decide = (decision: string) => effect({ type: "rank.put", key: "decision", decision });
    const finish = (decision: string) => effect({ type: "rank.put", key: "end", decision });
    switch (event.type) {
      case "prepare":
        return stage === "idle" ? to({ stage: "preparing" }) : undefined;
      case "commit":
        return stage === "prepared" ? to({ stage: "voted" }) : undefined;
      case "abort":
        if (stage === "preparing" || stage === "prepared") return to({ aborts: true });
        // In doubt: it proposes to abort, and goes by what is decided.
        if (stage === "voted") return to({}, decide("abort"));
        return stage === "committed"
          ? to({}, report({ type: "rankTooLate", text: "" }))
          : undefined;
    }
    switch (event["deed"] as Deed) {
      case "greets":
        return to({ greets: true }, report({ type: "rankGreeting", endpoint: "b" }));
      case "prepares":
        return to({ stage: "prepared" }, report({ type: "rankPrepared" }));
      case "gives up":
        return ended("failed", "engine-failed");
      case "decides commit":
        return to({}, decide("commit"));
      case "decides abort":
        return to({}, decide("abort"));
      case "learns commit":
        return to({ stage: "committed" }, report({ type: "rankCommitting" }));
      case "aborts":
      case "learns abort":
        return ended("failed", "aborted");
      case "doubts":
        return to({ doubts: true }, report({ type: "rankInDoubt", settledBy: "the store" }));
      case "completes all":
        return to({}, finish("completed"));
      case "fails all":
        return to({}, finish("failed"));
      case "ends completed":
        return ended("completed", null);
      case "ends failed":
        return ended("failed", "outcome-late");
      case "is stranded":
        return ended("stranded", "store-lost");
    }
  },
};

const rankId = (r: number): string => `rank/${r}/topology`;
/** A rank that left is no more, so its part has ended. */
const stageOf = (w: World, r: number): Rank =>
  (w.at(rankId(r))?.value ??
    { stage: "ended", greets: true, doubts: false, aborts: false }) as Rank;

/** What a rank may do now. Decisions are write-once; rank 0 completes when everybody knows the decision. */
function deeds(
  w: World,
  r: number,
  old: readonly number[],
  { scalesUp, strands }: { readonly scalesUp: boolean; readonly strands: boolean },
): Deed[] {
  const { stage, greets, doubts, aborts } = stageOf(w, r);
  const decision = w.get("decision") as string | undefined;
  const end = w.get("end") as string | undefined;
  const all = (stages: readonly Stage[]): boolean =>
    old.every((other) => stages.includes(stageOf(w, other).stage));
  switch (stage) {
    // What it says may cross with an abort.
    case "preparing":
      return [
        r === 0 && scalesUp && !greets ? "greets" : "prepares",
        aborts ? "aborts" : "gives up",
      ];
    case "prepared":
      return [aborts ? "aborts" : "gives up"];
    case "voted":
      return [
        ...(decision === undefined ? ["decides abort"] as const : []),
        ...(decision === undefined && all(["voted"]) ? ["decides commit"] as const : []),
        ...(decision === "commit" ? ["learns commit"] as const : []),
        ...(decision === "abort" ? ["learns abort"] as const : []),
        ...(doubts ? [] : ["doubts"] as const),
        ...(strands ? ["is stranded"] as const : []),
      ];
    case "committed":
      return end === undefined
        ? [
          ...(r === 0 && all(["committed", "ended"]) ? ["completes all"] as const : []),
          "fails all",
          ...(doubts ? [] : ["doubts"] as const),
        ]
        : [end === "completed" ? "ends completed" : "ends failed"];
    default:
      return [];
  }
}

// ---- the model --------------------------------------------------------------------------------------------------

/** One operation from `ranks` to `target` ranks. */
export function operationModel(options: OperationOptions = {}): Model {
  const { ranks = 2, target = 3, abort = true, strands = true, joinersEnd = true, next = false } =
    options;
  if (target === ranks) {
    throw new ModelError(
      `from ${ranks} to ${target} ranks: nothing is scaled; give another target`,
    );
  }
  const setting = { operation: ID, oldSize: ranks, target };
  const old = Array.from({ length: ranks }, (_, r) => r);
  const fresh = Array.from({ length: Math.max(0, target - ranks) }, (_, i) => ranks + i);
  const leavers = old.filter((r) => r >= target);
  const input: OperationsInput = {
    experts: 8,
    redundant: 100,
    maxSize: 8,
    size: ranks,
    settleMs: 1,
    newcomer: {
      limits: DEFAULT_SCALING_LIMITS,
      engine: {
        mode: "internal",
        strict: false,
        heartbeatWithinMs: 1,
        callable: true,
      },
    },
    joiner: { argv: ["engine", "{rank}"], env: {}, cwd: null, inherit: false, stopMs: 1 },
    watchesEngines: true,
  };
  const history = (w: World): OperationHistory => w.memory("history");
  const running = (w: World): boolean => w.at(OPERATION) !== undefined;
  const asked = (operation: string, target: number): KernelEvent => ({
    type: "scaleAsked",
    operation,
    target,
    deadlineMs: 1,
  });
  const abortAsked = (operation: string): KernelEvent => ({
    type: "abortAsked",
    operation,
    text: "",
  });
  /** One operation is let begin; everything else that is asked is about it, or must be refused. */
  const commands = (w: World): KernelEvent[] => [
    asked(ID, target),
    asked("absurd", 99),
    ...(running(w) ? [asked("again", target), asked("rival", ranks + 2)] : []),
    ...(history(w).end === null || w.in("operations", "running") ? [] : [
      asked("same", history(w).end!.effectiveSize ?? ranks),
      ...(next ? [asked(NEXT, ranks + 2)] : []),
    ]),
    ...(abort ? [abortAsked(ID), abortAsked("other")] : []),
  ];
  return defineModel({
    name: `an operation from ${ranks} to ${target} ranks${abort ? ", aborted at any moment" : ""}`,
    charts: { operation: operationChart, joiner, topology: listener, engine: listener },
    processes: {
      operations: { runs: operationsChart, input: input as unknown as Json },
      launcher: { runs: listener },
      ...Object.fromEntries(old.map((r) => [rankId(r), {
        runs: rank,
        may: (w: World) =>
          deeds(w, r, old, { scalesUp: target > ranks, strands }).map((deed) => ({
            type: "does",
            deed,
          })),
      }])),
      ...Object.fromEntries(leavers.map((r) => [`rank/${r}/engine`, { runs: listener }])),
      ...Object.fromEntries(fresh.map((r) => [`process/rank-${r}-${ID}`, { runs: listener }])),
      operator: bystander((w) => commands(w).map((event) => ["operations", event])),
      world: bystander((w) =>
        fresh.filter((r) => joinersEnd && w.in(`rank/${r}/engine`, "joining"))
          .map((r) => [`rank/${r}/engine`, { type: "exited", code: 1, signal: null }])
      ),
    },
    effects: {
      ...heard,
      "operation.answer": () => [],
      "rank.put": ({ key, decision }, w) => w.get(key) === undefined ? [put(key, decision)] : [],
    },
    monitors: {
      history: {
        initial: BEGIN as unknown as Json,
        step: (h, happening) =>
          remember(h as unknown as OperationHistory, happening, setting) as unknown as Json,
      },
    },
    properties: {
      always: {
        "an operation is in the phase that its history leads to": (w) => {
          const { phase } = history(w);
          if (!running(w)) return phase === "none" || phase === "ended";
          const state = ["preparing", "committing"].includes(phase) ? `running.${phase}` : phase;
          return w.in(OPERATION, state);
        },
        "whoever it concerns is told, once, and nobody else": (w) =>
          history(w).owed.length === 0 && history(w).wrong === null,
        "the record of an operation is what the ranks said, and names what went wrong, the first first":
          (w) => recordHolds(history(w), setting),
        "completed and failed are what the ranks decided": (w) => {
          const outcome = history(w).end?.outcome;
          if (outcome === "completed") return w.get("end") === "completed";
          return outcome !== "failed" || w.get("end") !== "completed";
        },
        "nobody votes before every rank is prepared": (w) =>
          !old.some((r) => stageOf(w, r).stage === "voted") ||
          old.every((r) => !["idle", "preparing"].includes(stageOf(w, r).stage)),
        "a deadline runs while it prepares or commits, and another while it settles": (w) => {
          const { phase } = history(w);
          const due = { preparing: "deadline", committing: "deadline", aborting: "settle" }[
            phase as "preparing"
          ] ?? (phase === "settling" ? "settle" : undefined);
          return w.timers(OPERATION)[0] === due;
        },
        "the desk is busy exactly while an operation runs": (w) =>
          w.in("operations", "running") === (running(w) || w.at(`operation/${NEXT}`) !== undefined),
        "a front-end begins for each rank that joined, and ends for each that left": (w) => {
          const { end } = history(w);
          const completed = end?.outcome === "completed";
          return fresh.every((r) => (w.at(rankId(r)) !== undefined) === completed) &&
            leavers.every((r) => (w.at(rankId(r)) === undefined) === completed);
        },
        "a new rank that has nothing to join is forgotten": (w) => {
          const { end } = history(w);
          return end === null || end.outcome === "completed" ||
            fresh.every((r) => w.at(`rank/${r}/engine`) === undefined);
        },
      },
      sometimes: {
        "it completes": (w) => history(w).end?.outcome === "completed",
        "it fails": (w) => history(w).end?.outcome === "failed",
        "it ends in doubt": (w) => history(w).end?.outcome === "inDoubt",
        "it is in doubt, and completes after all": (w) =>
          history(w).end?.outcome === "completed" && history(w).errors.length > 0,
      },
      rest: (w) => !running(w),
    },
  });
}
