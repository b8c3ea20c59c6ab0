import {
  type ChartNode,
  type ChartTransition,
  guardText,
  nodesOf,
  triggerText,
  valueText,
} from "../../charts/mod.ts";
import { duration } from "../../view/mod.ts";
import type { Moment } from "./run.ts";

/** Something that can happen next to an instance. */
export interface Possibility {
  /** What it waits for: `hello`, `after connectDeadline (in 9 min)`. */
  readonly when: string;
  /** The condition, if there is one. */
  readonly guard?: string;
  /** Where it leads: `connected`, or `stays`. */
  readonly leads: string;
}

export interface InstanceNext {
  readonly instance: string;
  readonly chart: string;
  readonly state: string;
  readonly possible: readonly Possibility[];
  /** Calls whose outcome has not arrived. */
  readonly owed: readonly string[];
  readonly done: boolean;
  /** It has a deadline or an owed call. */
  readonly waits: boolean;
}

/**
 * For every instance: which transitions are open now, and what each waits for. First those with a deadline or an owed call,
 * because somebody waits there; then those that can go on; at last those that nothing changes any more.
 */
export function whatNext(moment: Moment): readonly InstanceNext[] {
  const { charts } = moment.tracker;
  const found = [...moment.system.instances].map(({ id, chart, state, timers, calls }) => {
    const model = charts.model(chart)!;
    const active = charts.activeIn(chart, state.snapshot);
    const open = nodesOf(model).filter((node) => active.has(node.id)).reverse()
      .flatMap((node) => node.transitions);
    const possible = open.filter((t) => t.trigger.kind !== "always" && !isIgnored(t)).map((t) => {
      const timer = timers.find((armed) => armed.timer === t.eventType);
      const due = timer === undefined ? "" : ` (${dueText(timer.dueAt - moment.at)})`;
      return {
        when: triggerText(t.trigger) + due,
        ...(t.guard === undefined ? {} : { guard: guardText(t.guard) }),
        leads: leadsTo(t, nodesOf(model)),
      };
    });
    return {
      instance: id,
      chart,
      state: valueText(state.snapshot.value),
      possible,
      owed: calls.map((call) => `${call.effect.type} (${call.id})`),
      done: possible.length === 0,
      waits: timers.length > 0 || calls.length > 0,
    };
  });
  const urgency = (next: InstanceNext): number => next.waits ? 0 : next.done ? 2 : 1;
  return found.sort((a, b) => urgency(a) - urgency(b));
}

const isIgnored = (t: ChartTransition): boolean =>
  t.targets.length === 0 && t.actions.length === 0 && t.guard === undefined;

const dueText = (ms: number): string => ms <= 0 ? "overdue" : `in ${duration(ms)}`;

function leadsTo(t: ChartTransition, nodes: readonly ChartNode[]): string {
  if (t.targets.length === 0) return "stays";
  return t.targets.map((id) => nodes.find((node) => node.id === id)?.path.join(".") || id).join(
    " + ",
  );
}
