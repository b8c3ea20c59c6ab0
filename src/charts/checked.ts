/** What a check explored of each chart: coverage of a model, drawn like coverage of a journal. */
import type { Checking } from "../checker/mod.ts";
import { Local, type Transition } from "../kernel/mod.ts";
import type { ChartModel } from "./model.ts";
import type { ChartOverlay } from "./overlay.ts";
import { ChartTracker, TrackedCharts } from "./tracker.ts";

/** A chart of a model with what its check saw of it. */
export interface CheckedChart {
  readonly model: ChartModel;
  /** Counts are of different pairs of a state and an event, not of runs: a check takes each once. */
  readonly overlay: ChartOverlay;
}

/**
 * The charts of a model after its check (`const checking = new Checking(model); checking.run()`), by the id of their machine.
 * Programs that are no charts (reducers) have none.
 */
export function checkedCharts(checking: Checking): ReadonlyMap<string, CheckedChart> {
  const found = new Map<string, CheckedChart>();
  for (const behaviour of checking.space.behaviours) {
    const machine = behaviour.chart;
    if (machine === undefined || found.has(machine.id)) continue;
    const charts = new TrackedCharts({ [machine.id]: machine });
    const tracker = new ChartTracker(charts);
    const local = new Local(machine, { memoLimit: Infinity });
    const delivery = (part: Pick<Transition, "event" | "kind" | "before" | "after">) =>
      tracker.apply([{ instance: machine.id, chart: machine.id, ...part }]);
    for (const { step: { to } } of behaviour.starts) {
      const after = local.restore(to.key);
      delivery({ event: { type: "started" }, kind: "started", before: undefined, after });
    }
    for (const { before, event, step } of behaviour.log) {
      const [from, to] = [local.restore(before.key), local.restore(step.to.key)];
      delivery({ event, kind: step.kind, before: from, after: to });
    }
    found.set(machine.id, {
      model: charts.model(machine.id)!,
      overlay: tracker.overlay(machine.id),
    });
  }
  return found;
}
