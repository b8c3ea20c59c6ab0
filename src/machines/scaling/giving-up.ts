import { idle, type Part } from "./idle.ts";

/** It publishes why, where others may see something of this epoch, and has failed. */
export const givingUp: Part = {
  entry: ["noteFailed", "stopWatchingDecides"],
  initial: "deciding",
  on: { ...idle },
  states: {
    deciding: {
      always: [{ guard: "publishedNothing", target: "#scaling.failed" }, {
        target: "onControl",
      }],
    },
    // Others wait for what the control store says, so it is told until it is gone for good.
    onControl: {
      entry: "failOnControl",
      on: {
        failureWritten: "onReconfig",
        storeFailed: "unreachable",
        storeLost: [{ guard: "losesControl", target: "onReconfig" }, {}],
      },
    },
    unreachable: {
      after: { retry: "onControl" },
      on: { storeLost: [{ guard: "losesControl", target: "onReconfig" }, {}] },
    },
    onReconfig: {
      entry: "failOnReconfig",
      on: { failureWritten: "#scaling.failed", storeFailed: "#scaling.failed" },
    },
  },
};
