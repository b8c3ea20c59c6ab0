/**
 * What a check went through of each chart: states, transitions, pairs of transitions, guards both ways; and which faults struck in which
 * states. A property that holds in a model that never goes anywhere says nothing.
 */
import type { AnyStateMachine, StateNode } from "xstate";
import type { Behaviour, Place, Taken } from "./behaviour.ts";
import type { Checking } from "./check.ts";
import { Cursor } from "./space.ts";
import { shown, type Trace, traceOf } from "./trace.ts";

export interface ChartCoverage {
  readonly chart: string;
  readonly states: Covered;
  /** By source state, event and position among the alternatives. */
  readonly transitions: Covered;
  /** Of two transitions, taken one right after the other by some instance. */
  readonly pairs: number;
  /** Each guard answered with yes, and with no. */
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

/** The coverage of a finished check. Walks over its states once more for the faults. */
export function coverageOf(checking: Checking): Coverage {
  const charts = checking.space.behaviours.flatMap((behaviour) =>
    behaviour.chart === undefined ? [] : [chartCoverage(behaviour, behaviour.chart)]
  );
  return { charts, faults: faultsByState(checking) };
}

/** How a state or a transition of a chart is reached first, by which instance. */
export interface ReachedFirst {
  readonly chart: string;
  readonly what: string;
  readonly instance: string;
  /** The shortest run, if the check was breadth-first. */
  readonly trace: Trace;
}

/** A run to every state and every transition of every chart that a finished check met, without anybody asking for them. */
export function witnessesOf(checking: Checking): ReachedFirst[] {
  const { search, space } = checking;
  const found = new Map<string, ReachedFirst>();
  const note = (chart: string, what: string, instance: string, choices: () => number[]): void => {
    const key = `${chart} ${what}`;
    if (!found.has(key)) {
      found.set(key, { chart, what, instance, trace: traceOf(space, choices()) });
    }
  };
  const nobody = new Map<string, Set<boolean>>();
  for (let i = 0; i < search.table.count; i++) {
    const values = search.values(i);
    const here = new Map<string, Place>();
    for (const { kind, name, column } of space.components.all) {
      if (kind !== "instance") continue;
      const value = space.components.instanceOf(column, values[column] ?? 0);
      const chart = value?.behaviour.chart;
      if (value === undefined || chart === undefined) continue;
      here.set(name, value.place);
      for (const id of activeIn(chart, value.place.view.value)) {
        note(chart.id, id, name, () => search.path(i));
      }
    }
    search.forEachEdge(i, (action, _, ordinal) => {
      const { to, event } = space.actions[action]!;
      const before = to === undefined ? undefined : here.get(to);
      if (before === undefined || event === undefined) return;
      const column = space.components.instance(to!);
      const chart = space.components.instanceOf(column, values[column]!)!.behaviour.chart!;
      for (const what of asked(chart, { before, event }, nobody)) {
        note(chart.id, what, to!, () => [...search.path(i), ordinal]);
      }
    });
  }
  return [...found.values()];
}

/** Coverage in words: what was missed, and how much there is. */
export function coverageText({ charts, faults }: Coverage): string {
  const lines: string[] = [];
  const of = ({ seen, missed }: Covered) => `${seen.length} of ${seen.length + missed.length}`;
  for (const { chart, states, transitions, pairs, guards } of charts) {
    lines.push(
      `${chart}: states ${of(states)}, transitions ${
        of(transitions)
      }, pairs ${pairs}, guards both ways ${of(guards)}`,
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

// deno-lint-ignore no-explicit-any
type Node = StateNode<any, any>;

/** The states of its chart that a program was ever in, by their ids. */
export function activeStates({ chart, places }: Behaviour): Set<string> {
  if (chart === undefined) return new Set();
  return new Set(places.flatMap((place) => activeIn(chart, place.view.value)));
}

function chartCoverage(behaviour: Behaviour, chart: AnyStateMachine): ChartCoverage {
  const nodes = allNodes(chart.root as Node);
  const active = activeStates(behaviour);
  const taken = new Map<Taken, string[]>();
  const answers = new Map<string, Set<boolean>>();
  for (const entry of behaviour.log) taken.set(entry, asked(chart, entry, answers));
  const names = nodes.flatMap((n) => transitionsOf(n));
  const seen = new Set([...taken.values()].flat());
  const guards = guardNames(nodes).flatMap((name) => [`${name} yes`, `${name} no`]);
  const answered = new Set(
    [...answers].flatMap(([name, a]) => [...a].map((yes) => `${name} ${yes ? "yes" : "no"}`)),
  );
  return {
    chart: chart.id,
    states: split(nodes.map((n) => n.id), active),
    transitions: split(names, seen),
    pairs: pairsOf(taken),
    guards: split(guards, answered),
  };
}

const split = (all: readonly string[], seen: ReadonlySet<string>): Covered => ({
  seen: all.filter((name) => seen.has(name)),
  missed: all.filter((name) => !seen.has(name)),
});

function allNodes(node: Node): Node[] {
  return [node, ...Object.values(node.states as Record<string, Node>).flatMap(allNodes)];
}

/** Ids of the nodes that a state value is in. */
function activeIn(chart: AnyStateMachine, value: unknown): string[] {
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

/** Transitions that events cause. Those that are taken by themselves (`always`) are seen by the states that they lead to. */
const transitionsOf = (node: Node): string[] =>
  [...(node.transitions as Map<string, readonly unknown[]>)].flatMap(([event, alternatives]) =>
    event === ""
      ? []
      : alternatives.map((_, i) =>
        `${node.id} on ${event}${alternatives.length > 1 ? ` #${i + 1}` : ""}`
      )
  );

interface Alternative {
  readonly guard?: unknown;
}

function guardNames(nodes: readonly Node[]): string[] {
  const names = new Set<string>();
  for (const node of nodes) {
    for (const [event, alternatives] of node.transitions as Map<string, readonly Alternative[]>) {
      if (event === "") continue;
      for (const { guard } of alternatives) if (guard !== undefined) names.add(nameOf(guard));
    }
  }
  return [...names];
}

const nameOf = (guard: unknown): string => {
  if (typeof guard === "string") return guard;
  const { type, params } = guard as { type: string; params?: unknown };
  return params === undefined ? type : `${type}(${JSON.stringify(params)})`;
};

/** The transitions that a step selected, asking the guards on the way. */
function asked(
  chart: AnyStateMachine,
  { before, event }: Pick<Taken, "before" | "event">,
  answers: Map<string, Set<boolean>>,
): string[] {
  const { value, context } = before.view;
  const active = new Set(activeIn(chart, value));
  const found: string[] = [];
  const nodes = allNodes(chart.root as Node).filter((n) => active.has(n.id));
  for (const node of nodes.filter((n) => !nodes.some((m) => m.parent === n))) {
    for (let at: Node | undefined = node; at !== undefined; at = at.parent as Node | undefined) {
      const alternatives = (at.transitions as Map<string, readonly Alternative[]>).get(event.type);
      if (alternatives === undefined) continue;
      const i = alternatives.findIndex(({ guard }) =>
        guard === undefined || answer(chart, guard, context, event, answers)
      );
      if (i < 0) continue;
      found.push(`${at.id} on ${event.type}${alternatives.length > 1 ? ` #${i + 1}` : ""}`);
      break;
    }
  }
  return found;
}

function answer(
  chart: AnyStateMachine,
  guard: unknown,
  context: unknown,
  event: unknown,
  answers: Map<string, Set<boolean>>,
): boolean {
  const { type, params } = typeof guard === "string"
    ? { type: guard, params: undefined }
    : guard as { type: string; params?: unknown };
  const implementation = (chart.implementations.guards as Record<string, unknown>)[type];
  if (typeof implementation !== "function") return true;
  const yes = implementation({ context, event }, params) === true;
  const name = nameOf(guard);
  answers.set(name, (answers.get(name) ?? new Set()).add(yes));
  return yes;
}

function pairsOf(taken: ReadonlyMap<Taken, readonly string[]>): number {
  const from = new Map<number, Set<string>>();
  for (const [{ before }, names] of taken) {
    const there = from.get(before.index) ?? new Set();
    from.set(before.index, there);
    for (const name of names) there.add(name);
  }
  const pairs = new Set<string>();
  for (const [{ step }, names] of taken) {
    for (const first of names) {
      for (const second of from.get(step.to.index) ?? []) pairs.add(`${first} then ${second}`);
    }
  }
  return pairs.size;
}

/** For each fault that a state allows, the states of all instances at that time. */
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
      return state === undefined
        ? []
        : [`${id} ${typeof state === "string" ? state : JSON.stringify(state)}`];
    });
    for (const fault of possible) {
      const counts = faults[fault] ??= {};
      for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
    }
  }
  return faults;
}
