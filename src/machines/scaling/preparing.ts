import { idle, type Part } from "./idle.ts";

/** Until its vote: rank 0 publishes an epoch, the others join it, engines get ready. Any rank may give up alone. */
export const preparing: Part = {
  initial: "looking",
  meta: { timers: { prepareDeadline: "deadline" } },
  after: {
    prepareDeadline: [
      { guard: "epochUnknown", target: "givingUp", actions: "blameEpochLate" },
      { target: "givingUp", actions: "blamePrepareLate" },
    ],
  },
  on: {
    ...idle,
    abort: { target: "givingUp", actions: "blameAbort" },
    errorSeen: { target: "givingUp", actions: "blameError" },
    decisionSeen: { target: "givingUp", actions: "blameDecision" },
    storeFailed: { target: "givingUp", actions: "blameStore" },
    storeLost: { target: "givingUp", actions: "blameLostStore" },
    storeServeFailed: { target: "givingUp", actions: "blameStore" },
    handshakeFailed: { target: "givingUp", actions: "blameHandshake" },
    engineLost: { target: "givingUp", actions: "blameLostEngine" },
    everyoneDecides: { actions: "noteDecides" },
  },
  states: {
    looking: {
      always: [{ guard: "leads", target: "examining" }, { target: "awaitingEpoch" }],
    },
    // ---- rank 0 -------------------------------------------------------------------------------------------
    examining: {
      entry: "lookUpEpoch",
      on: {
        epochRead: [
          { guard: "earlierUnfinished", target: "clearing", actions: "noteEarlier" },
          { target: "drawing" },
        ],
      },
    },
    clearing: {
      initial: "deciding",
      states: {
        deciding: {
          entry: "abortEarlier",
          on: {
            decided: [
              { guard: "decidedAbort", target: "recording" },
              { target: "#scaling.givingUp", actions: "blameActive" },
            ],
          },
        },
        recording: {
          entry: "failEarlier",
          on: { failureWritten: "#scaling.preparing.drawing" },
        },
      },
    },
    drawing: {
      entry: "drawEpoch",
      on: { drawn: { target: "openingStore", actions: "noteDraw" } },
    },
    openingStore: {
      entry: "openStore",
      on: { storeServing: { target: "publishing", actions: ["noteStore", "noteJoined"] } },
    },
    publishing: {
      entry: "keepStore",
      initial: "onControl",
      states: {
        onControl: { entry: "publishOnControl", on: { written: "onReconfig" } },
        onReconfig: { entry: "publishOnReconfig", on: { written: "redundancy" } },
        redundancy: {
          entry: "publishRedundancy",
          on: {
            written: [{ guard: "scalesUp", target: "greeting" }, { target: "announcing" }],
          },
        },
        // New ranks find a server before anybody is told that all is prepared.
        greeting: {
          entry: "greetNewRanks",
          on: { handshakeListening: { target: "announcing", actions: "sayGreeting" } },
        },
        announcing: {
          entry: "publishPrepared",
          on: { written: "#scaling.preparing.joining" },
        },
      },
    },
    // ---- the others ---------------------------------------------------------------------------------------
    awaitingEpoch: {
      entry: "watchEpoch",
      exit: "stopWatchingEpoch",
      on: {
        epochSeen: [
          { guard: "epochIsForeign" },
          { guard: "epochFailed", target: "#scaling.givingUp", actions: "blameEpoch" },
          { guard: "epochEnded", actions: "noteStale" },
          {
            guard: "epochHasOtherTarget",
            target: "#scaling.givingUp",
            actions: "blameTarget",
          },
          { guard: "epochPrepared", target: "joining", actions: ["noteEpoch", "noteJoined"] },
          {},
        ],
      },
    },
    // ---- every old rank -----------------------------------------------------------------------------------
    joining: {
      entry: ["watchOutcome", "watchDecides", "join"],
      on: {
        written: [
          { guard: "engineTakesPart", target: "reinitializing" },
          { target: "awaitingEngines" },
        ],
      },
    },
    reinitializing: {
      entry: ["noteTouched", "reinitialize"],
      initial: "asked",
      on: {
        utilityFailed: { target: "#scaling.givingUp", actions: "blameEngine" },
        utilityLate: { target: "#scaling.givingUp", actions: "blameSilentEngine" },
      },
      states: {
        asked: {
          on: {
            utilityReplied: "#scaling.preparing.awaitingEngines",
            utilityUnknown: "unknown",
          },
        },
        unknown: {
          entry: "checkEngineReady",
          on: {
            keyFound: "#scaling.preparing.awaitingEngines",
            keyAbsent: { target: "#scaling.givingUp", actions: "blameUnknownEngine" },
          },
        },
      },
    },
    awaitingEngines: {
      entry: "watchEngines",
      exit: "stopWaiting",
      on: { enginesReady: "prepared" },
    },
    prepared: {
      entry: "sayPrepared",
      always: { guard: "commitsByItself", target: "#scaling.voted" },
      on: { commit: "#scaling.voted" },
    },
  },
};
