/**
 * Who decides whether a scaling operation commits?
 *
 * The original has no point at which one object decides: every rank concludes alone from the votes that it happens to see
 * (`commit_ready/<rank>`), and a rank that votes, crashes and then presumes abort has diverged from those that went on. Ranks that decide
 * by one write-once key (`compare_set(decision, "", commit | abort)`, losers adopt the winner) agree in every run.
 */
import { setup } from "xstate";
import { type Chart, effect } from "../src/kernel/mod.ts";
import { defineModel, type Model, ModelError, put, type World } from "../src/checker/mod.ts";

type Decision = "commit" | "abort";
type RankEvent =
  | { type: "drained" }
  | { type: "allVoted" }
  | { type: "errorSeen" }
  /** A deadline passed, an operator gave up, or the rank came back from a crash. */
  | { type: "givenUp" }
  | { type: "decisionSeen"; decision: Decision };

const effects = {
  vote: () => effect({ type: "vote" }),
  proposeCommit: () => effect({ type: "propose", decision: "commit" }),
  proposeAbort: () => effect({ type: "propose", decision: "abort" }),
  writeError: () => effect({ type: "error" }),
};

/** The original's rule: see all votes and commit; fail and write an error. */
const originalRank: Chart<Record<never, never>, RankEvent> = setup({
  types: {} as { events: RankEvent },
  actions: effects,
}).createMachine({
  id: "original-rank",
  initial: "prepared",
  states: {
    prepared: {
      on: {
        drained: { target: "voted", actions: "vote" },
        givenUp: { target: "aborted", actions: "writeError" },
        errorSeen: "aborted",
      },
    },
    voted: {
      on: {
        allVoted: "committed",
        givenUp: { target: "aborted", actions: "writeError" },
        errorSeen: "aborted",
      },
    },
    committed: {},
    aborted: {},
  },
});

/** Our rule: whoever voted is in doubt until the key is written, and then does what it says. */
const rank: Chart<Record<never, never>, RankEvent> = setup({
  types: {} as { events: RankEvent },
  guards: {
    isCommit: ({ event }) => event.type === "decisionSeen" && event.decision === "commit",
    isAbort: ({ event }) => event.type === "decisionSeen" && event.decision === "abort",
  },
  actions: effects,
}).createMachine({
  id: "rank",
  initial: "prepared",
  states: {
    prepared: {
      on: {
        drained: { target: "inDoubt", actions: "vote" },
        givenUp: { actions: "proposeAbort" },
        decisionSeen: { guard: "isAbort", target: "aborted", actions: "writeError" },
      },
    },
    inDoubt: {
      on: {
        allVoted: { actions: "proposeCommit" },
        givenUp: { actions: "proposeAbort" },
        decisionSeen: [
          { guard: "isCommit", target: "committed" },
          { guard: "isAbort", target: "aborted", actions: "writeError" },
        ],
      },
    },
    committed: {},
    aborted: {},
  },
});

export interface AgreementOptions {
  readonly ranks?: number;
  /** The ranks that follow the original's rule (default: none). */
  readonly original?: readonly number[];
}

/** The commit of one operation among `ranks` old ranks. */
export function agreement({ ranks = 2, original = [] }: AgreementOptions = {}): Model {
  const names = Array.from({ length: ranks }, (_, r) => `rank/${r}`);
  for (const rank of original) {
    if (rank < ranks) continue;
    throw new ModelError(
      `among ${ranks} ranks there is no rank ${rank} to follow the original's rule`,
    );
  }
  const votes = names.map((_, r) => `commit_ready/${r}`);
  const decided = (w: World, name: string) => w.in(name, "committed") || w.in(name, "aborted");
  return defineModel({
    name: `agreement among ${ranks} ranks${
      original.length === 0
        ? ""
        : `, ${original.length === ranks ? "all" : original.length} original`
    }`,
    processes: Object.fromEntries(
      names.map((name, r) => [name, {
        runs: original.includes(r) ? originalRank : rank,
        may: (w: World): RankEvent[] => [
          { type: "drained" },
          { type: "givenUp" },
          ...(w.get("error") !== undefined ? [{ type: "errorSeen" } as const] : []),
          ...(w.get("error") === undefined && votes.every((v) => w.get(v) !== undefined)
            ? [{ type: "allVoted" } as const]
            : []),
          ...(w.get("decision") !== undefined
            ? [{ type: "decisionSeen", decision: w.get("decision") } as const]
            : []),
        ],
      }]),
    ),
    effects: {
      vote: (_, __, from) => [put(`commit_ready/${from.slice("rank/".length)}`, 1)],
      error: () => [put("error", 1)],
      propose: ({ decision }, w) =>
        w.get("decision") === undefined ? [put("decision", decision)] : [],
    },
    properties: {
      always: {
        "no rank commits while another aborts": (w) =>
          !(names.some((n) => w.in(n, "committed")) && names.some((n) => w.in(n, "aborted"))),
      },
      sometimes: {
        "all commit": (w) => names.every((n) => w.in(n, "committed")),
        "all abort": (w) => names.every((n) => w.in(n, "aborted")),
      },
      eventually: { "every rank knows": (w) => names.every((n) => decided(w, n)) },
    },
  });
}
