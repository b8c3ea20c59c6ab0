/** The original's prepare (wire specification, section 7.5): an epoch that nobody owns, and an error of yesterday. */
import { setup } from "xstate";
import { type Chart, effect } from "../../src/kernel/mod.ts";
import { defineModel, put, type World } from "../../src/checker/mod.ts";
import type { UpstreamDefect } from "./defect.ts";

type PublisherEvent = {
  type: "prepare" | "alreadyActive" | "reconfigWritten" | "writeRaised" | "waitRaised";
};

const publisher: Chart<Record<never, never>, PublisherEvent> = setup({
  types: {} as { events: PublisherEvent },
  actions: {
    writeControl: () => effect({ type: "epoch.begin" }),
    writeError: () => effect({ type: "epoch.error" }),
  },
}).createMachine({
  id: "original-rank-0",
  initial: "idle",
  states: {
    idle: {
      on: { prepare: { target: "publishing", actions: "writeControl" }, alreadyActive: "refused" },
    },
    // Bootstrap, phase and current_epoch are on the control store; the reconfiguration store comes next.
    publishing: { on: { reconfigWritten: "waiting", writeRaised: "idle" } },
    // Only from here on does the handler of failures know the epoch.
    waiting: { on: { waitRaised: { target: "idle", actions: "writeError" } } },
    refused: {},
  },
});

export const wedgedEpoch: UpstreamDefect = {
  name: "wedged-epoch",
  number: 32,
  what:
    "A write that raises between current_epoch and the function's return leaves an epoch that nobody will end; every later prepare is refused.",
  ours:
    "An operation has one owner whose journal knows the epoch before it is written; after a crash the owner aborts it, and the next attempt works.",
  model: defineModel({
    name: "original: wedged epoch",
    processes: {
      "rank/0": {
        runs: publisher,
        may: (w: World): PublisherEvent[] => [
          { type: w.get("control/active") === undefined ? "prepare" : "alreadyActive" },
          { type: "reconfigWritten" },
          { type: "writeRaised" },
          { type: "waitRaised" },
        ],
      },
    },
    effects: {
      "epoch.begin": () => [put("control/active", "E1")],
      "epoch.error": () => [put("control/active", undefined)],
    },
    properties: {
      always: {
        "a prepare is not refused while no operation runs": (w) => !w.in("rank/0", "refused"),
      },
    },
  }),
  property: "a prepare is not refused while no operation runs",
  steps: 3,
};

type FollowerEvent = { type: "prepare" | "publish" | "errorSeen" | "bootstrapSeen" };

const follower: Chart<Record<never, never>, FollowerEvent> = setup({
  types: {} as { events: FollowerEvent },
  actions: { publish: () => effect({ type: "epoch.publish" }) },
}).createMachine({
  id: "original-rank",
  initial: "idle",
  states: {
    idle: { on: { prepare: "polling", publish: { target: "joined", actions: "publish" } } },
    polling: { on: { errorSeen: "failed", bootstrapSeen: "joined" } },
    joined: {},
    failed: {},
  },
});

export const staleError: UpstreamDefect = {
  name: "stale-error",
  number: 36,
  what:
    "A rank that missed a failed operation reads its error as that of the next one, and stays away from it.",
  ours:
    "Keys and errors are read under the operation's own epoch, which the request names; an older epoch's error is nobody's any more.",
  model: defineModel({
    name: "original: stale error",
    processes: {
      // Rank 0 publishes the next operation; rank 1 was not there when E1 failed.
      "rank/0": { runs: follower, may: [{ type: "publish" }] },
      "rank/1": {
        runs: follower,
        may: (w: World): FollowerEvent[] => [
          { type: "prepare" },
          ...(w.get(`${w.get("current_epoch")}/error`) !== undefined
            ? [{ type: "errorSeen" } as const]
            : []),
          ...(w.get(`${w.get("current_epoch")}/bootstrap`) !== undefined
            ? [{ type: "bootstrapSeen" } as const]
            : []),
        ],
      },
    },
    store: { "current_epoch": "E1", "E1/error": "a rank was lost" },
    effects: {
      "epoch.publish": () => [put("current_epoch", "E2"), put("E2/bootstrap", { size: 3 })],
    },
    properties: {
      always: {
        "no rank fails an operation in which nothing went wrong": (w) => !w.in("rank/1", "failed"),
      },
      sometimes: { "both join": (w) => w.in("rank/0", "joined") && w.in("rank/1", "joined") },
    },
  }),
  property: "no rank fails an operation in which nothing went wrong",
  steps: 2,
};
