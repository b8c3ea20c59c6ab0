/**
 * Two-phase commit after Gray and Lamport ("Consensus on Transaction Commit"): the common yardstick of model checkers.
 *
 * Messages are never taken away; a message that was sent once can always be received. 288 states with 3 resource managers, 8,832
 * with 5, 296,448 with 7, 1,745,408 with 8.
 */
import { assign, setup } from "xstate";
import { type Chart, effect } from "../src/kernel/mod.ts";
import { defineModel, type Model, send, type Split, type World } from "../src/checker/mod.ts";

type ManagerEvent = { type: "Prepare" | "ChooseToAbort" | "Commit" | "Abort" };

const manager: Chart<Record<never, never>, ManagerEvent> = setup({
  types: {} as { events: ManagerEvent },
  actions: { sendPrepared: () => effect({ type: "prepared" }) },
}).createMachine({
  id: "resource-manager",
  initial: "working",
  states: {
    working: {
      on: {
        Prepare: { target: "prepared", actions: "sendPrepared" },
        ChooseToAbort: "aborted",
        Commit: "committed",
        Abort: "aborted",
      },
    },
    prepared: { on: { Commit: "committed", Abort: "aborted" } },
    committed: { on: { Commit: {}, Abort: {} } },
    aborted: { on: { Commit: {}, Abort: {} } },
  },
});

type CoordinatorContext = { managers: number; prepared: number[] };
type CoordinatorEvent = { type: "Prepared"; manager: number } | { type: "Decide" | "GiveUp" };

const coordinator: Chart<CoordinatorContext, CoordinatorEvent> = setup({
  types: {} as {
    context: CoordinatorContext;
    events: CoordinatorEvent;
    input: { managers: number };
  },
  guards: {
    allPrepared: ({ context }) => context.prepared.length === context.managers,
    isNew: ({ context, event }) =>
      event.type === "Prepared" && !context.prepared.includes(event.manager),
  },
  actions: {
    note: assign(({ context, event }) => ({
      prepared: [...context.prepared, (event as { manager: number }).manager].sort((a, b) => a - b),
    })),
    sendCommit: () => effect({ type: "commit" }),
    sendAbort: () => effect({ type: "abort" }),
  },
}).createMachine({
  id: "transaction-manager",
  context: ({ input }) => ({ managers: input.managers, prepared: [] }),
  initial: "init",
  states: {
    init: {
      on: {
        Prepared: { guard: "isNew", actions: "note" },
        Decide: { guard: "allPrepared", target: "committed", actions: "sendCommit" },
        GiveUp: { target: "aborted", actions: "sendAbort" },
      },
    },
    committed: { on: { Prepared: {} } },
    aborted: { on: { Prepared: {} } },
  },
});

/** Two-phase commit with so many resource managers. */
export function twoPhaseCommit(managers: number): Model {
  const names = Array.from({ length: managers }, (_, r) => `rm/${r}`);
  return defineModel({
    name: `two-phase commit with ${managers} resource managers`,
    processes: {
      tm: {
        runs: coordinator,
        input: { managers },
        may: [{ type: "Decide" }, { type: "GiveUp" }],
      },
      ...Object.fromEntries(
        names.map((name) => [name, {
          runs: manager,
          may: [{ type: "Prepare" }, { type: "ChooseToAbort" }],
        }]),
      ),
    },
    channels: { net: "set" },
    effects: {
      prepared: (_, __, from) => [
        send("net", "tm", { type: "Prepared", manager: Number(from.slice(3)) }),
      ],
      commit: () => [send("net", names, { type: "Commit" })],
      abort: () => [send("net", names, { type: "Abort" })],
    },
    properties: {
      always: {
        "no manager aborts while another commits": (w: World) =>
          !(names.some((n) => w.in(n, "aborted")) && names.some((n) => w.in(n, "committed"))),
      },
      sometimes: {
        "all commit": (w) => names.every((n) => w.in(n, "committed")),
        "all abort": (w) => names.every((n) => w.in(n, "aborted")),
      },
    },
    symmetric: {
      size: managers,
      split: ({ name, kind, value }): Split => {
        if (name.startsWith("rm/")) {
          return { each: { [Number(name.slice(3))]: value.place.view.value } };
        }
        if (name === "tm") {
          const { value: state, context } = value.place.view;
          const noted = context.prepared.map((r: number) => [r, "noted"]);
          return { shared: state, each: Object.fromEntries(noted) };
        }
        if (kind === "channel" && value?.type === "Prepared") {
          return { each: { [value.manager]: "sent" } };
        }
        return { shared: value };
      },
    },
  });
}
