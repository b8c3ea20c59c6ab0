/** The original's commit (wire specification, section 7.7): who dies, who overwrites what, and what arrives late. */
import { assign, setup } from "xstate";
import { type Chart, effect } from "../../src/kernel/mod.ts";
import { defineModel, put, send, type World } from "../../src/checker/mod.ts";
import type { UpstreamDefect } from "./defect.ts";

type PausingEvent = { type: "pause" | "allPaused" };

const pausing: Chart<Record<never, never>, PausingEvent> = setup({
  types: {} as { events: PausingEvent },
}).createMachine({
  id: "original-commit",
  initial: "voted",
  states: {
    voted: { on: { pause: "pausing" } },
    // The pause is collective and has no timeout: it returns when every old rank pauses.
    pausing: { on: { allPaused: "switching" } },
    switching: {},
  },
});

export const rankZeroDies: UpstreamDefect = {
  name: "rank-0-dies",
  number: 33,
  what:
    "Rank 0 dies while the others pause; the control store dies with it, and the collective pause never returns.",
  ours:
    "A pause has a deadline and the operation ends with an answer: aborted before the decision, in doubt after it, with the engines to restart.",
  model: defineModel({
    name: "original: rank 0 dies",
    processes: Object.fromEntries(["rank/0", "rank/1"].map((id) => [id, {
      runs: pausing,
      may: (w: World): PausingEvent[] => [
        { type: "pause" },
        ...(["rank/0", "rank/1"].every((r) => !w.down(r) && !w.in(r, "voted"))
          ? [{ type: "allPaused" } as const]
          : []),
      ],
    }])),
    faults: { crashes: [{ nodes: ["rank/0"], budget: 1, restart: "never" }] },
    properties: {
      eventually: { "rank 1 gets out of the pause": (w) => w.in("rank/1", "switching") },
    },
  }),
  property: "rank 1 gets out of the pause",
  steps: 2,
};

type FinishingEvent = { type: "allFinished" | "resumed" | "resumeRaised" };

const finishing: Chart<Record<never, never>, FinishingEvent> = setup({
  types: {} as { events: FinishingEvent },
  actions: {
    writeCompleted: () => effect({ type: "write", key: "completed" }),
    resume: () => effect({ type: "resume" }),
    writeError: () => effect({ type: "write", key: "error" }),
  },
}).createMachine({
  id: "original-rank-0-commit",
  initial: "waiting",
  states: {
    waiting: { on: { allFinished: { target: "resuming", actions: ["writeCompleted", "resume"] } } },
    resuming: {
      on: { resumed: "done", resumeRaised: { target: "failed", actions: "writeError" } },
    },
    done: {},
    failed: {},
  },
});

export const completedThenFailed: UpstreamDefect = {
  name: "completed-then-failed",
  number: 39,
  what:
    "After `completed` is written a failing resume writes `error`, which is read first: the status says failed although the topology has switched.",
  ours:
    "Once an operation is completed its record says so for ever; a resume that fails is a failure of its own, after it.",
  model: defineModel({
    name: "original: completed then failed",
    processes: { "rank/0": { runs: finishing, may: [{ type: "allFinished" }] } },
    effects: { write: ({ key }) => [put(key, 1)] },
    calls: {
      resume: () => [
        { event: { type: "resumed" } },
        { event: { type: "resumeRaised" }, fault: "failing resumes" },
      ],
    },
    faults: { budgets: { "failing resumes": 1 } },
    properties: {
      always: {
        "what is completed does not fail": (w) =>
          w.get("completed") === undefined || w.get("error") === undefined,
      },
    },
  }),
  property: "what is completed does not fail",
  steps: 2,
};

type ApiContext = { epoch: number };
type ApiEvent = { type: "commit" | "gaveUp" | "prepare" | "finished" };

const api: Chart<ApiContext, ApiEvent> = setup({
  types: {} as { context: ApiContext; events: ApiEvent },
  guards: { isFirst: ({ context }) => context.epoch === 1 },
  actions: {
    commitEngine: ({ context }) => effect({ type: "engine.commit", epoch: context.epoch }),
    recordFinished: ({ context }) => effect({ type: "record", epoch: context.epoch }),
    nextEpoch: assign({ epoch: ({ context }) => context.epoch + 1 }),
  },
}).createMachine({
  id: "original-api-process",
  context: { epoch: 1 },
  initial: "prepared",
  // The handler of notifications writes under the epoch that is active now, whatever the notification is about.
  on: { finished: { actions: "recordFinished" } },
  states: {
    prepared: { on: { commit: { target: "waiting", actions: "commitEngine" } } },
    waiting: { on: { gaveUp: { guard: "isFirst", target: "failed" } } },
    failed: { on: { prepare: { target: "prepared", actions: "nextEpoch" } } },
  },
});

type EngineEvent = { type: "commit"; epoch: number } | { type: "switched" };

const engine: Chart<{ epoch: number }, EngineEvent> = setup({
  types: {} as { context: { epoch: number }; events: EngineEvent },
  actions: {
    note: assign({ epoch: ({ event }) => (event as { epoch: number }).epoch }),
    notify: ({ context }) => effect({ type: "engine.finished", epoch: context.epoch }),
  },
}).createMachine({
  id: "engine",
  context: { epoch: 0 },
  initial: "serving",
  states: {
    serving: { on: { commit: { target: "switching", actions: "note" } } },
    switching: { on: { switched: { target: "serving", actions: "notify" } } },
  },
});

export const lateNotification: UpstreamDefect = {
  name: "late-notification",
  number: 48,
  what:
    "A RECONFIGURE_FINISHED that belongs to a failed operation arrives during the next one and is recorded as the next one's.",
  ours:
    "A notification is taken as an answer to this operation only after its commit was asked for and acknowledged; one that comes at any other time is shown, not recorded.",
  model: defineModel({
    name: "original: late notification",
    processes: {
      api: { runs: api, may: [{ type: "commit" }, { type: "gaveUp" }, { type: "prepare" }] },
      engine: { runs: engine, may: [{ type: "switched" }] },
    },
    channels: { bus: "fifo" },
    effects: {
      "engine.commit": ({ epoch }) => [send("bus", "engine", { type: "commit", epoch })],
      "engine.finished": ({ epoch }) => [
        put(`truth/${epoch}`, "finished"),
        send("bus", "api", { type: "finished" }),
      ],
      record: ({ epoch }) => [put(`${epoch}/old_rank_finished`, 1)],
    },
    properties: {
      always: {
        "what is recorded as finished is finished": (w) =>
          [1, 2].every((e) =>
            w.get(`${e}/old_rank_finished`) === undefined || w.get(`truth/${e}`) !== undefined
          ),
      },
    },
  }),
  property: "what is recorded as finished is finished",
  steps: 6,
};

type FailingEvent = { type: "raise" } | { type: "errorSeen" };

const failing: Chart<Record<never, never>, FailingEvent> = setup({
  types: {} as { events: FailingEvent },
  actions: {
    writeCause: () => effect({ type: "error", text: "out of memory on rank 1" }),
    writeWaiting: () => effect({ type: "error", text: "scaling failed while waiting" }),
  },
}).createMachine({
  id: "original-failing-rank",
  initial: "preparing",
  states: {
    preparing: {
      on: {
        raise: { target: "failed", actions: "writeCause" },
        errorSeen: { target: "failed", actions: "writeWaiting" },
      },
    },
    failed: {},
  },
});

export const errorOverwritten: UpstreamDefect = {
  name: "error-overwritten",
  number: 38,
  what:
    "Every rank writes `error` unconditionally; the cause is replaced by the text of whoever was waiting for it.",
  ours: "The first error is the record's cause and stays; later ones are linked to it.",
  model: defineModel({
    name: "original: error overwritten",
    processes: {
      "rank/0": {
        runs: failing,
        may: (w: World): FailingEvent[] =>
          w.get("error") === undefined ? [] : [{ type: "errorSeen" }],
      },
      "rank/1": { runs: failing, may: [{ type: "raise" }] },
    },
    effects: { error: ({ text }) => [put("error", text)] },
    properties: {
      always: {
        "the error that is shown is the cause": (w) =>
          w.get("error") === undefined || w.get("error") === "out of memory on rank 1",
      },
    },
  }),
  property: "the error that is shown is the cause",
  steps: 2,
};
