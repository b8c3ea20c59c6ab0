/**
 * Checks a machine that is not Muster's: a worker that takes a lock for the time of a job. Two of them share the lock service.
 *
 * `node --import tsx examples/check-your-own-machine.ts`, or `deno run examples/check-your-own-machine.ts`.
 */
import { setup } from "xstate";
import { effect } from "../src/kernel/mod.ts";
import { check, defineModel, type Model, put, verdictText } from "../src/checker/mod.ts";

const worker = setup({
  types: {} as { events: { type: "job" | "granted" | "refused" | "done" } },
  delays: { lease: 30_000 },
  actions: {
    askForLock: () => effect({ type: "lock.acquire" }),
    giveLockBack: () => effect({ type: "lock.release" }),
  },
}).createMachine({
  id: "worker",
  initial: "idle",
  states: {
    idle: { on: { job: "asking" } },
    asking: { entry: "askForLock", on: { granted: "working", refused: "idle" } },
    working: {
      on: { done: { target: "idle", actions: "giveLockBack" } },
      // The lease is over, so somebody else may have the lock; but the worker works on.
      after: { lease: { actions: "giveLockBack" } },
    },
  },
});

/** Two workers and a lock that a lease ends. */
export const model: Model = defineModel({
  name: "two workers and a lease",
  processes: Object.fromEntries(
    ["worker/a", "worker/b"].map((id) => [id, {
      runs: worker,
      may: [{ type: "job" }, { type: "done" }],
    }]),
  ),
  calls: {
    "lock.acquire": (_, world, from) =>
      world.get("lock") === undefined
        ? [{ event: { type: "granted" }, does: [put("lock", from)] }]
        : [{ event: { type: "refused" } }],
  },
  effects: {
    "lock.release": (_, world, from) => world.get("lock") === from ? [put("lock", undefined)] : [],
  },
  properties: {
    always: {
      "one works at a time": (w) => !(w.in("worker/a", "working") && w.in("worker/b", "working")),
    },
    sometimes: { "somebody works": (w) => w.in("worker/a", "working") },
  },
});

console.log(verdictText(check(model)));
