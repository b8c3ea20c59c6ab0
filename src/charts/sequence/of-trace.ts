/** A checker's trace as a sequence diagram. */
import type { Trace, TraceStep } from "../../checker/mod.ts";
import type { SequenceStep } from "./steps.ts";

/**
 * The steps of a run of a model: messages as they arrive or are lost, decisions, timeouts, crashes, and what is written to the store, with the
 * states that each step led to.
 */
export function stepsOfTrace(trace: Trace): SequenceStep[] {
  const steps: SequenceStep[] = [];
  for (const step of trace.steps) {
    if (trace.loop === step.index - 1) steps.push({ kind: "gap", text: "from here for ever" });
    steps.push(...drawn(step));
  }
  if (trace.loop === trace.steps.length) steps.push({ kind: "gap", text: "and here it stays" });
  return steps;
}

function drawn(step: TraceStep): SequenceStep[] {
  const { action, changes, index: seq } = step;
  const label = action.event === undefined ? action.label : words(action.event);
  const on = action.to ?? action.from ?? "model";
  const states = Object.fromEntries(changes.flatMap(({ component, after }) => {
    const state = (after as { state?: unknown } | undefined)?.state;
    return state === undefined ? [] : [[component, stateText(state)]];
  }));
  const changed = Object.keys(states).length === 0 ? {} : { states };
  const steps: SequenceStep[] = [];
  switch (action.kind) {
    case "deliver":
    case "duplicate":
      steps.push({
        kind: "message",
        seq,
        from: action.from ?? senderOf(step) ?? on,
        to: on,
        label,
        fate: action.kind === "deliver" ? "delivered" : "duplicate",
        ...changed,
      });
      break;
    case "drop":
      steps.push({ kind: "message", seq, from: action.from ?? on, to: on, label, fate: "lost" });
      break;
    case "timer":
      steps.push({ kind: "timeout", seq, on, label: timer(action.label), ...changed });
      break;
    case "crash":
      steps.push({ kind: "crash", seq, on, label: action.label, ...changed });
      break;
    case "restart":
      steps.push({ kind: "restart", seq, on, ...changed });
      break;
    default:
      steps.push({ kind: "local", seq, on, label, ...changed });
  }
  for (const { component, after } of changes) {
    const key = /^store (.*)$/.exec(component)?.[1];
    if (key === undefined) continue;
    const value = after === undefined ? "removed" : JSON.stringify(after);
    steps.push({ kind: "message", seq, from: on, to: "store", label: `${key} = ${value}` });
  }
  return steps;
}

function words(event: { readonly type: string; readonly [member: string]: unknown }): string {
  const { type, ...rest } = event;
  const members = Object.entries(rest).map(([name, value]) =>
    `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`
  );
  return members.length === 0 ? type : `${type} (${members.join(", ")})`;
}

/** Messages of unordered channels do not say where they come from; what changed does not tell either. */
const senderOf = (step: TraceStep): string | undefined => {
  const from = step.action.event?.["from"];
  return typeof from === "string" ? from : undefined;
};

const timer = (label: string): string => label.replace(/^.*?: /, "").replace(/ passes$/, "");

function stateText(state: unknown): string {
  if (typeof state === "string") return state;
  return JSON.stringify(state).replace(/["{}]/g, "").replace(/:/g, ".");
}
