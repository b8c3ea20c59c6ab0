import { and, type AnyStateMachine, not, setup } from "xstate";

/** Everything a chart may contain, in one small machine: regions, nesting, history, delays, guards, finals. */
export const everything: AnyStateMachine = setup({
  types: {} as {
    context: { tries: number };
    events: { type: "go" | "stop" | "tick" | "fail" | "retry" | "ready" | "open" | "shut" };
  },
  delays: { patience: 5000 },
  guards: {
    allowed: () => true,
    exhausted: ({ context }) => context.tries > 3,
    within: (_, params: { limit: number }) => params.limit > 0,
  },
  actions: {
    announce: () => undefined,
    count: () => undefined,
    say: (_, _params: { phase: string }) => undefined,
  },
}).createMachine({
  id: "everything",
  context: { tries: 0 },
  initial: "idle",
  on: { fail: ".broken" },
  states: {
    idle: {
      description: "Nothing has been asked yet.",
      on: {
        go: [
          { guard: "exhausted", target: "broken" },
          { guard: and(["allowed", not("exhausted")]), target: "running", actions: "count" },
        ],
        tick: {},
        ready: { actions: { type: "say", params: { phase: "early" } } },
      },
    },
    running: {
      type: "parallel",
      entry: "announce",
      exit: { type: "say", params: { phase: "left" } },
      onDone: "finished",
      on: { stop: "idle" },
      states: {
        door: {
          initial: "shut",
          states: {
            shut: { on: { open: "opened" } },
            opened: {
              initial: "narrow",
              states: { narrow: { after: { 250: "wide" } }, wide: { on: { shut: "#gone" } } },
              on: { shut: "shut" },
            },
            gone: { id: "gone", type: "final" },
          },
        },
        clock: {
          initial: "waiting",
          states: {
            waiting: {
              after: { patience: { target: "over", actions: "announce" } },
              on: {
                tick: { target: "waiting", reenter: true },
                go: {
                  guard: { type: "within", params: { limit: 3 } },
                  target: "#everything.running.door.opened",
                },
              },
            },
            over: { type: "final" },
            memory: { type: "history", history: "deep" },
          },
        },
      },
    },
    broken: { on: { retry: [{ target: "running.clock.memory" }] } },
    finished: { type: "final", entry: "announce" },
  },
});
