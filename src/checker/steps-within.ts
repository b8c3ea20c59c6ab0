/**
 * What happens inside one step of a chart: every transition that XState takes, those without an event and those of raised events too, and
 * every guard that it asks, with the answer.
 */
import type { AnyStateMachine, StateNode } from "xstate";
import { Local, type MicroTransition } from "../kernel/mod.ts";
import type { Behaviour, Place } from "./behaviour.ts";

// deno-lint-ignore no-explicit-any
export type Node = StateNode<any, any>;

interface Alternative {
  guard?: unknown;
}

/** A step as the names of the transitions that were taken, one list for each microstep. */
export interface StepWithin {
  /** Undefined for a start. */
  readonly before: Place | undefined;
  readonly to: Place;
  readonly event: string;
  /** The JSON of the event. */
  readonly key: string;
  readonly taken: readonly (readonly string[])[];
}

export interface StepsWithin {
  readonly steps: readonly StepWithin[];
  /** `hasKey yes`, `hasKey no`. */
  readonly answers: ReadonlySet<string>;
}

/** Takes every step once more that a check took of a chart, and looks inside. */
export function stepsWithin({ log, starts }: Behaviour, chart: AnyStateMachine): StepsWithin {
  const answers = new Set<string>();
  const watched = withWatchedGuards(chart, (guard, yes) => answers.add(answerName(guard, yes)));
  let taken: string[][] = [];
  const local = new Local(watched, {
    foreign: true,
    memoLimit: Infinity,
    onMicrostep: (transitions) => taken.push(transitions.map(transitionName)),
  });
  const looked = (run: () => void): string[][] => {
    taken = [];
    run();
    return taken;
  };
  return {
    answers,
    steps: [
      ...starts.map(({ input, step: { to } }): StepWithin => ({
        before: undefined,
        to,
        event: "",
        key: "",
        taken: looked(() => local.initial(input)),
      })),
      ...log.map(({ before, event, step: { to } }): StepWithin => {
        const from = local.restore(before.key);
        return {
          before,
          to,
          event: event.type,
          key: JSON.stringify(event),
          taken: looked(() => local.step(from, event)),
        };
      }),
    ],
  };
}

/** A state and everything in it. */
export function nodesWithin(node: Node): Node[] {
  return [node, ...Object.values(node.states as Record<string, Node>).flatMap(nodesWithin)];
}

/** All transitions of a state: those of events, and those without. */
export const transitionsOf = (node: Node): MicroTransition[] => [
  ...[...node.transitions as unknown as Map<string, MicroTransition[]>].flatMap(([event, list]) =>
    event === "" ? [] : list
  ),
  ...(node.always as unknown as MicroTransition[] | undefined ?? []),
];

/** `door.shut on push #2`, `door.open after 1000`, `door.broken always`. */
export function transitionName(transition: MicroTransition): string {
  const { source, eventType } = transition;
  const eventless = eventType === "";
  const alternatives = eventless ? source.always : source.transitions.get(eventType);
  const count = alternatives?.length ?? 1;
  const place = count > 1 ? ` #${alternatives!.indexOf(transition) + 1}` : "";
  const after = "xstate.after.";
  const what = eventless
    ? "always"
    : eventType.startsWith(after)
    ? `after ${eventType.slice(after.length, -source.id.length - 1)}`
    : `on ${eventType}`;
  return `${source.id} ${what}${place}`;
}

const answerName = (guard: string, yes: boolean): string => `${guard} ${yes ? "yes" : "no"}`;

/** Every answer that the guards of a chart could give. */
export function possibleAnswers(nodes: readonly Node[]): string[] {
  const names = new Set<string>();
  for (const node of nodes) {
    for (const transition of transitionsOf(node)) {
      const { guard } = transition as Alternative;
      if (guard !== undefined) { for (const name of namesIn(guard, transition)) names.add(name); }
    }
  }
  return [...names].flatMap((name) => [answerName(name, true), answerName(name, false)]);
}

/** The guards that a guard is made of: one, unless it is and(), or(), not(). */
function namesIn(guard: unknown, transition: MicroTransition): string[] {
  const { guards } = guard as { guards?: readonly unknown[] };
  if (guards !== undefined) return guards.flatMap((g) => namesIn(g, transition));
  if (typeof guard === "function") return isPlain(guard) ? [inlineName(transition)] : [];
  const { type, params } = typeof guard === "string"
    ? { type: guard, params: undefined }
    : guard as {
      type: string;
      params?: unknown;
    };
  return [guardName(type, params)];
}

/** Composite guards and stateIn() are functions with a `check` of their own. */
const isPlain = (guard: unknown): boolean => typeof guard === "function" && !("check" in guard);

const inlineName = (transition: MicroTransition): string =>
  `the guard of ${transitionName(transition)}`;

const guardName = (type: string, params: unknown): string =>
  params === undefined || typeof params === "function"
    ? type
    : `${type}(${JSON.stringify(params)})`;

type Guard = (args: unknown, params: unknown) => unknown;

/** The chart with guards that tell what they answered. */
function withWatchedGuards(
  chart: AnyStateMachine,
  told: (guard: string, yes: boolean) => void,
): AnyStateMachine {
  const guards = Object.fromEntries(
    Object.entries(chart.implementations.guards as Record<string, unknown>).map(([name, guard]) => [
      name,
      !isPlain(guard) ? guard : (args: unknown, params: unknown): unknown => {
        const yes = (guard as Guard)(args, params);
        told(guardName(name, params), yes === true);
        return yes;
      },
    ]),
  );
  const watched = chart.provide({ guards } as never);
  for (const node of nodesWithin(watched.root as Node)) {
    for (const transition of transitionsOf(node)) {
      const inline = (transition as Alternative).guard;
      if (!isPlain(inline)) continue;
      const name = inlineName(transition);
      (transition as Alternative).guard = (args: unknown, params: unknown): unknown => {
        const yes = (inline as Guard)(args, params);
        told(name, yes === true);
        return yes;
      };
    }
  }
  return watched;
}
