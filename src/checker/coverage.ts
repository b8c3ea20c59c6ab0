/**
 * What a check went through of each chart: states, transitions, pairs of transitions, guards both ways; and which faults struck in which
 * states. A property that holds in a model that never goes anywhere says nothing.
 */
import type { AnyStateMachine, StateValue } from "xstate";
import type { MicroTransition } from "../kernel/mod.ts";
import type { Behaviour } from "./behaviour.ts";
import { type Checking, UnsuitedFingerprintsError } from "./check.ts";
import { Cursor } from "./space.ts";
import {
  type Node,
  nodesWithin,
  possibleAnswers,
  stepsWithin,
  type StepWithin,
  transitionName,
  transitionsOf,
} from "./steps-within.ts";
import { shown } from "./trace.ts";

export interface ChartCoverage {
  readonly chart: string;
  readonly states: Covered;
  /** By source state, event (none for `always`) and position among the alternatives. */
  readonly transitions: Covered;
  /** Of two transitions, taken one right after the other: `a then b`. All that the chart's structure allows; guards may allow fewer. */
  readonly pairs: Covered;
  /** Each guard answered with yes, and with no, where XState asked it. */
  readonly guards: Covered;
}

export interface Covered {
  readonly seen: readonly string[];
  readonly missed: readonly string[];
}

export interface Coverage {
  readonly charts: readonly ChartCoverage[];
  /** How often a fault was possible, by fault and by the state that an instance was in: `crash coordinator` x `startup forming`. */
  readonly faults: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/**
 * The coverage of a finished check. Takes each step of each chart once more, and walks over the states once more for the faults.
 *
 * @throws UnsuitedFingerprintsError when the states were not kept.
 */
export function coverageOf(checking: Checking): Coverage {
  assertStatesKept(checking);
  const charts = checking.space.behaviours.flatMap((behaviour) =>
    behaviour.chart === undefined ? [] : [chartCoverage(behaviour, behaviour.chart)]
  );
  return { charts, faults: faultsByState(checking) };
}

/** What looks at all states again needs them. */
export function assertStatesKept({ options, model }: Checking): void {
  if (options.fingerprints !== true) return;
  throw new UnsuitedFingerprintsError(
    `model ${model.name}: this looks at all states again, which fingerprints do not keep`,
  );
}

/** Coverage in words: what was missed, and how much there is. */
export function coverageText({ charts, faults }: Coverage): string {
  const lines: string[] = [];
  const of = ({ seen, missed }: Covered) => `${seen.length} of ${seen.length + missed.length}`;
  for (const { chart, states, transitions, pairs, guards } of charts) {
    lines.push(
      `${chart}: states ${of(states)}, transitions ${
        of(transitions)
      }, pairs ${pairs.seen.length} of at most ${
        pairs.seen.length + pairs.missed.length
      }, guards both ways ${of(guards)}`,
      ...states.missed.map((s) => `  never in ${s}`),
      ...transitions.missed.map((t) => `  never took ${t}`),
      ...guards.missed.map((g) => `  never ${g}`),
    );
  }
  for (const [fault, states] of Object.entries(faults)) {
    lines.push(`${fault}:`);
    for (const [state, count] of Object.entries(states).sort(([, a], [, b]) => b - a)) {
      lines.push(`  while ${state}: ${count} times`);
    }
  }
  return lines.join("\n");
}

/** The states of its chart that a program was ever in, by their ids. */
export function activeStates({ chart, places }: Behaviour): Set<string> {
  if (chart === undefined) return new Set();
  return new Set(places.flatMap((place) => activeIn(chart, place.view.value)));
}

function chartCoverage(behaviour: Behaviour, chart: AnyStateMachine): ChartCoverage {
  const nodes = nodesWithin(chart.root as Node);
  const { steps, answers } = stepsWithin(behaviour, chart);
  const transitions = nodes.flatMap(transitionsOf);
  return {
    chart: chart.id,
    states: split(nodes.map((n) => n.id), activeStates(behaviour)),
    transitions: split(
      transitions.map(transitionName),
      new Set(steps.flatMap((s) => s.taken.flat())),
    ),
    pairs: split(possiblePairs(nodes, transitions), pairsOf(steps)),
    guards: split(possibleAnswers(nodes), answers),
  };
}

const split = (all: readonly string[], seen: ReadonlySet<string>): Covered => ({
  seen: all.filter((name) => seen.has(name)),
  missed: all.filter((name) => !seen.has(name)),
});

/** Ids of the nodes that a state value is in. */
export function activeIn(chart: AnyStateMachine, value: unknown): string[] {
  const root = chart.root as Node;
  const ids = [root.id];
  const enter = (node: Node, value: unknown): void => {
    if (typeof value === "string") {
      const child = node.states[value] as Node | undefined;
      if (child !== undefined) ids.push(child.id);
    } else if (typeof value === "object" && value !== null) {
      for (const [name, inner] of Object.entries(value)) {
        const child = node.states[name] as Node | undefined;
        if (child === undefined) continue;
        ids.push(child.id);
        enter(child, inner);
      }
    }
  };
  enter(root, value);
  return ids;
}

const pairName = (first: string, second: string): string => `${first} then ${second}`;

/** Pairs within a step, and from a step to the next that the same state takes. */
function pairsOf(steps: readonly StepWithin[]): Set<string> {
  const begun = new Map<number, Set<string>>();
  for (const { before, taken: [first] } of steps) {
    if (before === undefined || first === undefined) continue;
    const names = begun.get(before.index) ?? new Set();
    begun.set(before.index, names);
    for (const name of first) names.add(name);
  }
  const pairs = new Set<string>();
  const meet = (some: Iterable<string>, others: Iterable<string>): void => {
    for (const first of some) for (const second of others) pairs.add(pairName(first, second));
  };
  for (const { to, taken } of steps) {
    for (let i = 1; i < taken.length; i++) meet(taken[i - 1]!, taken[i]!);
    const last = taken.at(-1);
    if (last !== undefined) meet(last, begun.get(to.index) ?? []);
  }
  return pairs;
}

/** Pairs of which the second may start where the first leads, guards aside. */
function possiblePairs(
  nodes: readonly Node[],
  transitions: readonly MicroTransition[],
): string[] {
  const byId = new Map(nodes.map((n) => [n.id, n]));
  return transitions.flatMap((first) => {
    const there = activeAfter(byId.get(first.source.id)!, first);
    return transitions
      .filter(({ source }) => there.has(source.id))
      .map((second) => pairName(transitionName(first), transitionName(second)));
  });
}

/** States that may be active after a transition. */
function activeAfter(source: Node, { target }: MicroTransition): Set<string> {
  const active = new Set<string>();
  const all = (node: Node): void => {
    for (const { id } of nodesWithin(node)) active.add(id);
  };
  const enter = (node: Node): void => {
    active.add(node.id);
    if (node.type === "history") all(node.parent as Node);
    else if (node.type === "parallel") {
      for (const region of Object.values(node.states)) enter(region);
    } else for (const inner of node.initial?.target ?? []) enter(inner as Node);
  };
  const targets = target as readonly Node[] | undefined;
  if (targets === undefined || targets.length === 0) all(source);
  for (const node of targets ?? []) enter(node);
  for (const node of targets?.length ? targets : [source]) {
    for (let at: Node | undefined = node; at !== undefined; at = at.parent as Node | undefined) {
      active.add(at.id);
      const parent = at.parent as Node | undefined;
      // The other regions may be anywhere.
      if (parent?.type === "parallel") {
        for (const region of Object.values(parent.states)) if (region !== at) all(region);
      }
    }
  }
  return active;
}

/** For each fault that a state allows, the states of all instances at that time, where they are names. */
function faultsByState({ search, space }: Checking): Coverage["faults"] {
  const faults: Record<string, Record<string, number>> = {};
  const cursor = new Cursor();
  space.look(cursor);
  for (let i = 0; i < search.table.count; i++) {
    const possible = new Set<string>();
    search.forEachEdge(i, (action) => {
      const { fault, kind, to } = search.space.actions[action]!;
      if (fault) possible.add(`${kind} ${to ?? ""}`.trim());
    });
    if (possible.size === 0) continue;
    const states = Object.entries(shown(space, search.values(i))).flatMap(([id, value]) => {
      const state = (value as { state?: unknown }).state;
      return isStateValue(state)
        ? [`${id} ${typeof state === "string" ? state : JSON.stringify(state)}`]
        : [];
    });
    for (const fault of possible) {
      const counts = faults[fault] ??= {};
      for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
    }
  }
  return faults;
}

/** As a chart's: a name, or names within names. The state of a program of another kind may be anything, and is no class of states. */
const isStateValue = (state: unknown): state is StateValue =>
  typeof state === "string" ||
  typeof state === "object" && state !== null && !Array.isArray(state) &&
    Object.values(state).every(isStateValue);
