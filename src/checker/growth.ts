/** What makes a model grow: a search that met a bound says which parts of its states took so many values. */
import type { Composition } from "./composition.ts";
import type { InstanceValue } from "./components.ts";

/** A part of the states that took many values. */
export interface Growth {
  /** An instance, a channel, a key of the store and so on. */
  readonly component: string;
  /** How many values it took. */
  readonly values: number;
  /** Of an instance: the member of its context that took most, and how many. */
  readonly member?: { readonly name: string; readonly values: number };
}

/** Fewer values than this are no reason to worry. */
const MANY = 64;

/** The parts of a model that took most values, most first. */
export function growthOf(space: Composition, most = 3): Growth[] {
  const { columns, components } = space;
  return components.all
    .map((component) => ({ component, values: columns.sizes[component.column]! }))
    .filter(({ values }) => values >= MANY)
    .sort((a, b) => b.values - a.values)
    .slice(0, most)
    .map(({ component: { kind, name, column, raw }, values }): Growth => {
      const growth = { component: kind === "instance" ? name : `${kind} ${name}`, values };
      if (kind !== "instance") return growth;
      const taken = Array.from({ length: values }, (_, n) => raw(columns.valueAt(column, n)));
      const member = widest(taken as (InstanceValue | undefined)[]);
      return member === undefined ? growth : { ...growth, member };
    });
}

function widest(taken: readonly (InstanceValue | undefined)[]): Growth["member"] {
  const found = new Map<string, Set<string>>();
  for (const value of taken) {
    const context = value?.place.view.context;
    if (typeof context !== "object" || context === null) continue;
    for (const [name, item] of Object.entries(context)) {
      const texts = found.get(name) ?? new Set();
      found.set(name, texts.add(JSON.stringify(item)));
    }
  }
  const [most] = [...found].sort(([, a], [, b]) => b.size - a.size);
  return most === undefined || most[1].size < MANY / 2
    ? undefined
    : { name: most[0], values: most[1].size };
}
