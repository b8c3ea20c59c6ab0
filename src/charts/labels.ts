import type { ChartAction, ChartGuard, ChartTransition, ChartTrigger } from "./model.ts";

/** A guard as a short formula: `not (a and b)`. */
export function guardText(guard: ChartGuard): string {
  switch (guard.op) {
    case "named":
      return guard.name + paramsText(guard.params);
    case "inline":
      return "inline";
    case "in":
      return `in ${guard.state}`;
    case "not":
      return `not ${guard.of.map(operand).join(", ")}`;
    default:
      return guard.of.map(operand).join(` ${guard.op} `);
  }
}

const operand = (guard: ChartGuard): string =>
  guard.op === "and" || guard.op === "or" ? `(${guardText(guard)})` : guardText(guard);

export function actionText(action: ChartAction): string {
  return action.name + paramsText(action.params);
}

/** Parameters as `(phase: late)`; long ones are cut, because a label is for reading. */
function paramsText(params: unknown): string {
  if (params === undefined) return "";
  if (typeof params !== "object" || params === null) return `(${shown(params)})`;
  const parts = Object.entries(params).map(([key, value]) => `${key}: ${shown(value)}`);
  const text = parts.join(", ");
  return text.length > 48 ? `(${text.slice(0, 45)}...)` : `(${text})`;
}

const shown = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value) ?? String(value);

/** What sets the transition off, in words: `ready`, `after readyDeadline`, `always`, `when done`. */
export function triggerText(trigger: ChartTrigger): string {
  switch (trigger.kind) {
    case "event":
      return trigger.event;
    case "after":
      return `after ${
        typeof trigger.delay === "number" ? durationText(trigger.delay) : trigger.delay
      }`;
    case "always":
      return "always";
    case "done":
      return "when done";
    case "actor":
      return `${trigger.actor} ${trigger.outcome}`;
  }
}

/** Milliseconds as people write them: `250 ms`, `3 s`, `2 min`. */
export function durationText(ms: number): string {
  if (ms < 1000 || ms % 100 !== 0) return `${ms} ms`;
  if (ms < 60_000 || ms % 60_000 !== 0) return `${ms / 1000} s`;
  return `${ms / 60_000} min`;
}

/** `ready [allReady] / announce, count`: the whole label of a transition. */
export function transitionText(t: ChartTransition): string {
  const guard = t.guard ? ` [${guardText(t.guard)}]` : "";
  const actions = t.actions.length > 0 ? ` / ${t.actions.map(actionText).join(", ")}` : "";
  return triggerText(t.trigger) + guard + actions;
}
