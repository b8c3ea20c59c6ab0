import { idle, type Part } from "./idle.ts";

/** Its `commit_ready` is handed to the store: in doubt until the write-once key is read. */
export const voted: Part = {
  tags: "inDoubt",
  initial: "casting",
  meta: { timers: { voteDeadline: "deadline" } },
  after: {
    voteDeadline: [
      { guard: "everyoneDecides", target: ".asking", actions: "objectLate" },
      { actions: ["objectLate", "sayInDoubt"] },
    ],
  },
  on: {
    ...idle,
    decided: [
      { guard: "decidedCommit", target: "committed" },
      { target: "givingUp", actions: "blameDecision" },
    ],
    decisionSeen: [
      { guard: "decidedCommit", target: "committed" },
      { target: "givingUp", actions: "blameDecision" },
    ],
    everyoneDecides: [
      { guard: "objects", target: ".asking", actions: "noteDecides" },
      { actions: "noteDecides" },
    ],
    // Somebody gave up before its vote: nobody can have committed, and the key makes sure of it.
    errorSeen: { target: ".asking", actions: "objectError" },
    abort: [
      { guard: "everyoneDecides", target: ".asking", actions: "objectAbort" },
      { actions: ["objectAbort", "sayInDoubt"] },
    ],
    engineLost: [
      { guard: "everyoneDecides", target: ".asking", actions: "objectEngine" },
      { actions: ["objectEngine", "sayInDoubt"] },
    ],
    storeLost: [
      { guard: "losesControl", target: "stranded", actions: "blameLostStore" },
      { guard: "everyoneDecides", target: ".asking", actions: "objectStore" },
      { actions: ["objectStore", "sayInDoubt"] },
    ],
    storeFailed: ".unreachable",
  },
  states: {
    casting: { entry: "castVote", on: { written: "awaitingVotes" } },
    awaitingVotes: {
      entry: "watchVotes",
      exit: "stopWaiting",
      on: { everyoneVoted: "deciding" },
    },
    deciding: { entry: "proposeCommit" },
    asking: { entry: "proposeAbort", on: { errorSeen: {}, abort: {}, engineLost: {} } },
    unreachable: {
      after: { retry: [{ guard: "objects", target: "asking" }, { target: "casting" }] },
    },
  },
};
