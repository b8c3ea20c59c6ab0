/**
 * Mutants of a chart: the same chart with one mistake in it.
 *
 * Each guard, where it is asked: answered always with yes, and the other way round; always with no is the same as a transition that is
 * not there, and each transition is left out once (those that do nothing aside). Each target: every other state beside it.
 */
import { type AnyStateMachine, createMachine } from "xstate";

export interface Mutant {
  readonly what: string;
  /** The transition that is changed. */
  readonly transition: TransitionPlace;
  readonly machine: AnyStateMachine;
}

// A chart's configuration is plain JSON (the portable subset); only its shape matters here.
// deno-lint-ignore no-explicit-any
type Config = any;

/** Every mutant of a machine in the portable subset. */
export function mutantsOf(machine: AnyStateMachine): Mutant[] {
  const mutants: Mutant[] = [];
  const config = machine.config as Config;
  const { implementations } = machine;
  const guards = implementations.guards as Record<string, unknown>;
  for (const place of transitionPlaces(config, [])) {
    const where = nameOf(place, machine.id);
    const transition = at(config, place);
    // What does nothing, on purpose, has neither guard nor target to be wrong.
    if (typeof transition !== "string" && Object.keys(transition ?? {}).length === 0) continue;
    const mutate = (
      what: string,
      change: (t: Config) => Config,
      more: Record<string, unknown> = {},
    ): void => {
      mutants.push({
        what: `${where} ${what}`,
        transition: idOf(place, machine.id),
        machine: createMachine(edited(config, place, change), {
          ...implementations,
          guards: watched({ ...guards, ...more }),
        } as never),
      });
    };
    mutate("is left out", () => undefined);
    const guard = transition?.guard;
    if (guard !== undefined) {
      const { type, params } = typeof guard === "string"
        ? { type: guard, params: undefined }
        : guard;
      const asked = guards[type] as (...args: unknown[]) => unknown;
      const opposite = params === undefined ? `not ${type}` : { type: `not ${type}`, params };
      mutate(`whether or not ${type}`, ({ guard: _, ...rest }) => rest);
      mutate(`if not ${type}`, (t) => ({ ...t, guard: opposite }), {
        [`not ${type}`]: (...args: unknown[]) => asked(...args) !== true,
      });
    }
    const target = targetOf(config, place, transition);
    if (target === undefined) continue;
    for (const other of siblingsOf(config, target)) {
      mutate(
        `leads to ${other} instead of ${target.at(-1)}`,
        (t) => {
          const path = `#${machine.id}.${[...target.slice(0, -1), other].join(".")}`;
          return typeof t === "string" ? path : { ...t, target: path };
        },
      );
    }
  }
  return mutants;
}

/** Questions in a row about one event after which a chart is said to go round for ever: a mutant may lead to where it came from. */
const ENDLESS = 100_000;

type Guard = (args: { event: unknown }, params: unknown) => unknown;

/** Guards that throw when a chart never comes to rest; XState itself would not return. */
function watched(guards: Record<string, unknown>): Record<string, unknown> {
  let last: unknown;
  let times = 0;
  return Object.fromEntries(
    Object.entries(guards).map(([name, guard]) => [
      name,
      (args: { event: unknown }, params: unknown) => {
        times = args.event === last ? times + 1 : 0;
        last = args.event;
        if (times > ENDLESS) throw new Error("it goes round for ever");
        return (guard as Guard)(args, params);
      },
    ]),
  );
}

interface Place {
  /** Names of the states from the root on. */
  readonly path: readonly string[];
  readonly kind: "on" | "after" | "always";
  readonly event: string;
  /** Among alternatives; undefined when there is one. */
  readonly index: number | undefined;
}

const nameOf = ({ path, kind, event, index }: Place, id: string): string =>
  `${path.join(".") || id} ${kind === "always" ? "always" : `on ${event}`}${
    index === undefined ? "" : ` #${index + 1}`
  }`;

/** A transition by its source state's id, its event (`""` for `always`) and its number among the alternatives. */
export interface TransitionPlace {
  readonly source: string;
  readonly event: string;
  readonly index: number;
}

const idOf = ({ path, kind, event, index = 0 }: Place, id: string): TransitionPlace => {
  const source = [id, ...path].join(".");
  return { source, event: kind === "after" ? `xstate.after.${event}.${source}` : event, index };
};

function* transitionPlaces(config: Config, path: readonly string[]): Generator<Place> {
  for (const kind of ["on", "after"] as const) {
    for (const [event, transition] of Object.entries(config[kind] ?? {})) {
      yield* alternatives({ path, kind, event }, transition);
    }
  }
  if (config.always !== undefined) {
    yield* alternatives({ path, kind: "always", event: "" }, config.always);
  }
  for (const [name, state] of Object.entries(config.states ?? {})) {
    yield* transitionPlaces(state, [...path, name]);
  }
}

function* alternatives(place: Omit<Place, "index">, transition: unknown): Generator<Place> {
  if (!Array.isArray(transition)) yield { ...place, index: undefined };
  else for (const index of transition.keys()) yield { ...place, index };
}

const stateAt = (config: Config, path: readonly string[]): Config =>
  path.reduce((state, name) => state?.states?.[name], config);

function at(config: Config, { path, kind, event, index }: Place): Config {
  const state = stateAt(config, path);
  const transition = kind === "always" ? state.always : state[kind][event];
  return index === undefined ? transition : transition[index];
}

/** The state that a transition leads to, as names from the root on; undefined for none, and for the root. */
function targetOf(config: Config, { path }: Place, transition: Config): string[] | undefined {
  const target = typeof transition === "string" ? transition : transition?.target;
  if (typeof target !== "string") return undefined;
  const [first, ...rest] = target.split(".");
  const found = first!.startsWith("#")
    ? rest
    : first === ""
    ? [...path, ...rest]
    : [...path.slice(0, -1), first!, ...rest];
  return found.length === 0 || stateAt(config, found) === undefined ? undefined : found;
}

const siblingsOf = (config: Config, target: readonly string[]): string[] =>
  Object.keys(stateAt(config, target.slice(0, -1)).states).filter((name) => name !== target.at(-1));

/** A copy of the configuration with one transition changed; undefined leaves it out. */
function edited(config: Config, place: Place, change: (t: Config) => Config): Config {
  const copy = (c: Config, path: readonly string[]): Config => {
    const [first, ...rest] = path;
    if (first !== undefined) {
      return { ...c, states: { ...c.states, [first]: copy(c.states[first], rest) } };
    }
    const { kind, event, index } = place;
    const old = kind === "always" ? c.always : c[kind][event];
    const changed = change(index === undefined ? old : old[index]);
    const next = index === undefined
      ? changed
      : old.flatMap((t: Config, i: number) =>
        i !== index ? [t] : changed === undefined ? [] : [changed]
      );
    if (kind === "always") return { ...c, always: next ?? [] };
    const table = { ...c[kind] };
    if (next === undefined || (Array.isArray(next) && next.length === 0)) delete table[event];
    else table[event] = next;
    return { ...c, [kind]: table };
  };
  return copy(config, place.path);
}
