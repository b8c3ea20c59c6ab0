import {
  type InstanceId,
  rankOf,
  type Stamped,
  type StepResult,
  type Transition,
} from "../../kernel/mod.ts";
import { durationText } from "../labels.ts";
import type { Lifeline, SequenceStep } from "./steps.ts";

/** Who stands where in a diagram of a run. The default is that of Muster's own machines. */
export interface Cast {
  /** The lifeline of an instance: who decides. */
  readonly lifeline: (instance: InstanceId) => string;
  /** The lifeline on the other side of an input: who sent it; undefined when nobody did. */
  readonly sender: (instance: InstanceId, event: { readonly type: string }) => string | undefined;
  /** The lifeline that an effect goes to; undefined for effects that no diagram shows. */
  readonly receiver: (
    instance: InstanceId,
    effect: { readonly type: string },
  ) => string | undefined;
}

export interface RunSequenceOptions {
  readonly cast?: Cast;
  /** A pause between inputs of at least this many milliseconds is drawn as a gap; 2,000 when not given. */
  readonly gapMs?: number;
  /** Show arming and firing of timers only when they fire (always so), and notes such as refusals; true when not given. */
  readonly notes?: boolean;
}

export type RunStep = Pick<StepResult, "input" | "effects" | "notes" | "transitions">;

const COORDINATOR = "coordinator";
const OPERATOR = "operator";
const STORE = "store";

/** Commands that an operator or an embedding program gives. */
const COMMANDS = new Set([
  "configured",
  "resumed",
  "stop",
  "scale",
  "abort",
  "requested",
  "restart",
]);

/** Muster's own machines: the coordinator decides, engines and processes answer, the store remembers. */
export const musterCast: Cast = {
  lifeline: (instance) => {
    const rank = rankOf(instance);
    return rank === undefined || instance.endsWith("/engine") ? COORDINATOR : `rank ${rank}`;
  },
  sender: (instance, { type }) => {
    if (type === "timer.fired") return undefined;
    if (COMMANDS.has(type)) return type === "resumed" ? undefined : OPERATOR;
    if (/^(store|key|decision|compareSet|observed)/.test(type)) return STORE;
    const rank = rankOf(instance);
    if (rank !== undefined) return `engine ${rank}`;
    if (instance.startsWith("process/")) return instance.replace("/", " ");
    return type === "strangers" ? "strangers" : undefined;
  },
  receiver: (instance, { type }) => {
    if (/^(store|tcpstore)\./.test(type)) return STORE;
    if (type === "announce" || type.startsWith("answer")) return OPERATOR;
    const rank = rankOf(instance);
    if (rank !== undefined) return `engine ${rank}`;
    if (instance.startsWith("process/")) return instance.replace("/", " ");
    return type.startsWith("wave") ? "engines" : undefined;
  },
};

/**
 * The steps of a run as a sequence diagram: each input as a message, a timeout, a crash or something local, then the effects
 * that it led to, with the states that changed. `seq` is the input's, so that a click finds it again.
 */
export function stepsOfRun(
  run: Iterable<RunStep>,
  options: RunSequenceOptions = {},
): readonly SequenceStep[] {
  const { cast = musterCast, gapMs = 2000, notes = true } = options;
  const steps: SequenceStep[] = [];
  let before: number | undefined;
  for (const step of run) {
    const { seq, at } = step.input;
    if (before !== undefined && at - before >= gapMs) {
      steps.push({ kind: "gap", seq, at, text: `${durationText(roundMs(at - before))} later` });
    }
    before = at;
    steps.push(withStates(inputStep(step, cast), statesOf(step.transitions, cast)));
    for (const effect of step.effects) {
      const sent = effectStep(effect, step, cast);
      if (sent) steps.push(sent);
    }
    if (notes) steps.push(...noteSteps(step, cast));
  }
  return steps;
}

/** Lifelines in the order in which people read them: operator, coordinator, ranks, engines, processes, store. */
export function castInOrder(steps: readonly SequenceStep[]): readonly Lifeline[] {
  const named = new Set<string>();
  for (const step of steps) {
    if (step.kind === "message") named.add(step.from).add(step.to);
    else if (step.kind === "note") step.over.forEach((id) => named.add(id));
    else if (step.kind !== "gap") named.add(step.on);
    Object.keys(step.states ?? {}).forEach((id) => named.add(id));
  }
  const place = (id: string): number =>
    [OPERATOR, COORDINATOR, "rank ", "engines", "engine ", "process ", STORE]
        .findIndex((prefix) => id.startsWith(prefix)) + 1 || 8;
  const number = (id: string): number => Number(/\d+$/.exec(id)?.[0] ?? 0);
  return [...named]
    .sort((a, b) => place(a) - place(b) || number(a) - number(b) || (a < b ? -1 : 1))
    .map((id) => ({ id }));
}

const roundMs = (ms: number): number => ms < 1000 ? ms : Math.round(ms / 100) * 100;

function inputStep({ input }: RunStep, cast: Cast): SequenceStep {
  const { seq, at, to, event } = input;
  const on = cast.lifeline(to);
  const base = { seq, at };
  if (event.type === "timer.fired") {
    const name = String(event["timer"]).replace(/^xstate\.after\./, "").split(".")[0]!;
    return {
      ...base,
      kind: "timeout",
      on,
      label: `${name}${rankOf(to) === undefined ? "" : ` of rank ${rankOf(to)}`}`,
    };
  }
  const from = cast.sender(to, event);
  if (event.type === "exited") {
    const how = event["signal"] ?? (event["code"] === null ? undefined : `code ${event["code"]}`);
    const label = `exited${how === undefined ? "" : `, ${how}`}`;
    // A process that ends well has not crashed.
    return { ...base, kind: event["code"] === 0 ? "local" : "crash", on: from ?? on, label };
  }
  if (event.type === "resumed") return { ...base, kind: "restart", on };
  if (from === undefined || from === on) {
    return { ...base, kind: "local", on, label: eventText(event) };
  }
  return { ...base, kind: "message", from, to: on, label: eventText(event) };
}

/** The event's type and its short members: `ready blocks=20`. */
function eventText(event: { readonly type: string; readonly [member: string]: unknown }): string {
  if (event.type === "configured") return `configured, ${event["size"]} ranks`;
  const parts = Object.entries(event)
    .filter(([key, value]) =>
      key !== "type" && key !== "call" && key !== "from" &&
      (typeof value === "number" ||
        (typeof value === "string" && value !== "" && value.length <= 24))
    )
    .slice(0, 2)
    .map(([key, value]) => ` ${key}=${value}`);
  return event.type + parts.join("");
}

function effectStep(stamped: Stamped, step: RunStep, cast: Cast): SequenceStep | undefined {
  if (stamped.kind !== "message" && stamped.kind !== "call") return undefined;
  const { seq, at } = step.input;
  const to = cast.receiver(stamped.from, stamped.effect);
  const from = cast.lifeline(stamped.from);
  if (to === undefined || to === from) return undefined;
  const { type, ...rest } = stamped.effect as { type: string; what?: unknown };
  const what = typeof rest.what === "string" ? ` ${rest.what}` : "";
  return { kind: "message", seq, at, from, to, label: type + what };
}

function noteSteps(step: RunStep, cast: Cast): SequenceStep[] {
  const { seq, at } = step.input;
  return step.notes.map((note) => ({
    kind: "note",
    seq,
    at,
    over: [cast.lifeline(note.instance)],
    text: `${note.kind}: ${note.what} at ${note.instance}${note.text ? ` (${note.text})` : ""}`,
  }));
}

/** A state value as text: `serving.idle`, `a.x & b.y`. */
export function valueText(value: unknown): string {
  if (typeof value === "string") return value;
  return Object.entries(value ?? {}).map(([key, inner]) => {
    const text = valueText(inner);
    return text === "" ? key : `${key}.${text}`;
  }).join(" & ");
}

/** The state of an engine as we see it stands at the engine's own lifeline; other machines at whoever runs them. */
function statesOf(transitions: readonly Transition[], cast: Cast): Record<string, string> {
  const states: Record<string, string> = {};
  for (const { instance, before, after, kind } of transitions) {
    if (kind === "started" || after === undefined) continue;
    const [was, is] = [before, after].map((s) =>
      s === undefined ? "" : valueText(s.snapshot.value)
    );
    if (was === is) continue;
    const peer = instance.endsWith("/engine") || instance.startsWith("process/")
      ? cast.sender(instance, { type: "" })
      : undefined;
    states[peer ?? cast.lifeline(instance)] = is!;
  }
  return states;
}

const withStates = (step: SequenceStep, states: Record<string, string>): SequenceStep =>
  Object.keys(states).length > 0 ? { ...step, states } : step;
