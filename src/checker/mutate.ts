/**
 * Mutation score: are the properties good enough to notice when a machine is wrong?
 *
 * A mutant is caught when a property of some model breaks, or when a state is not reached any more. A mutant that does in every situation
 * that the models ever meet what the machine does, or whose runs are the same to the last step, is *equivalent*: no property of any kind
 * could tell them apart. What no model ever goes through is not equivalent but *unreached*: that is a hole of the models, not of the properties.
 */
import type { AnyStateMachine } from "xstate";
import { Local, type LocalStep, portabilityProblems } from "../kernel/mod.ts";
import type { Behaviour, PlaceStep, Program } from "./behaviour.ts";
import { Checking } from "./check.ts";
import { activeStates } from "./coverage.ts";
import { defineModel, type Model } from "./model.ts";
import { sameGraph } from "./same-graph.ts";
import { type Mutant, mutantsOf, type TransitionPlace } from "./mutants.ts";

/** A model that does not hold with the machine as it is can judge no mutant. */
export class UnfitModelError extends Error {
  readonly code = "unfit-model";
}

/** What became of a mutant. */
export type Fate =
  /** Some property noticed: which one, and of which model. */
  | { readonly is: "caught"; readonly by: string; readonly witness: boolean }
  | { readonly is: "survivor" | "equivalent" | "unreached" };

export interface MutationScore {
  readonly machine: string;
  /** How many mutants the machine has. */
  readonly all: number;
  /** How many of them were judged. */
  readonly mutants: number;
  readonly caught: number;
  /** Of those caught: by nothing but a state, or a witness, that is not reached any more. */
  readonly byWitness: number;
  /** Mutants that break nothing: a property is missing, or the change does not matter. */
  readonly survivors: readonly string[];
  /** Mutants that do the same wherever the models go. */
  readonly equivalent: readonly string[];
  /** Mutants of transitions that no model takes. */
  readonly unreached: readonly string[];
}

export interface MutationOptions {
  /** At most so many mutants, spread evenly (default: all). */
  readonly limit?: number;
  /** How many states a mutant may have, beside four times those of the machine itself (default 20,000). */
  readonly states?: number;
  readonly onMutant?: (what: string, fate: Fate) => void;
}

/**
 * Breaks a machine in every way and checks models with it each time, until one of them notices.
 *
 * @throws UnfitModelError when a model does not hold, or is bounded, with the machine as it is.
 */
export function mutationScore(
  models: Model | readonly Model[],
  machine: AnyStateMachine,
  options: MutationOptions = {},
): MutationScore {
  let score: MutationScore | undefined;
  for (score of scoring(models, machine, options));
  return score!;
}

/**
 * As {@link mutationScore}, and lets other things happen between one mutant and the next.
 *
 * @param options.signal ends it with the mutants that were judged until then.
 */
export async function mutationScoreAsync(
  models: Model | readonly Model[],
  machine: AnyStateMachine,
  options: MutationOptions & { readonly signal?: AbortSignal } = {},
): Promise<MutationScore> {
  let score: MutationScore | undefined;
  for (score of scoring(models, machine, options)) {
    await new Promise((resume) => setTimeout(resume));
    if (options.signal?.aborted === true) break;
  }
  return score!;
}

/** The score so far: before the first mutant, and after each. */
function* scoring(
  models: Model | readonly Model[],
  machine: AnyStateMachine,
  options: MutationOptions,
): Generator<MutationScore> {
  const benches = [models].flat().map((model) => new Bench(model, machine, options.states))
    .sort((a, b) => a.states - b.states);
  const all = mutantsOf(machine);
  const every = Math.max(1, Math.ceil(all.length / (options.limit ?? all.length)));
  const score = {
    machine: machine.id,
    all: all.length,
    mutants: 0,
    caught: 0,
    byWitness: 0,
    survivors: [] as string[],
    equivalent: [] as string[],
    unreached: [] as string[],
  };
  yield score;
  for (const mutant of all.filter((_, i) => i % every === 0)) {
    const fate = fateOf(mutant, benches);
    score.mutants++;
    if (fate.is === "caught") {
      score.caught++;
      if (fate.witness) score.byWitness++;
    } else if (fate.is === "survivor") score.survivors.push(mutant.what);
    else score[fate.is].push(mutant.what);
    options.onMutant?.(mutant.what, fate);
    yield score;
  }
}

/** Every chart that can run in a model. */
export function chartsOf({ processes, charts = {} }: Model): AnyStateMachine[] {
  const programs = [...Object.values(processes).map((p) => p.runs), ...Object.values(charts)];
  return [...new Set(programs)].filter((p): p is AnyStateMachine => "root" in p);
}

/** How good a score is: of the mutants that are not equivalent, how many were caught. Between 0 and 1. */
export const scoreOf = ({ mutants, caught, equivalent }: MutationScore): number =>
  mutants === equivalent.length ? 1 : caught / (mutants - equivalent.length);

/** A score in words: one line, and what to look at below it. */
export function mutationText(score: MutationScore): string {
  const { machine, all, mutants, caught, byWitness, survivors, equivalent, unreached } = score;
  const judged = mutants === all ? "" : ` (${mutants} of its ${all} mutants were tried)`;
  return [
    `${machine}${judged}: ${caught} of ${mutants - equivalent.length} mutants caught (${
      (100 * scoreOf(score)).toFixed(1)
    } %), ${
      caught - byWitness
    } by a property and ${byWitness} by a state that is not reached any more; ${equivalent.length} more are equivalent`,
    ...survivors.map((what) => `  survives: ${what}`),
    ...unreached.map((what) => `  never taken: ${what}`),
  ].join("\n");
}

function fateOf({ machine, transition }: Mutant, benches: readonly Bench[]): Fate {
  // Eventless transitions in a circle: such a chart cannot be run at all.
  const circle = portabilityProblems(machine).find(({ reason }) => reason.includes("in a circle"));
  if (circle !== undefined) return { is: "caught", by: circle.reason, witness: false };
  const differing = benches.filter((bench) => bench.differs(machine, transition));
  for (const bench of differing) bench.noteTaken(transition);
  if (differing.length === 0) {
    return { is: benches.some((b) => b.took(transition)) ? "equivalent" : "unreached" };
  }
  let best: Fate = { is: "equivalent" };
  for (const bench of differing) {
    const fate = bench.check(machine);
    if (fate.is === "caught" && !fate.witness) return fate;
    if (best.is === "equivalent" || fate.is === "caught") best = fate;
  }
  return best;
}

/** A model that was explored with the machine as it is. */
class Bench {
  readonly states: number;
  readonly #model: Model;
  readonly #machine: AnyStateMachine;
  readonly #checking: Checking;
  readonly #behaviour: Behaviour | undefined;
  readonly #reached: ReadonlySet<string>;
  readonly #most: number;
  readonly #taken = new Set<string>();

  constructor(model: Model, machine: AnyStateMachine, more = 20_000) {
    this.#model = model;
    this.#machine = machine;
    const checking = new Checking(model);
    this.#checking = checking;
    const { outcome, states } = checking.run();
    if (outcome !== "ok") {
      throw new UnfitModelError(
        `model ${model.name} is ${outcome} with the machine as it is: no mutant can be told from it`,
      );
    }
    this.states = states;
    this.#most = 4 * states + more;
    this.#behaviour = checking.space.behaviours.find((b) => b.program === machine);
    this.#reached = this.#behaviour === undefined ? new Set() : activeStates(this.#behaviour);
    const local = new Local(machine);
    for (const { before, event } of this.#behaviour?.log ?? []) {
      const { snapshot } = local.restore(before.key);
      for (const t of machine.getTransitionData(snapshot as never, event as never)) {
        const alternatives = t.source.transitions.get(t.eventType) as unknown[];
        this.noteTaken({
          source: t.source.id,
          event: t.eventType,
          index: alternatives.indexOf(t),
        });
      }
    }
  }

  /** Whether a transition is taken, as far as that is known: an eventless one without which nothing is different is not. */
  took({ source, event, index }: TransitionPlace): boolean {
    return this.#taken.has(`${source} ${event} ${index}`);
  }

  noteTaken({ source, event, index }: TransitionPlace): void {
    this.#taken.add(`${source} ${event} ${index}`);
  }

  /** Whether a mutant does something else in some situation that this model meets. */
  differs(mutant: AnyStateMachine, { event: type }: TransitionPlace): boolean {
    const behaviour = this.#behaviour;
    if (behaviour === undefined) return false;
    // A transition that an event causes is asked for with this event only.
    const eventless = type === "";
    const log = eventless ? behaviour.log : behaviour.log.filter((l) => l.event.type === type);
    const starts = eventless ? behaviour.starts : [];
    const local = new Local(mutant, { memoLimit: Infinity });
    const places = new Map<string, ReturnType<Local["restore"]>>();
    const restored = (key: string): ReturnType<Local["restore"]> => {
      let place = places.get(key);
      if (place === undefined) places.set(key, place = local.restore(key));
      return place;
    };
    try {
      return starts.some(({ input, step }) => !alike(step, local.initial(input))) ||
        log.some(({ before, event, step }) =>
          !alike(step, local.step(restored(before.key), event))
        );
    } catch {
      return true;
    }
  }

  /** What becomes of a mutant that runs in place of the machine. */
  check(mutant: AnyStateMachine): Fate {
    const { name } = this.#model;
    const caught = (what: string, witness: boolean): Fate => ({
      is: "caught",
      by: `${name}: ${what}`,
      witness,
    });
    try {
      const checking = new Checking(withProgram(this.#model, this.#machine, mutant), {
        bounds: { states: this.#most },
      });
      const { outcome, violations: [first] } = checking.run();
      if (first !== undefined) return caught(first.property, first.kind === "sometimes");
      if (outcome !== "ok") return { is: "survivor" };
      const behaviour = checking.space.behaviours.find((b) => b.program === mutant);
      const reached = behaviour === undefined ? new Set() : activeStates(behaviour);
      const missing = [...this.#reached].find((state) => !reached.has(state));
      if (missing !== undefined) return caught(`never in ${missing}`, true);
      return { is: sameGraph(this.#checking, checking) ? "equivalent" : "survivor" };
    } catch (error) {
      // A mutant that cannot even run is noticed too.
      return caught(error instanceof Error ? error.message : String(error), false);
    }
  }
}

const alike = (a: PlaceStep, b: LocalStep): boolean =>
  a.to.key === b.to.key && a.kind === b.kind &&
  JSON.stringify(a.outputs) === JSON.stringify(b.outputs);

/** The model with another program wherever this one runs. */
export function withProgram(model: Model, program: Program, other: Program): Model {
  const swap = (p: Program): Program => p === program ? other : p;
  return defineModel({
    ...model,
    processes: Object.fromEntries(
      Object.entries(model.processes).map(([id, p]) => [id, { ...p, runs: swap(p.runs) }]),
    ),
    charts: Object.fromEntries(
      Object.entries(model.charts ?? {}).map(([name, p]) => [name, swap(p)]),
    ),
  });
}
