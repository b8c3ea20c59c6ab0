/** Runs that somebody else chooses: by the words of each action, by numbers, at random. Every state on the way is judged. */
import { hashText, hex } from "../kernel/mod.ts";
import { Composition } from "./composition.ts";
import type { Model } from "./model.ts";
import type { Action, Predicate } from "./space.ts";
import { type Trace, traceOf, Walk } from "./trace.ts";

/** One thing that can happen now. */
export interface Choice {
  /** Its number in the model's order. */
  readonly index: number;
  readonly action: Action;
}

/** Says which of the choices happens; undefined ends the run. */
export type Chooser = (choices: readonly Choice[], step: number) => number | undefined;

export interface Run {
  readonly choices: readonly number[];
  readonly actions: readonly Action[];
  /** The first property that a state of this run breaks. */
  readonly broken: string | undefined;
  /** The last state, as text: equal text, equal state. */
  readonly end: string;
  /** Hash of everything that was done and of what it changed. */
  readonly digest: string;
}

/** A model ready to be run many times. */
export class Runner {
  readonly model: Model;
  readonly space: Composition;
  readonly #claims: Predicate[];
  readonly #rest: Predicate | undefined;
  readonly #origin: Int32Array;
  readonly #texts: string[][] = [];

  constructor(model: Model) {
    this.model = model;
    this.space = new Composition(model);
    this.#claims = Object.entries(model.properties.always ?? {}).map(([name, holds]) =>
      this.space.predicate(name, holds)
    );
    const { rest } = model.properties;
    this.#rest = rest === undefined ? undefined : this.space.predicate("rest", rest);
    this.#origin = new Walk(this.space).values;
  }

  /** Runs until the chooser ends it, nothing can happen, or a property breaks. */
  run(choose: Chooser): Run {
    const walk = new Walk(this.space, this.#origin);
    const choices: number[] = [];
    const actions: Action[] = [];
    let digest = "";
    let broken = this.#brokenBy(walk);
    for (let step = 0; broken === undefined; step++) {
      const possible = walk.choices();
      if (this.#rest !== undefined && !possible.some((c) => !c.action.fault)) {
        if (!walk.ask(this.#rest.holds)) broken = "rest";
      }
      if (possible.length === 0 || broken !== undefined) break;
      const chosen = choose(possible.map(({ action }, index) => ({ index, action })), step);
      const next = chosen === undefined ? undefined : possible[chosen];
      if (next === undefined) break;
      choices.push(chosen!);
      actions.push(next.action);
      const changed = this.#changes(walk.values, next.values);
      walk.move(next.values);
      digest = hex(hashText(`${digest} ${next.action.label} ${changed}`));
      broken = this.#brokenBy(walk);
    }
    return { choices, actions, broken, end: endOf(walk.values), digest };
  }

  /** Runs the actions with these labels, in order. One that cannot happen at its turn is left out. */
  follow(labels: readonly string[]): Run {
    let at = 0;
    return this.run((choices) => {
      for (; at < labels.length; at++) {
        const found = choices.find((c) => c.action.label === labels[at]);
        if (found !== undefined) {
          at++;
          return found.index;
        }
      }
      return undefined;
    });
  }

  trace(run: Run): Trace {
    return traceOf(this.space, run.choices);
  }

  /** What a step changed, as text. Numbers of values are no text: they only say in which order values came up. */
  #changes(before: Int32Array, after: Int32Array): string {
    let text = "";
    for (const { column, name, show } of this.space.components.all) {
      const value = after[column] ?? 0;
      if (value === (before[column] ?? 0)) continue;
      const texts = this.#texts[column] ??= [];
      text += `${name}=${texts[value] ??= JSON.stringify(show(value)) ?? ""};`;
    }
    return text;
  }

  #brokenBy(walk: Walk): string | undefined {
    return this.#claims.find((claim) => !walk.ask(claim.holds))?.name;
  }
}

/** A state as text: equal text, equal state. */
export const endOf = (values: Int32Array): string => {
  let last = values.length;
  while (last > 0 && values[last - 1] === 0) last--;
  return values.subarray(0, last).join();
};
