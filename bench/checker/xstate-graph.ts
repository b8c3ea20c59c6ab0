/** Two-phase commit explored by XState's own graph utilities: the whole protocol as one machine, because they know no network. */
import { assign, setup } from "xstate";
import { getAdjacencyMap } from "xstate/graph";
import type { Count } from "./packed.ts";

interface Context {
  readonly rm: readonly string[];
  readonly tm: string;
  readonly noted: readonly number[];
  readonly sent: readonly number[];
  readonly decision: string;
}

type Event = { readonly type: "prepare" | "abort" | "note" | "obey"; readonly rank: number } | {
  readonly type: "decide" | "giveUp";
};

/** All states of two-phase commit, by `getAdjacencyMap`. */
export function graphTwoPhaseCommit(managers: number): Count {
  const set = (list: readonly string[], at: number, value: string) =>
    list.map((v, i) => i === at ? value : v);
  const machine = setup({
    types: {} as { context: Context; events: Event },
    actions: {
      step: assign(({ context: c, event: e }): Partial<Context> => {
        switch (e.type) {
          case "prepare":
            return c.rm[e.rank] === "working"
              ? { rm: set(c.rm, e.rank, "prepared"), sent: [...c.sent, e.rank].sort() }
              : {};
          case "abort":
            return c.rm[e.rank] === "working" ? { rm: set(c.rm, e.rank, "aborted") } : {};
          case "note":
            return c.tm === "init" && c.sent.includes(e.rank) && !c.noted.includes(e.rank)
              ? { noted: [...c.noted, e.rank].sort() }
              : {};
          case "obey": {
            const open = ["working", "prepared"].includes(c.rm[e.rank]!);
            return open && c.decision !== "" ? { rm: set(c.rm, e.rank, c.decision) } : {};
          }
          case "decide":
            return c.tm === "init" && c.noted.length === managers
              ? { tm: "committed", decision: "committed" }
              : {};
          case "giveUp":
            return c.tm === "init" ? { tm: "aborted", decision: "aborted" } : {};
        }
      }),
    },
  }).createMachine({
    context: {
      rm: Array(managers).fill("working"),
      tm: "init",
      noted: [],
      sent: [],
      decision: "",
    },
    on: { "*": { actions: "step" } },
  });
  const ranks = Array.from({ length: managers }, (_, rank) => rank);
  const events: Event[] = [
    ...ranks.flatMap((rank) =>
      (["prepare", "abort", "note", "obey"] as const).map((type) => ({ type, rank }))
    ),
    { type: "decide" },
    { type: "giveUp" },
  ];
  const began = performance.now();
  const map = getAdjacencyMap(machine, { events, limit: Infinity });
  const seconds = (performance.now() - began) / 1000;
  const states = Object.keys(map).length;
  return { states, generated: states * events.length, seconds };
}
