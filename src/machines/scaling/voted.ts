import { idle, type Part } from "./idle.ts";

/**
 * Commit was decided, and then somebody could not carry it out and published that: without this rank's finish it is not completed. What a
 * store says is heard once, so that it would not be heard again in the commit.
 */
const DECIDED = [
  { guard: "cannotComplete", target: "givingUp", actions: "blameKnownError" },
  { guard: "decidedCommit", target: "committed" },
  { target: "givingUp", actions: "blameDecision" },
];

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
    decided: DECIDED,
    decisionSeen: DECIDED,
    everyoneDecides: [
      { guard: "objects", target: ".asking", actions: "noteDecides" },
      { actions: "noteDecides" },
    ],
    // Somebody gave up before its vote: nobody can have committed, and the key makes sure of it.
    errorSeen: { target: ".asking", actions: ["objectError", "noteError"] },
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
    asking: {
      entry: "proposeAbort",
      on: { errorSeen: { actions: "noteError" }, abort: {}, engineLost: {} },
    },
    unreachable: {
      after: { retry: [{ guard: "objects", target: "asking" }, { target: "casting" }] },
    },
  },
};
