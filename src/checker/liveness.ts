/**
 * `eventually` and `leadsTo` on the explored graph, under weak fairness.
 *
 * A counterexample is a run that never reaches the goal: it comes to rest, or goes round for ever, fairly. Fair means: no action (faults
 * aside) stays possible for ever without being taken. A strongly connected part of the graph without the goal has a fair cycle exactly
 * if every such action that is possible in all of its states is also taken within it.
 */
import { Question } from "./judge.ts";
import type { Search } from "./search.ts";
import type { Predicate } from "./space.ts";

/** A run that ends in a circle (or stands still: then the loop is the last state itself). */
export interface Lasso {
  readonly choices: readonly number[];
  /** The state, by number of steps from the start, to which the last step leads back. */
  readonly loop: number;
}

interface Edge {
  readonly action: number;
  readonly target: number;
  readonly ordinal: number;
}

/**
 * A run on which `goal` never comes after `from` (or, without `from`, never comes at all), or undefined if there is none among
 * the explored states.
 */
export function liveness(
  search: Search,
  from: Predicate | undefined,
  goal: Predicate,
): Lasso | undefined {
  const count = search.table.count;
  const missed = new Uint8Array(count);
  const asked = (predicate: Predicate): (index: number) => boolean => {
    const { table, expander } = search;
    const question = new Question(predicate, expander.layout);
    return (index) => question.holds(expander, table.pool, index * table.words);
  };
  const met = asked(goal);
  for (let i = 0; i < count; i++) missed[i] = met(i) ? 0 : 1;

  // The states that are reached from a beginning without meeting the goal, breadth-first.
  const cameFrom = new Int32Array(count).fill(-2);
  const cameBy = new Int32Array(count);
  const queue: number[] = [];
  const begin = (index: number): void => {
    if (missed[index] === 0 || cameFrom[index] !== -2) return;
    cameFrom[index] = -1;
    queue.push(index);
  };
  if (from === undefined) begin(0);
  else {
    const begins = asked(from);
    for (let i = 0; i < count; i++) if (begins(i)) begin(i);
  }
  const leaves = unexplored(search);
  const edgesOf = (index: number): Edge[] => {
    const edges: Edge[] = [];
    if (leaves(index)) return edges;
    search.forEachEdge(index, (action, target, ordinal) => edges.push({ action, target, ordinal }));
    return edges;
  };
  for (let q = 0; q < queue.length; q++) {
    const index = queue[q]!;
    if (leaves(index)) continue;
    let steady = false;
    for (const { action, target, ordinal } of edgesOf(index)) {
      if (!search.space.actions[action]!.fault) steady = true;
      if (target < 0 || missed[target] === 0 || cameFrom[target] !== -2) continue;
      cameFrom[target] = index;
      cameBy[target] = ordinal;
      queue.push(target);
    }
    if (!steady) return stem(search, cameFrom, cameBy, index);
  }
  for (const part of stronglyConnected(queue, edgesOf, (i) => missed[i] === 1)) {
    if (!isFair(search, part, edgesOf)) continue;
    return lassoThrough(search, part, edgesOf, cameFrom, cameBy);
  }
  return undefined;
}

/** States of which no successor is known because the search stopped there. */
function unexplored(search: Search): (index: number) => boolean {
  if (search.frontier === 0) return () => false;
  const known = new Uint8Array(search.table.count);
  return (index) => {
    if (known[index] === 0) {
      let missing = false;
      try {
        search.forEachEdge(index, (_, target) => {
          if (target < 0) missing = true;
        });
      } catch {
        missing = true;
      }
      known[index] = missing ? 2 : 1;
    }
    return known[index] === 2;
  };
}

function isFair(search: Search, part: readonly number[], edgesOf: (i: number) => Edge[]): boolean {
  const inside = new Set(part);
  let possible: Set<number> | undefined;
  const taken = new Set<number>();
  let cycle = false;
  for (const index of part) {
    const here = new Set<number>();
    for (const { action, target } of edgesOf(index)) {
      if (inside.has(target)) {
        taken.add(action);
        cycle = true;
      }
      if (!search.space.actions[action]!.fault) here.add(action);
    }
    if (possible === undefined) possible = here;
    else for (const action of possible) if (!here.has(action)) possible.delete(action);
  }
  if (!cycle) return false;
  for (const action of possible ?? []) if (!taken.has(action)) return false;
  return true;
}

/** Tarjan's algorithm without recursion. */
function* stronglyConnected(
  roots: readonly number[],
  edgesOf: (i: number) => Edge[],
  inside: (i: number) => boolean,
): Generator<number[]> {
  const order = new Map<number, number>();
  const low = new Map<number, number>();
  const onStack = new Set<number>();
  const stack: number[] = [];
  for (const root of roots) {
    if (order.has(root)) continue;
    const calls: { index: number; targets: number[]; at: number }[] = [];
    const enter = (index: number): void => {
      order.set(index, order.size);
      low.set(index, order.get(index)!);
      stack.push(index);
      onStack.add(index);
      const targets = edgesOf(index).map((e) => e.target).filter((t) => t >= 0 && inside(t));
      calls.push({ index, targets, at: 0 });
    };
    enter(root);
    while (calls.length > 0) {
      const call = calls.at(-1)!;
      if (call.at < call.targets.length) {
        const target = call.targets[call.at++]!;
        if (!order.has(target)) enter(target);
        else if (onStack.has(target)) {
          low.set(call.index, Math.min(low.get(call.index)!, order.get(target)!));
        }
        continue;
      }
      calls.pop();
      const caller = calls.at(-1);
      if (caller !== undefined) {
        low.set(caller.index, Math.min(low.get(caller.index)!, low.get(call.index)!));
      }
      if (low.get(call.index) === order.get(call.index)) {
        const part: number[] = [];
        let index: number;
        do {
          index = stack.pop()!;
          onStack.delete(index);
          part.push(index);
        } while (index !== call.index);
        yield part;
      }
    }
  }
}

function stem(search: Search, cameFrom: Int32Array, cameBy: Int32Array, index: number): Lasso {
  const tail: number[] = [];
  let i = index;
  for (; cameFrom[i]! >= 0; i = cameFrom[i]!) tail.push(cameBy[i]!);
  const choices = [...search.path(i), ...tail.reverse()];
  return { choices, loop: choices.length };
}

/** Into a part and round through all of its states and edges that fairness asks for. */
function lassoThrough(
  search: Search,
  part: readonly number[],
  edgesOf: (i: number) => Edge[],
  cameFrom: Int32Array,
  cameBy: Int32Array,
): Lasso {
  const inside = new Set(part);
  const depth = (index: number): number => {
    let n = 0;
    for (let i = index; cameFrom[i]! >= 0; i = cameFrom[i]!) n++;
    return n;
  };
  const entry = part.reduce((best, i) => depth(i) < depth(best) ? i : best);
  const { choices } = stem(search, cameFrom, cameBy, entry);
  const round: number[] = [];
  let here = entry;
  const go = (goal: (index: number, action: number) => boolean): void => {
    const path = shortest(here, goal, edgesOf, inside);
    for (const { ordinal, target } of path) {
      round.push(ordinal);
      here = target;
    }
  };
  // Every action that is possible throughout must be taken; every other must be impossible somewhere on the way.
  const wanted = new Set<number>();
  for (const index of part) {
    for (const { action } of edgesOf(index)) {
      if (!search.space.actions[action]!.fault) wanted.add(action);
    }
  }
  for (const action of wanted) {
    const off = part.find((i) => !edgesOf(i).some((e) => e.action === action));
    if (off === undefined) go((_, taken) => taken === action);
    else if (off !== here) go((index) => index === off);
  }
  if (here !== entry || round.length === 0) go((index) => index === entry);
  return { choices: [...choices, ...round], loop: choices.length };
}

function shortest(
  start: number,
  goal: (index: number, action: number) => boolean,
  edgesOf: (i: number) => Edge[],
  inside: ReadonlySet<number>,
): Edge[] {
  const cameFrom = new Map<number, { from: number; edge: Edge }>();
  const queue = [start];
  for (let q = 0; q < queue.length; q++) {
    for (const edge of edgesOf(queue[q]!)) {
      if (!inside.has(edge.target)) continue;
      const arrived = goal(edge.target, edge.action);
      if (arrived) {
        const path = [edge];
        for (let i = queue[q]!; i !== start; i = cameFrom.get(i)!.from) {
          path.push(cameFrom.get(i)!.edge);
        }
        return path.reverse();
      }
      if (edge.target === start || cameFrom.has(edge.target)) continue;
      cameFrom.set(edge.target, { from: queue[q]!, edge });
      queue.push(edge.target);
    }
  }
  throw new Error("a strongly connected part has a way from each state to each other");
}
