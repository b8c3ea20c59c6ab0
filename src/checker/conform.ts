/**
 * Is a recorded run one that the model allows?
 *
 * Only some of what happens is recorded, and only some members of that; everything else (what peers do, what gets lost, crashes)
 * is searched for between one observation and the next. All states that the observations so far allow are followed together.
 */
import type { KernelEvent } from "../kernel/mod.ts";
import { Composition } from "./composition.ts";
import type { Model } from "./model.ts";
import type { Action } from "./space.ts";
import { type Trace, traceOf, Walk } from "./trace.ts";
import { counted } from "./words.ts";

/** Something that was seen: an event that an instance was given. Members that are not named may be anything. */
export interface Observation {
  readonly to: string;
  readonly event: KernelEvent;
  /** Where it is recorded, for people. */
  readonly seq?: number;
}

export interface ConformOptions {
  /** Instances whose every input is recorded: such an input does not happen unseen. Default: those that the observations name. */
  readonly observed?: (instance: string) => boolean;
  /** Actions that may happen unseen although they are about an observed instance (default: none). Seen, they are an observation too. */
  readonly hidden?: (action: Action) => boolean;
  /** States to look at between two observations (default 200,000). */
  readonly states?: number;
}

export interface Conformance {
  readonly model: string;
  readonly outcome: "conforms" | "differs" | "inconclusive";
  readonly observations: number;
  /** How many were explained. */
  readonly explained: number;
  /** States that the explained observations allow. */
  readonly states: number;
  /** A run of the model that explains them, hidden steps included. */
  readonly run: Trace;
  /** The first observation that no run explains. */
  readonly unexplained: Unexplained | undefined;
}

export interface Unexplained {
  readonly observation: Observation;
  /** What could have been observed instead, the most similar first. */
  readonly nearest: readonly { readonly label: string; readonly differences: readonly string[] }[];
}

interface Reached {
  readonly values: Int32Array;
  readonly from: Reached | undefined;
  readonly choice: number;
}

/** Looks for a run of the model that shows the observations, in their order. */
export function conform(
  model: Model,
  observations: readonly Observation[],
  options: ConformOptions = {},
): Conformance {
  const space = new Composition(model);
  const named = new Set(observations.map((o) => o.to));
  const observed = options.observed ?? ((instance) => named.has(instance));
  const isVisible = (action: Action): boolean =>
    isObservable(action) && observed(action.kind === "restart" ? SYSTEM : action.to!) &&
    options.hidden?.(action) !== true;
  const limit = options.states ?? 200_000;
  let frontier = new Map<string, Reached>();
  const origin = new Walk(space).values;
  frontier.set(origin.join(), { values: origin, from: undefined, choice: -1 });

  for (const [explained, observation] of observations.entries()) {
    const next = new Map<string, Reached>();
    const visible = new Map<string, Action>();
    const complete = closure(space, frontier, limit, (reached, choices) => {
      const unseen: Reached[] = [];
      choices.forEach(({ action, values }, choice) => {
        const to: Reached = { values, from: reached, choice };
        if (!isVisible(action)) unseen.push(to);
        else visible.set(action.label, action);
        const key = values.join();
        if (shows(action, observation) && !next.has(key)) next.set(key, to);
      });
      return unseen;
    });
    if (next.size === 0) {
      return {
        model: model.name,
        outcome: complete ? "differs" : "inconclusive",
        observations: observations.length,
        explained,
        states: frontier.size,
        run: runTo(space, frontier),
        unexplained: { observation, nearest: nearest(observation, [...visible.values()]) },
      };
    }
    frontier = next;
  }
  return {
    model: model.name,
    outcome: "conforms",
    observations: observations.length,
    explained: observations.length,
    states: frontier.size,
    run: runTo(space, frontier),
    unexplained: undefined,
  };
}

/** A verdict of {@link conform} in words. */
export function conformanceText(conformance: Conformance): string {
  const { outcome, model, observations, explained, run, states, unexplained } = conformance;
  const hidden = run.steps.length - explained;
  const lines = [
    `${outcome}: ${model}: ${explained} of ${
      counted(observations, "observation")
    } explained, with ${counted(hidden, "hidden step")}; ${counted(states, "state")} ${
      states === 1 ? "is" : "are"
    } possible then`,
  ];
  if (unexplained !== undefined) {
    const { observation, nearest } = unexplained;
    const where = observation.seq === undefined
      ? `observation ${explained + 1}`
      : `input ${observation.seq}`;
    lines.push(
      "",
      `${where} cannot be explained: ${observation.to} is given ${
        JSON.stringify(observation.event)
      }`,
      nearest.length === 0
        ? "  Nothing could be observed here; every run that explains the rest ends before it."
        : "  What could have been observed here, the most similar first:",
      ...nearest.flatMap(({ label, differences }) => [
        `  - ${label}`,
        ...differences.map((d) => `      ${d}`),
      ]),
    );
  }
  if (outcome === "inconclusive") {
    lines.push("", "  The search for hidden steps was cut short: allow more states.");
  }
  return lines.join("\n");
}

/** The kernel's own address: a `resumed` there is a restart. */
const SYSTEM = "@system";

/** Gives an event to an instance, or brings a node back. */
const isObservable = (action: Action): boolean =>
  action.kind === "restart" ||
  (action.to !== undefined && action.event !== undefined && action.kind !== "drop");

function shows(action: Action, { to, event }: Observation): boolean {
  if (!isObservable(action)) return false;
  if (action.kind === "restart") return to === SYSTEM && event.type === "resumed";
  return action.to === to && differences(event, action.event, "").length === 0;
}

/** Everything that can be reached unseen. False when there is more than the limit allows. */
function closure(
  space: Composition,
  frontier: ReadonlyMap<string, Reached>,
  limit: number,
  visit: (reached: Reached, choices: { action: Action; values: Int32Array }[]) => Reached[],
): boolean {
  const seen = new Set(frontier.keys());
  const queue = [...frontier.values()];
  for (let q = 0; q < queue.length; q++) {
    const choices = new Walk(space, queue[q]!.values).choices();
    for (const next of visit(queue[q]!, choices)) {
      const key = next.values.join();
      if (seen.has(key)) continue;
      if (seen.size >= limit) return false;
      seen.add(key);
      queue.push(next);
    }
  }
  return true;
}

function runTo(space: Composition, frontier: ReadonlyMap<string, Reached>): Trace {
  const choices: number[] = [];
  for (let r = frontier.values().next().value; r?.from !== undefined; r = r.from) {
    choices.push(r.choice);
  }
  return traceOf(space, choices.reverse());
}

function nearest(observation: Observation, actions: readonly Action[]): Unexplained["nearest"] {
  return actions
    .map((action) => {
      const found = action.kind === "restart" ? ["a restart, not an input"] : [
        ...(action.to === observation.to ? [] : [`it is ${action.to}, not ${observation.to}`]),
        ...differences(observation.event, action.event, ""),
      ];
      const far = (action.to === observation.to ? 0 : 10) +
        (action.event?.type === observation.event.type ? 0 : 5) + found.length;
      return { label: action.label, differences: found, far };
    })
    .sort((a, b) => a.far - b.far)
    .slice(0, 3)
    .map(({ label, differences }) => ({ label, differences }));
}

/** What the wanted members have that the given value has not. */
function differences(wanted: unknown, given: unknown, path: string): string[] {
  if (typeof wanted === "object" && wanted !== null && !Array.isArray(wanted)) {
    if (typeof given !== "object" || given === null) {
      return [`${path || "it"} is ${JSON.stringify(given)}, not an object`];
    }
    return Object.entries(wanted).flatMap(([name, value]) =>
      differences(
        value,
        (given as Record<string, unknown>)[name],
        path === "" ? name : `${path}.${name}`,
      )
    );
  }
  return JSON.stringify(wanted) === JSON.stringify(given)
    ? []
    : [`${path} could be ${JSON.stringify(given)}; it was ${JSON.stringify(wanted)}`];
}
