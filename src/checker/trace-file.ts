/**
 * Traces as files.
 *
 * The format is ITF (Informal Trace Format, as Apalache and Quint write it), with two additions in `#meta`, which readers of ITF ignore:
 * the number of the choice that led to each state, by which a trace is replayed, and the action in words. A component that is absent, and
 * JSON's null, are the empty tuple.
 */
import { Composition } from "./composition.ts";
import type { Model } from "./model.ts";
import { ReplayError, type Trace, traceOf } from "./trace.ts";

export interface ItfTrace {
  readonly "#meta": {
    readonly format: "ITF";
    readonly "format-description": string;
    readonly model: string;
    readonly property?: string;
  };
  readonly vars: readonly string[];
  readonly states: readonly ItfState[];
  /** For a lasso: the state after which the rest repeats for ever. */
  readonly loop?: number;
}

export interface ItfState {
  readonly "#meta": { readonly index: number; readonly choice?: number; readonly action?: string };
  readonly [component: string]: unknown;
}

const ABSENT = { "#tup": [] };

/** A trace as ITF. */
export function toItf(trace: Trace, property?: string): ItfTrace {
  const state = new Map<string, unknown>(Object.entries(trace.initial));
  const vars = new Set(state.keys());
  for (const step of trace.steps) for (const { component } of step.changes) vars.add(component);
  const snapshot = (): Record<string, unknown> =>
    Object.fromEntries([...vars].map((name) => [name, itf(state.get(name))]));
  const states: ItfState[] = [{ "#meta": { index: 0 }, ...snapshot() }];
  for (const { index, choice, action, changes } of trace.steps) {
    for (const { component, after } of changes) state.set(component, after);
    states.push({ "#meta": { index, choice, action: action.label }, ...snapshot() });
  }
  const meta = {
    format: "ITF" as const,
    "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
    model: trace.model,
  };
  return {
    "#meta": property === undefined ? meta : { ...meta, property },
    vars: [...vars],
    states,
    ...(trace.loop === undefined ? {} : { loop: trace.loop }),
  };
}

/**
 * Replays a trace from a file on a model.
 *
 * @throws ReplayError when the file is no such trace, or names the step at which the model does something else now.
 */
export function replay(model: Model, file: ItfTrace): Trace {
  if (file?.["#meta"]?.format !== "ITF" || !Array.isArray(file.states)) {
    throw new ReplayError("this is not an ITF trace: it has no #meta.format ITF or no states");
  }
  const steps = file.states.slice(1).map((s) => s["#meta"]);
  const choices = steps.map(({ choice }, i) => {
    if (choice === undefined) {
      throw new ReplayError(
        `state ${i + 1} of the trace has no #meta.choice, so it cannot be replayed`,
      );
    }
    return choice;
  });
  const trace = traceOf(new Composition(model), choices, file.loop);
  for (const [i, { action }] of steps.entries()) {
    const now = trace.steps[i]!.action.label;
    if (action !== undefined && action !== now) {
      throw new ReplayError(`step ${i + 1} was "${action}"; in this model it is "${now}"`);
    }
  }
  return trace;
}

function itf(value: unknown): unknown {
  if (value === undefined || value === null) return ABSENT;
  if (Array.isArray(value)) return value.map(itf);
  if (typeof value === "number") return Number.isInteger(value) ? value : String(value);
  if (typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name.replace(/^#/, "##"), itf(item)]),
  );
}
