import { stepsOfTrace, valueText } from "../charts/mod.ts";
import { Exploration, type Model, ReplayError, type Trace, type Verdict } from "../checker/mod.ts";
import type { ExploredState, Explorer, FoundTrace } from "./explore.ts";

/** A model for the page to walk through, with what a check of it found. */
export function modelExplorer(model: Model, verdict?: Verdict): Explorer {
  const exploration = new Exploration(model);
  const always = Object.keys(model.properties.always ?? {});
  return {
    name: model.name,
    summary: summaryOf(verdict),
    traces: tracesOf(verdict),
    at: (path) => explored(exploration, always, path),
  };
}

function summaryOf(verdict: Verdict | undefined): string {
  if (verdict === undefined) return "not checked yet";
  const what = verdict.symmetric ? "orbits of states" : "states";
  const states = `${verdict.states.toLocaleString("en")} ${what}`;
  switch (verdict.outcome) {
    case "ok":
      return `${states}, ${verdict.properties} properties hold in every run`;
    case "violated":
      return `${states}, broken: ${verdict.violations.map((v) => v.property).join("; ")}`;
    case "inconclusive":
      return `${states}, nothing found within the bounds`;
  }
}

function tracesOf(verdict: Verdict | undefined): FoundTrace[] {
  const pathOf = (trace: Trace): number[] => trace.steps.map((step) => step.choice);
  const broken = (verdict?.violations ?? []).flatMap(({ property, kind, trace }) =>
    trace ? [{ property, text: `broken (${kind})`, path: pathOf(trace) }] : []
  );
  const seen = (verdict?.witnesses ?? []).map(({ property, trace }) => ({
    property,
    text: "can happen",
    path: pathOf(trace),
  }));
  return [...broken, ...seen];
}

function explored(
  exploration: Exploration,
  always: readonly string[],
  path: readonly number[],
): ExploredState {
  try {
    const { state, conditions, choices } = exploration.at(path);
    return {
      path,
      steps: stepsOfTrace(exploration.trace(path)),
      parties: Object.entries(state).map(([id, value]) => partyOf(id, value)),
      enabled: choices.map(({ label, kind, fault }) => ({
        label,
        kind: fault ? "fault" : kind,
      })),
      violated: always.filter((name) => conditions[name] === false),
      terminal: choices.every((choice) => choice.fault),
    };
  } catch (error) {
    if (error instanceof ReplayError) throw new RangeError(error.message);
    throw error;
  }
}

/** An instance has a state and a context; other components (channels, stores, budgets) are a value. */
function partyOf(id: string, value: unknown): ExploredState["parties"][number] {
  const { state, context } = value as { state?: unknown; context?: unknown };
  if (state === undefined) return { id, state: JSON.stringify(value) ?? "" };
  const detail = context === undefined ? "" : JSON.stringify(context);
  return { id, state: valueText(state), ...(detail === "" || detail === "{}" ? {} : { detail }) };
}
