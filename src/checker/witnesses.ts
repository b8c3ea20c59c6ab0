/** A run to every state and every transition that a check met, without anybody asking for them. */
import type { AnyStateMachine } from "xstate";
import type { Place } from "./behaviour.ts";
import type { Checking } from "./check.ts";
import { activeIn, assertStatesKept } from "./coverage.ts";
import { stepsWithin } from "./steps-within.ts";
import { type Told, type Trace, traceOf, Walk } from "./trace.ts";

/** How a state or a transition of a chart is reached first, by which instance. */
export interface ReachedFirst {
  readonly chart: string;
  readonly what: string;
  readonly instance: string;
  /** The shortest run, if the check was breadth-first. */
  readonly trace: Trace;
}

/** Steps that have to be looked into are looked into in so many states. */
const LOOKED_INTO = 20_000;

/** A step of a chart: by its state and the event. */
const stepKey = (chart: string, place: number, event: string): string =>
  `${chart} ${place} ${event}`;

/**
 * A run to every state and every transition of every chart that a finished check met. Transitions that one instance causes in another, or that
 * change nothing, are looked for in the first 20,000 states only.
 *
 * @throws UnsuitedFingerprintsError when the states were not kept.
 */
export function witnessesOf(checking: Checking): ReachedFirst[] {
  assertStatesKept(checking);
  const { search, space } = checking;
  const within = new Map<string, readonly string[]>();
  const started = new Map<Place, readonly string[]>();
  const charts = new Map<Place, AnyStateMachine>();
  const wanted = new Set<string>();
  for (const behaviour of space.behaviours) {
    const { chart } = behaviour;
    if (chart === undefined) continue;
    for (const place of behaviour.places) charts.set(place, chart);
    for (const { before, to, key, taken } of stepsWithin(behaviour, chart).steps) {
      const names = taken.flat();
      for (const name of names) wanted.add(`${chart.id} ${name}`);
      if (before !== undefined) within.set(stepKey(chart.id, before.index, key), names);
      else started.set(to, names);
    }
  }
  const found = new Map<string, ReachedFirst>();
  const note = (chart: string, what: string, instance: string, choices: () => number[]): void => {
    const key = `${chart} ${what}`;
    wanted.delete(key);
    if (!found.has(key)) {
      found.set(key, { chart, what, instance, trace: traceOf(space, choices()) });
    }
  };
  for (let i = 0; i < search.table.count; i++) {
    for (const [name, { chart, place }] of instancesIn(checking, search.values(i))) {
      for (const id of activeIn(chart, place.view.value)) {
        note(chart.id, id, name, () => search.path(i));
      }
      for (const what of started.get(place) ?? []) note(chart.id, what, name, () => search.path(i));
    }
  }
  for (let i = 0; i < search.table.count && wanted.size > 0; i++) {
    const here = instancesIn(checking, search.values(i));
    search.forEachEdge(i, (action, _, ordinal) => {
      const { to, event } = space.actions[action]!;
      const at = to === undefined ? undefined : here.get(to);
      if (at === undefined || event === undefined) return;
      const { chart, place } = at;
      for (const what of within.get(stepKey(chart.id, place.index, JSON.stringify(event))) ?? []) {
        note(chart.id, what, to!, () => [...search.path(i), ordinal]);
      }
    });
  }
  for (let i = 0; i < Math.min(search.table.count, LOOKED_INTO) && wanted.size > 0; i++) {
    const look = (happened: readonly Told[], choice: number | undefined): void => {
      for (const { happening, place } of happened) {
        const chart = place === undefined ? undefined : charts.get(place);
        if (happening.kind !== "took" || chart === undefined) continue;
        const { instance, event } = happening;
        const key = stepKey(chart.id, place!.index, JSON.stringify(event));
        for (const what of within.get(key) ?? []) {
          note(chart.id, what, instance, () => [
            ...search.path(i),
            ...(choice === undefined ? [] : [choice]),
          ]);
        }
      }
    };
    new Walk(space, search.values(i)).each(
      (_action, _values, happened, choice) => look(happened, choice),
      (happened) => look(happened, undefined),
    );
  }
  return [...found.values()].sort((a, b) => a.trace.steps.length - b.trace.steps.length);
}

interface Here {
  readonly chart: AnyStateMachine;
  readonly place: Place;
}

/** The charts that run in a state, by instance. */
function instancesIn({ space }: Checking, values: Int32Array): Map<string, Here> {
  const here = new Map<string, Here>();
  for (const { kind, name, column } of space.components.all) {
    if (kind !== "instance") continue;
    const value = space.components.instanceOf(column, values[column] ?? 0);
    const chart = value?.behaviour.chart;
    if (value !== undefined && chart !== undefined) here.set(name, { chart, place: value.place });
  }
  return here;
}
