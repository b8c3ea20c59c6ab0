/** Whether two finished checks went through the same graph: the same states, in the same order, with the same steps between them. */
import type { Checking } from "./check.ts";
import type { InstanceValue } from "./components.ts";

/**
 * Compares two breadth-first checks of one model, exactly. An order that differs counts as a difference, so that the answer no is not
 * proof of one; the answer yes is proof that no property can tell the two apart.
 */
export function sameGraph(a: Checking, b: Checking): boolean {
  const { count } = a.search.table;
  if (b.search.table.count !== count || a.search.generated !== b.search.generated) return false;
  for (let i = 0; i < count; i++) {
    if (stateText(a, i) !== stateText(b, i) || edgesText(a, i) !== edgesText(b, i)) return false;
  }
  return true;
}

function stateText({ space, search }: Checking, index: number): string {
  const values = search.values(index);
  const parts: string[] = [];
  for (const { column, kind, name, raw } of space.components.all) {
    const value = raw(values[column] ?? 0);
    if (value === undefined) continue;
    parts.push(
      `${kind} ${name}: ${kind === "instance" ? instanceText(value) : JSON.stringify(value)}`,
    );
  }
  return parts.sort().join("\n");
}

function instanceText(value: unknown): string {
  const { place, timers, calls, held, starter } = value as InstanceValue;
  return JSON.stringify([place.key, timers, calls, held, starter]);
}

function edgesText({ space, search }: Checking, index: number): string {
  const edges: string[] = [];
  search.forEachEdge(index, (action, target) => {
    edges.push(`${space.actions[action]!.label} to ${target}`);
  });
  return edges.join("\n");
}
