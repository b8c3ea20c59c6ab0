import { idle, type Part } from "./idle.ts";

/** The decision is commit: pause, switch, record the finish, and take the new topology over when it is known to be completed. */
export const committed: Part = {
  entry: ["sayDecided", "stopWatchingDecides"],
  initial: "settling",
  on: {
    ...idle,
    abort: { actions: "sayTooLate" },
    storeLost: [
      { guard: "losesControl", target: "stranded", actions: "blameLostStore" },
      {},
    ],
  },
  states: {
    settling: {
      tags: "inDoubt",
      initial: "switching",
      meta: { timers: { outcomeDeadline: "deadline" } },
      after: {
        outcomeDeadline: [
          { guard: "leads", target: "#scaling.givingUp", actions: "blameOutcomeLate" },
          { actions: "sayInDoubt" },
        ],
      },
      on: {
        // It can be completed only with this rank's finish key, so this rank has finished.
        completedSeen: "#scaling.committed.takingOver",
        errorSeen: { target: "#scaling.givingUp", actions: "blameError" },
      },
      states: {
        // Until its finish is recorded, this rank can still keep the operation from completing.
        switching: {
          initial: "announcing",
          on: {
            utilityFailed: { target: "#scaling.givingUp", actions: "blameEngine" },
            engineLost: { target: "#scaling.givingUp", actions: "blameLostEngine" },
          },
          states: {
            // The phase is for people: a store that does not take it does not hold up the commit.
            announcing: {
              initial: "onControl",
              states: {
                onControl: {
                  entry: "announceOnControl",
                  on: { written: "onReconfig", storeFailed: "onReconfig" },
                },
                onReconfig: {
                  entry: "announceOnReconfig",
                  on: {
                    written: "#scaling.committed.settling.switching.pausing",
                    storeFailed: "#scaling.committed.settling.switching.pausing",
                  },
                },
              },
            },
            // Collective: it returns when every old rank pauses, so a missing reply says nothing yet.
            pausing: {
              initial: "asked",
              entry: "noteTouched",
              states: {
                asked: {
                  entry: "pause",
                  on: {
                    utilityReplied: "#scaling.committed.settling.switching.requesting",
                    utilityLate: "confirming",
                    utilityUnknown: "confirming",
                  },
                },
                confirming: {
                  entry: "askPaused",
                  on: {
                    utilityReplied: [
                      {
                        guard: "isPaused",
                        target: "#scaling.committed.settling.switching.requesting",
                      },
                      { target: "waiting" },
                    ],
                    utilityLate: "waiting",
                    utilityUnknown: "waiting",
                  },
                },
                waiting: { after: { retry: "asked" } },
              },
            },
            requesting: {
              initial: "asked",
              states: {
                asked: {
                  entry: "requestCommit",
                  on: {
                    utilityReplied: "#scaling.committed.settling.switching.underWay",
                    utilityFailed: [
                      // It had taken the request before: the refusal is about the second one.
                      {
                        guard: "wasRequested",
                        target: "#scaling.committed.settling.switching.underWay",
                      },
                      { target: "#scaling.givingUp", actions: "blameEngine" },
                    ],
                    utilityLate: { target: "checking", actions: "noteRequested" },
                    utilityUnknown: { target: "checking", actions: "noteRequested" },
                  },
                },
                checking: {
                  entry: "checkFinish",
                  on: {
                    keyFound: "#scaling.committed.settling.finished",
                    keyAbsent: "asked",
                    storeFailed: "waiting",
                  },
                },
                waiting: { after: { retry: "checking" } },
              },
            },
            underWay: {
              entry: "claimNotification",
              on: {
                reconfigureFinished: "#scaling.committed.settling.recording",
                shutdownComplete: "#scaling.committed.settling.recording",
                // A leaving engine's process may be seen to end before its last word is read.
                engineLost: [
                  {
                    guard: "remains",
                    target: "#scaling.givingUp",
                    actions: "blameLostEngine",
                  },
                  {},
                ],
              },
            },
          },
        },
        recording: {
          initial: "writing",
          on: {
            engineLost: { actions: "noteEngineToRestart" },
            storeLost: [
              {
                guard: "losesControl",
                target: "#scaling.stranded",
                actions: "blameLostStore",
              },
              { target: "finished" },
            ],
          },
          states: {
            writing: {
              entry: "recordFinish",
              on: {
                written: "#scaling.committed.settling.finished",
                storeFailed: "unreachable",
              },
            },
            unreachable: { after: { retry: "writing" } },
          },
        },
        // What everybody waits for is in the stores now.
        finished: {
          entry: "watchFinishes",
          exit: "stopWaiting",
          on: {
            everyoneFinished: [
              { guard: "leads", target: "#scaling.committed.completing" },
              {},
            ],
            engineLost: { actions: "noteEngineToRestart" },
          },
        },
      },
    },
    // Rank 0 only. From here it does not call the operation failed any more.
    completing: {
      initial: "onControl",
      on: { engineLost: { actions: "noteEngineToRestart" } },
      states: {
        onControl: {
          entry: "completeOnControl",
          on: { written: "onReconfig", storeFailed: "unreachable" },
        },
        unreachable: { after: { retry: "onControl" } },
        // It is completed now, and nobody can take that back: a store that is lost settles nothing any more.
        onReconfig: {
          entry: "completeOnReconfig",
          on: { written: "phase", storeFailed: "phase", storeLost: {} },
        },
        phase: {
          entry: "completePhase",
          on: {
            storeLost: {},
            written: "#scaling.committed.takingOver",
            storeFailed: "#scaling.committed.takingOver",
          },
        },
      },
    },
    takingOver: {
      entry: "takeOver",
      always: [{ guard: "mayResume", target: "resuming" }, { target: "#scaling.completed" }],
    },
    // Collective again: new engines join by themselves.
    resuming: {
      initial: "asked",
      on: {
        storeLost: {},
        engineLost: { target: "#scaling.completed", actions: "noteEngineToRestart" },
      },
      states: {
        asked: {
          entry: ["noteAttempt", "resume"],
          on: {
            utilityReplied: "#scaling.completed",
            utilityFailed: "confirming",
            utilityLate: "confirming",
            utilityUnknown: "confirming",
          },
        },
        confirming: {
          entry: "askPaused",
          on: {
            utilityReplied: [
              { guard: "isPaused", target: "waiting" },
              { target: "#scaling.completed" },
            ],
            utilityFailed: "waiting",
            utilityLate: "waiting",
            utilityUnknown: "waiting",
          },
        },
        waiting: {
          always: {
            guard: "outOfAttempts",
            target: "#scaling.completed",
            actions: "noteEngineToRestart",
          },
          after: { retry: "asked" },
        },
      },
    },
  },
};
