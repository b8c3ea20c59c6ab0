/**
 * Where scaling is asked for, while its cluster comes and goes: before it has formed up, while it serves, when it is broken, and after
 * operations that left engines which cannot scale again. The operations themselves are in `operation.ts`.
 */
import { defineModel, type Happening, type Model, type World } from "../src/checker/mod.ts";
import type { Json, KernelEvent } from "../src/kernel/mod.ts";
import { operations, type OperationsInput } from "../src/machines/mod.ts";
import { bystander, heard, listener } from "./bystander.ts";

export interface DeskOptions {
  /** What is done about engines that cannot scale again. */
  readonly policy: "restart" | "hold";
}

const ID = "operations";
const SIZE = 1;
const TARGET = 2;
/** So many operations, and so often may all engines start anew. */
const MOST = 2;

interface Belief {
  readonly broken: boolean;
  readonly running: boolean;
  readonly unusable: boolean;
  /** An engine gave no sign of life while the last operation was looked for its end. */
  readonly silent: boolean;
  readonly asked: number;
  readonly regrouped: number;
}

/** What is said: the outcome of an answer, or what the start-up is told. */
type Saying = "accepted" | "refused" | "failed" | "regroup";

function meaningOf(
  b: Belief,
  event: KernelEvent,
  { policy }: DeskOptions,
): { belief: Belief; says?: readonly Saying[] } {
  switch (event.type) {
    case "clusterServing":
      return { belief: { ...b, broken: false, unusable: false } };
    case "clusterBroken":
      return { belief: { ...b, broken: true } };
    case "scaleAsked": {
      if (b.running || b.broken || b.unusable) return { belief: b, says: ["refused"] };
      const asked = b.asked + 1;
      return { belief: { ...b, running: true, silent: false, asked }, says: ["accepted"] };
    }
    case "ended": {
      if (event["chart"] === "groupCall") {
        const own = b.running && event["from"] === signsOf(`op-${b.asked}`);
        return { belief: own ? { ...b, silent: true } : b };
      }
      if (event["chart"] !== "operation") return { belief: b };
      const output = event["output"] as unknown as { enginesToRestart: readonly number[] };
      const unusable = output.enginesToRestart.length > 0;
      const anew = unusable && !b.broken && policy === "restart";
      const regrouped = b.regrouped + (anew ? 1 : 0);
      return {
        belief: { ...b, running: false, unusable, regrouped },
        says: ["failed", ...(anew ? ["regroup"] as const : [])],
      };
    }
    case "restartAsked": {
      if (b.running || b.broken) return { belief: b, says: ["refused"] };
      return { belief: { ...b, regrouped: b.regrouped + 1 }, says: ["accepted", "regroup"] };
    }
    default:
      return { belief: b };
  }
}

interface Memory {
  readonly belief: Belief;
  readonly owed: readonly Saying[];
  readonly wrong: string | null;
}

function remember(memory: Memory, happening: Happening, options: DeskOptions): Memory {
  if (happening.kind === "took" && happening.instance === ID) {
    const { event, how } = happening;
    if (how === "failed" || how === "unexpected") {
      return { ...memory, wrong: `${event.type} ${how}` };
    }
    const { belief, says = [] } = meaningOf(memory.belief, event, options);
    return { ...memory, belief, owed: says };
  }
  const said = happening.kind === "effect" && happening.effect.type === "operation.answer"
    ? (happening.effect as unknown as { outcome: Saying }).outcome
    : happening.kind === "took" && happening.instance === "startup"
    ? happening.event.type
    : undefined;
  if (said === undefined) return memory;
  return memory.owed.includes(said as Saying)
    ? { ...memory, owed: memory.owed.filter((owed) => owed !== said) }
    : { ...memory, wrong: `says ${said}` };
}

const signsOf = (operation: string): string => `group/signs-${operation}`;
const silent = (operation: string): KernelEvent => ({
  type: "ended",
  chart: "groupCall",
  from: signsOf(operation),
  output: { answered: 0, unanswered: [{ rank: 0, late: true, text: "no answer" }] },
});

const failed = (operation: string, enginesToRestart: readonly number[]): KernelEvent => ({
  type: "ended",
  chart: "operation",
  from: `operation/${operation}`,
  output: {
    operation,
    outcome: "failed",
    target: TARGET,
    effectiveSize: SIZE,
    topology: null,
    firstError: null,
    laterErrors: [],
    enginesToRestart: [...enginesToRestart],
    safeToDelete: [],
    unanswered: [],
  },
});

/** The desk of a cluster of one rank. */
export function desk(options: DeskOptions): Model {
  const input: OperationsInput = {
    experts: 0,
    redundant: 0,
    maxSize: TARGET,
    size: SIZE,
    settleMs: 1,
    newcomer: null,
    joiner: null,
    watchesEngines: true,
    broken: "it has not formed up yet",
    regroup: {
      policy: options.policy,
      size: SIZE,
      whole: true,
      launches: [{ id: "engine-0", ranks: [0], namesSize: false }],
      progressMs: 0,
    },
  };
  const memory = (w: World): Memory => w.memory("history");
  const context = (w: World) => w.at(ID)!.context;
  const events = (w: World): KernelEvent[] => {
    const { running, asked, regrouped } = memory(w).belief;
    const operation = `op-${asked}`;
    return [
      { type: "clusterServing" },
      { type: "clusterBroken", text: "an engine is gone" },
      ...(asked < MOST
        ? [{ type: "scaleAsked", operation: `op-${asked + 1}`, target: TARGET, deadlineMs: 1 }]
        : []),
      ...(running ? [failed(operation, []), failed(operation, [0])] : []),
      ...(running ? [silent(operation), silent("another")] : []),
      ...(regrouped < MOST ? [{ type: "restartAsked", request: "r" }] : []),
    ].filter((event) => !(running && event.type === "scaleAsked"));
  };
  return defineModel({
    name: `the desk of a cluster that comes and goes (${options.policy})`,
    charts: { operation: listener },
    processes: {
      [ID]: { runs: operations, input: input as unknown as Json },
      startup: { runs: listener },
      others: bystander((w) => events(w).map((event) => [ID, event])),
    },
    effects: { ...heard, "operation.answer": () => [] },
    monitors: {
      history: {
        initial: {
          belief: {
            broken: true,
            running: false,
            unusable: false,
            silent: false,
            asked: 0,
            regrouped: 0,
          },
          owed: [],
          wrong: null,
        } as unknown as Json,
        step: (m, h) => remember(m as unknown as Memory, h, options) as unknown as Json,
      },
    },
    properties: {
      always: {
        "whoever asks is answered, and the start-up is told to start engines anew, when that can be":
          (w) => memory(w).owed.length === 0 && memory(w).wrong === null,
        "the desk knows whether the cluster serves, and whether its engines can scale": (w) => {
          const { broken, running, unusable, silent, regrouped } = memory(w).belief;
          const c = context(w);
          if ((c.silent.length > 0) !== silent) return false;
          return (c.broken !== null) === broken && (c.running !== null) === running &&
            (c.unusable.length > 0) === unusable && c.regrouped === regrouped &&
            w.in(ID, "running") === running;
        },
        "why engines are not started anew is known exactly where they are not": (w) =>
          context(w).held === null || context(w).unusable.length > 0,
      },
      sometimes: {
        "an operation runs": (w) => memory(w).belief.running,
        "engines cannot scale again": (w) => memory(w).belief.unusable,
      },
    },
  });
}
