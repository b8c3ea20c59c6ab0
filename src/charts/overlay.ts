import type { ChartModel } from "./model.ts";
import { nodesOf, transitionsOf } from "./model.ts";

/** What a run adds to a chart. Every part may be missing; writers show what is there. */
export interface ChartOverlay {
  /** Ids of the states that are active at the moment shown. */
  readonly active?: ReadonlySet<string>;
  /** How often each state was entered, by state id. */
  readonly visits?: ReadonlyMap<string, number>;
  /** How often each transition was taken, by transition id. */
  readonly taken?: ReadonlyMap<string, number>;
  /** Events that were refused or unexpected in a state: state id to event type to count. */
  readonly refused?: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** The transition taken last. */
  readonly last?: string;
  /** Show what was never visited or taken as such (a coverage picture). */
  readonly coverage?: boolean;
}

export interface Coverage {
  readonly states: {
    readonly seen: number;
    readonly all: number;
    readonly missed: readonly string[];
  };
  readonly transitions: {
    readonly seen: number;
    readonly all: number;
    readonly missed: readonly string[];
  };
}

/**
 * Which states and transitions of a chart a check or a journal has seen.
 * The root and history states are not counted: the first is always active, the second never.
 */
export function coverageOf(model: ChartModel, overlay: ChartOverlay): Coverage {
  const states = nodesOf(model)
    .filter((node) => node.parent !== undefined && node.kind !== "history")
    .map((node) => node.id);
  const transitions = transitionsOf(model).map((t) => t.id);
  return {
    states: countOf(states, overlay.visits),
    transitions: countOf(transitions, overlay.taken),
  };
}

function countOf(ids: readonly string[], counts: ReadonlyMap<string, number> | undefined) {
  const missed = ids.filter((id) => !(counts?.get(id)));
  return { seen: ids.length - missed.length, all: ids.length, missed };
}

/** The ids of the active states for an XState state value (`"a"`, `{a: {b: "c"}}`), ancestors included. */
export function activeStates(model: ChartModel, value: unknown): ReadonlySet<string> {
  const active = new Set<string>([model.root.id]);
  const visit = (node: ChartModel["root"], part: unknown): void => {
    const wanted: readonly [string, unknown][] = typeof part === "string"
      ? [[part, undefined]]
      : Object.entries(part ?? {});
    for (const [key, rest] of wanted) {
      const child = node.children.find((c) => c.key === key);
      if (!child) continue;
      active.add(child.id);
      if (rest !== undefined) visit(child, rest);
    }
  };
  visit(model.root, value);
  return active;
}
