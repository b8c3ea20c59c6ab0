import type { AnyMachineSnapshot, AnyStateMachine } from "xstate";
import type { KernelEvent, LocalState, Transition } from "../kernel/mod.ts";
import { MicrostepProbe } from "./microsteps.ts";
import type { ChartModel } from "./model.ts";
import { activeStates, type ChartOverlay } from "./overlay.ts";
import { chartModel, transitionIds } from "./read.ts";

/** What one step of a chart entered and took. */
interface Trace {
  readonly entered: readonly string[];
  readonly taken: readonly string[];
}

interface Counts {
  readonly visits: Map<string, number>;
  readonly taken: Map<string, number>;
  readonly refused: Map<string, Map<string, number>>;
}

interface Chart {
  readonly model: ChartModel;
  readonly probe: MicrostepProbe;
  readonly ids: ReadonlyMap<object, string>;
  readonly memo: WeakMap<LocalState, Map<string, Trace>>;
}

/** The charts of a system, prepared once; trackers of the same run share it. */
export class TrackedCharts {
  readonly #charts = new Map<string, Chart>();
  readonly #active = new Map<string, ReadonlySet<string>>();

  constructor(machines: Readonly<Record<string, AnyStateMachine>>) {
    for (const [name, machine] of Object.entries(machines)) {
      this.#charts.set(name, {
        model: chartModel(machine),
        probe: new MicrostepProbe(machine),
        ids: transitionIds(machine),
        memo: new WeakMap(),
      });
    }
  }

  get names(): readonly string[] {
    return [...this.#charts.keys()];
  }

  model(chart: string): ChartModel | undefined {
    return this.#charts.get(chart)?.model;
  }

  /** Ids of the active states of a chart in a snapshot. */
  activeIn(chart: string, snapshot: AnyMachineSnapshot): ReadonlySet<string> {
    const key = chart + JSON.stringify(snapshot.value);
    let found = this.#active.get(key);
    if (!found) {
      if (this.#active.size > 5000) this.#active.clear();
      found = activeStates(this.#charts.get(chart)!.model, snapshot.value);
      this.#active.set(key, found);
    }
    return found;
  }

  /** What an event led to from a state; equal states and events are computed once. */
  trace(chart: string, before: LocalState, event: KernelEvent): Trace {
    const { memo, probe } = this.#charts.get(chart)!;
    let row = memo.get(before);
    if (!row) memo.set(before, row = new Map());
    const key = JSON.stringify(event);
    let trace = row.get(key);
    if (!trace) {
      row.set(
        key,
        trace = this.#follow(chart, before.snapshot, probe.step(before.snapshot, event)),
      );
    }
    return trace;
  }

  #follow(
    chart: string,
    before: AnyMachineSnapshot,
    steps: ReturnType<MicrostepProbe["step"]>,
  ): Trace {
    const { ids } = this.#charts.get(chart)!;
    const entered: string[] = [];
    const taken: string[] = [];
    let active = this.activeIn(chart, before);
    for (const { snapshot, transitions } of steps) {
      const now = this.activeIn(chart, snapshot);
      const fresh = new Set([...now].filter((id) => !active.has(id)));
      for (const transition of transitions) {
        const id = ids.get(transition);
        if (id !== undefined) taken.push(id);
        const { reenter, target, source } = transition as {
          reenter?: boolean;
          target?: readonly { id: string }[];
          source: { id: string };
        };
        if (reenter) target?.forEach((t) => now.has(t.id) && fresh.add(t.id));
        if (reenter && target?.some((t) => t.id === source.id)) fresh.add(source.id);
      }
      entered.push(...fresh);
      active = now;
    }
    return { entered, taken };
  }
}

/** Counts, for each chart of a run, how often states were entered, transitions taken and events refused. */
export class ChartTracker {
  readonly charts: TrackedCharts;
  readonly #counts = new Map<string, Counts>();
  /** The transition that each instance took last. */
  readonly #last = new Map<string, string>();

  constructor(charts: TrackedCharts) {
    this.charts = charts;
  }

  /** Takes the deliveries of the next step of a run. */
  apply(transitions: readonly Transition[]): void {
    for (const { instance, chart, before, after, event, kind } of transitions) {
      if (this.charts.model(chart) === undefined) continue;
      const counts = this.#countsOf(chart);
      if (kind === "refused" || kind === "unexpected") {
        if (before) this.#refuse(chart, counts, before, event.type);
      } else if (before === undefined && after !== undefined) {
        for (const id of this.charts.activeIn(chart, after.snapshot)) add(counts.visits, id);
      } else if (before !== undefined && (kind === "taken" || kind === "ignored")) {
        const { entered, taken } = this.charts.trace(chart, before, event);
        for (const id of entered) add(counts.visits, id);
        for (const id of taken) add(counts.taken, id);
        if (kind === "taken" && taken.length > 0) this.#last.set(instance, taken.at(-1)!);
      }
      if (after === undefined) this.#last.delete(instance);
    }
  }

  /** Counts of a chart over all its instances. */
  overlay(chart: string): ChartOverlay {
    const { visits, taken, refused } = this.#counts.get(chart) ?? emptyCounts();
    return { visits, taken, refused };
  }

  /** The id of the transition that an instance took last. */
  lastOf(instance: string): string | undefined {
    return this.#last.get(instance);
  }

  /** A copy that goes its own way: what a cached moment of a run keeps. */
  clone(): ChartTracker {
    const copy = new ChartTracker(this.charts);
    for (const [chart, { visits, taken, refused }] of this.#counts) {
      copy.#counts.set(chart, {
        visits: new Map(visits),
        taken: new Map(taken),
        refused: new Map([...refused].map(([id, events]) => [id, new Map(events)])),
      });
    }
    for (const [instance, id] of this.#last) copy.#last.set(instance, id);
    return copy;
  }

  /** A refused event is counted at the innermost active states. */
  #refuse(chart: string, counts: Counts, before: LocalState, event: string): void {
    const active = [...this.charts.activeIn(chart, before.snapshot)];
    for (const id of active.filter((a) => !active.some((b) => b.startsWith(`${a}.`)))) {
      const events = counts.refused.get(id) ?? new Map<string, number>();
      add(events, event);
      counts.refused.set(id, events);
    }
  }

  #countsOf(chart: string): Counts {
    let counts = this.#counts.get(chart);
    if (!counts) this.#counts.set(chart, counts = emptyCounts());
    return counts;
  }
}

const emptyCounts = (): Counts => ({ visits: new Map(), taken: new Map(), refused: new Map() });

const add = (counts: Map<string, number>, key: string): void => {
  counts.set(key, (counts.get(key) ?? 0) + 1);
};
