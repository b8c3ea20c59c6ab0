/** Whether a counterexample of before still is one: what a printed regression test asks. */
import { Composition } from "./composition.ts";
import { type Model, ModelError } from "./model.ts";
import { endOf, Runner } from "./run.ts";
import type { Action } from "./space.ts";
import { type Trace, traceOf, Walk } from "./trace.ts";

/**
 * Whether a run, given by its actions in words, still breaks a property: its trace, or undefined when the model no longer allows the run or
 * the property holds in it.
 *
 * @param loop for `eventually` and `leadsTo`: the state (0 is the initial one) from which the rest of the run is repeated for ever; the
 *   number of steps when it comes to rest there.
 */
export function breaks(
  model: Model,
  property: string,
  labels: readonly string[],
  loop?: number,
): Trace | undefined {
  if (loop !== undefined) return neverMeets(model, property, labels, loop);
  const runner = new Runner(model);
  const run = runner.follow(labels);
  return run.broken === property && run.actions.length === labels.length
    ? runner.trace(run)
    : undefined;
}

interface Moment {
  readonly key: string;
  readonly begins: boolean;
  readonly met: boolean;
  /** What has to happen some day if it stays possible. */
  readonly steady: readonly string[];
}

/** A run that goes round, or stands still, without ever meeting its goal, fairly. */
function neverMeets(
  model: Model,
  property: string,
  labels: readonly string[],
  loop: number,
): Trace | undefined {
  const space = new Composition(model);
  const walk = new Walk(space);
  const { eventually = {}, leadsTo = {} } = model.properties;
  const [from, goal] = leadsTo[property] ?? [undefined, eventually[property]];
  if (goal === undefined) {
    throw new ModelError(
      `model ${model.name}: there is no eventually and no leadsTo of the name ${property}`,
    );
  }
  const began = from === undefined ? undefined : space.predicate("from", from);
  const wanted = space.predicate("goal", goal);
  const moments: Moment[] = [];
  const choices: number[] = [];
  for (let at = 0; at <= labels.length; at++) {
    const possible = walk.choices();
    moments.push({
      key: endOf(walk.values),
      begins: began === undefined ? at === 0 : walk.ask(began.holds),
      met: walk.ask(wanted.holds),
      steady: possible.flatMap(({ action }) => action.fault ? [] : [actionOf(action)]),
    });
    if (at === labels.length) break;
    const choice = possible.findIndex((c) => c.action.label === labels[at]);
    if (choice < 0) return undefined;
    choices.push(choice);
    walk.move(possible[choice]!.values);
  }
  const missed = moments.findIndex((m, i) => m.begins && moments.slice(i).every((l) => !l.met));
  const last = moments.at(-1)!;
  const round = moments.slice(loop, loop === labels.length ? undefined : -1);
  const unmet = missed >= 0 && round.every((m) => !m.met);
  const fair = loop === labels.length ? last.steady.length === 0 : (
    moments[loop]?.key === last.key && fairly(round, labels.slice(loop))
  );
  return unmet && fair ? traceOf(space, choices, loop) : undefined;
}

/** Whether whatever is possible all the way round is also taken. */
function fairly(round: readonly Moment[], labels: readonly string[]): boolean {
  const taken = new Set(labels.map((label) => actionOf({ label })));
  const [first, ...others] = round;
  return first!.steady.every((action) =>
    taken.has(action) || !others.every((m) => m.steady.includes(action))
  );
}

/** An action by its words, whichever of its outcomes it has. */
const actionOf = ({ label }: Pick<Action, "label">): string => label.replace(/ #\d+$/, "");
