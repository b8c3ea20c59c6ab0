/**
 * A utility of every rank at once: all are asked, each answers, fails or is silent, and the coordinator may crash in between and ask
 * again. Whoever asked hears once, of every rank.
 */
import { defineModel, type Happening, type Model, type World } from "../src/checker/mod.ts";
import { counted } from "../src/checker/words.ts";
import { type Json, start } from "../src/kernel/mod.ts";
import { calls, groupCall, type GroupCallOutcome, utility } from "../src/machines/mod.ts";
import { bystander, heard } from "./bystander.ts";

export interface GroupCallOptions {
  readonly ranks?: number;
  /** Crashes of the coordinator. Default 1. */
  readonly crashes?: number;
}

const NODE = "coordinator";
const METHOD = "is_scheduler_paused";

/** What became of each rank's call, as the engines' side saw it. */
interface Memory {
  readonly asked: readonly number[];
  readonly ends: Readonly<Record<string, "answered" | "failed" | "late">>;
  /** What whoever asked was told. */
  readonly told: GroupCallOutcome | null;
  readonly times: number;
  readonly wrong: string | null;
}

const rankOf = (instance: string): number => Number(instance.split("/")[1]);

function remember(memory: Memory, happening: Happening): Memory {
  if (happening.kind === "effect") {
    if (happening.effect.type !== "engine.call") return memory;
    const rank = rankOf(happening.instance);
    return { ...memory, asked: [...new Set([...memory.asked, rank])].sort() };
  }
  if (happening.kind !== "took") return memory;
  const { instance, event, how } = happening;
  if (how === "failed" || how === "unexpected") {
    const beside = event.type === "resumed";
    return beside ? memory : { ...memory, wrong: `${instance}: ${event.type} ${how}` };
  }
  if (instance === "calls" && event.type === "ended") {
    return {
      ...memory,
      told: event["output"] as unknown as Memory["told"],
      times: memory.times + 1,
    };
  }
  const end =
    ({ utilityReplied: "answered", utilityFailed: "failed", utilityLate: "late" } as const)[
      event.type as "utilityLate"
    ];
  return end === undefined
    ? memory
    : { ...memory, ends: { ...memory.ends, [rankOf(instance)]: end } };
}

/** One call of all ranks. */
export function groupCalls(options: GroupCallOptions = {}): Model {
  const { ranks: size = 2, crashes = 1 } = options;
  const ranks = Array.from({ length: size }, (_, r) => r);
  const memory = (w: World): Memory => w.memory("history");
  const ask = {
    type: "callAll",
    id: "1",
    ranks,
    request: { method: METHOD },
    deadlineMs: 1000,
  };
  return defineModel({
    name: `a utility of ${counted(size, "rank")}, ${counted(crashes, "crash", "crashes")}`,
    charts: { calls, groupCall, utility },
    boots: { [NODE]: [start("calls", "calls", null)] },
    processes: {
      operator: bystander((w) =>
        w.down(NODE) || memory(w).asked.length > 0 ? [] : [["calls", ask as never]]
      ),
    },
    effects: heard,
    calls: {
      "engine.call": ({ request }, _, __, owed) => {
        const { method } = request;
        return owed ? [{ event: { type: "utilityUnknown", method } }] : [
          { event: { type: "utilityReplied", method, value: true } },
          { event: { type: "utilityFailed", method, failure: "no such method" } },
          { event: { type: "utilityLate", method } },
        ];
      },
    },
    faults: { crashes: [{ nodes: [NODE], budget: crashes, restart: "journal" }] },
    monitors: {
      history: {
        initial: { asked: [], ends: {}, told: null, times: 0, wrong: null },
        step: (memory, h) => remember(memory as unknown as Memory, h) as unknown as Json,
      },
    },
    properties: {
      always: {
        "either all ranks are asked or none": (w) => [0, size].includes(memory(w).asked.length),
        "whoever asked is told once, when every rank's call has ended": (w) =>
          memory(w).times === (Object.keys(memory(w).ends).length === size ? 1 : 0),
        "what is told is what became of each rank's call": (w) => {
          const { told, ends } = memory(w);
          if (told === null) return true;
          const failed = ranks.filter((r) => ends[r] !== "answered");
          const unanswered = [...told.unanswered].sort((a, b) => a.rank - b.rank);
          return told.answered === size - failed.length &&
            JSON.stringify(unanswered.map(({ rank, late }) => [rank, late])) ===
              JSON.stringify(failed.map((r) => [r, ends[r] === "late"]));
        },
        "every event is one that the chart knows, and no action fails": (w) =>
          memory(w).wrong === null,
      },
      sometimes: {
        "all answer": (w) => memory(w).told?.answered === size,
        "none answers": (w) => memory(w).told?.answered === 0,
      },
      // Nobody is left with a question: after the last answer there is nothing to do.
      rest: (w) => memory(w).times === 1,
    },
  });
}
