/**
 * What a statechart looks like, without the library that runs it: the one input of every writer in this room.
 * Plain JSON values only, so that it can be stored, compared and sent to a page.
 */

/** What a state is. `history` states are never active themselves. */
export type NodeKind = "atomic" | "compound" | "parallel" | "final" | "history";

/** An action by name, with its static parameters when it has any. `inline` marks a function without a name. */
export interface ChartAction {
  readonly name: string;
  readonly params?: unknown;
  readonly inline?: true;
}

/** A guard as a formula over named guards. */
export type ChartGuard =
  | { readonly op: "named"; readonly name: string; readonly params?: unknown }
  | { readonly op: "inline" }
  | { readonly op: "not" | "and" | "or"; readonly of: readonly ChartGuard[] }
  | { readonly op: "in"; readonly state: string };

/** What sets a transition off. */
export type ChartTrigger =
  | { readonly kind: "event"; readonly event: string }
  | { readonly kind: "after"; readonly delay: string | number }
  | { readonly kind: "always" }
  | { readonly kind: "done" }
  | {
    readonly kind: "actor";
    readonly outcome: "done" | "error" | "snapshot";
    readonly actor: string;
  };

export interface ChartTransition {
  /** Stable within the chart: `<source id>#<n>`, n counting the source's transitions in document order. */
  readonly id: string;
  readonly source: string;
  /** Ids of the targets; empty for a transition that stays where it is and only acts (or swallows the event). */
  readonly targets: readonly string[];
  readonly trigger: ChartTrigger;
  /** The event type that XState knows it by, e.g. `xstate.after.deadline.engine.waiting`; empty for `always`. */
  readonly eventType: string;
  readonly guard?: ChartGuard;
  readonly actions: readonly ChartAction[];
  /** True when the source is left and entered again although the target lies inside it. */
  readonly reenter: boolean;
  readonly description?: string;
}

export interface ChartNode {
  /** XState's own id, e.g. `engine.serving.waves`; unique in the chart. */
  readonly id: string;
  readonly key: string;
  readonly path: readonly string[];
  readonly kind: NodeKind;
  readonly parent?: string;
  readonly history?: "shallow" | "deep";
  /** Id of the child entered first (compound states), or of the default of a history state that names one. */
  readonly initial?: string;
  readonly children: readonly ChartNode[];
  readonly entry: readonly ChartAction[];
  readonly exit: readonly ChartAction[];
  readonly invokes: readonly { readonly id: string; readonly src: string }[];
  readonly transitions: readonly ChartTransition[];
  readonly tags: readonly string[];
  readonly description?: string;
  readonly meta?: unknown;
}

export interface ChartModel {
  readonly id: string;
  readonly root: ChartNode;
}

/** Every node of the chart, parents before children, in document order. */
export function nodesOf(model: ChartModel): readonly ChartNode[] {
  const all: ChartNode[] = [];
  const visit = (node: ChartNode): void => {
    all.push(node);
    node.children.forEach(visit);
  };
  visit(model.root);
  return all;
}

/** Every transition of the chart in document order. */
export function transitionsOf(model: ChartModel): readonly ChartTransition[] {
  return nodesOf(model).flatMap((node) => node.transitions);
}

/** Finds nodes by id; built once for a writer that asks often. */
export function indexOf(model: ChartModel): ReadonlyMap<string, ChartNode> {
  return new Map(nodesOf(model).map((node) => [node.id, node]));
}

/** The chain from the root down to the node, both included. */
export function lineageOf(index: ReadonlyMap<string, ChartNode>, id: string): readonly ChartNode[] {
  const chain: ChartNode[] = [];
  for (let node = index.get(id); node; node = node.parent ? index.get(node.parent) : undefined) {
    chain.unshift(node);
  }
  return chain;
}

/** The leaves that are entered when the node is: itself, or its initial descendants (one for each region). */
export function initialLeavesOf(
  index: ReadonlyMap<string, ChartNode>,
  id: string,
): readonly ChartNode[] {
  const node = index.get(id);
  if (!node) return [];
  if (node.kind === "parallel") {
    return node.children.filter((c) => c.kind !== "history")
      .flatMap((child) => initialLeavesOf(index, child.id));
  }
  if (node.kind !== "compound" || node.initial === undefined) return [node];
  return initialLeavesOf(index, node.initial);
}
