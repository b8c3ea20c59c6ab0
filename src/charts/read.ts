import type {
  ChartAction,
  ChartGuard,
  ChartModel,
  ChartNode,
  ChartTransition,
  ChartTrigger,
} from "./model.ts";
import { ChartError } from "./error.ts";

/** What is read of an XState v5 machine: its root state node. Any `createMachine` or `setup().createMachine` has it. */
export interface MachineLike {
  readonly id: string;
  readonly root: unknown;
}

/** The parts of XState's StateNode that this room depends on (xstate 5.33). */
interface XNode {
  readonly id: string;
  readonly key: string;
  readonly path: readonly string[];
  readonly type: ChartNode["kind"];
  readonly history: false | "shallow" | "deep";
  readonly states: Readonly<Record<string, XNode>>;
  readonly transitions: ReadonlyMap<string, readonly XTransition[]>;
  readonly always?: readonly XTransition[];
  readonly initial?: { readonly target?: readonly XNode[] };
  readonly invoke: readonly { readonly id: string; readonly src: unknown }[];
  readonly config: { readonly entry?: unknown; readonly exit?: unknown; readonly target?: unknown };
  readonly parent?: XNode;
  readonly tags: readonly string[];
  readonly description?: string;
  readonly meta?: unknown;
}

interface XTransition {
  readonly target?: readonly XNode[];
  readonly guard?: unknown;
  readonly actions: readonly unknown[];
  readonly reenter?: boolean;
  readonly delay?: string | number;
  readonly description?: string;
}

/**
 * The structure of an XState v5 machine (with or without `setup`) as plain data.
 * Nothing is run; inline functions appear by their name, or as `inline`.
 * Throws `ChartError` (`chart.not-a-machine`) for anything that is not a machine.
 */
export function chartModel(machine: MachineLike): ChartModel {
  if (!isMachine(machine)) {
    throw new ChartError(
      "chart.not-a-machine",
      `this is ${
        describe(machine)
      }, not an XState v5 machine: pass what createMachine() or setup().createMachine() returned`,
    );
  }
  return { id: machine.id, root: readNode(machine.root as XNode, undefined) };
}

/** The ids that `chartModel` gives to the transitions, by XState's own transition objects. */
export function transitionIds(machine: MachineLike): ReadonlyMap<object, string> {
  const ids = new Map<object, string>();
  const visit = (node: XNode): void => {
    const own = [...[...node.transitions.values()].flat(), ...(node.always ?? [])];
    own.forEach((t, n) => ids.set(t, `${node.id}#${n}`));
    Object.values(node.states).forEach(visit);
  };
  visit(machine.root as XNode);
  return ids;
}

/** Whether a value is an XState v5 machine. */
export function isMachine(value: unknown): value is MachineLike {
  if (typeof value !== "object" || value === null) return false;
  const { root } = value as { root?: { transitions?: unknown; states?: unknown } };
  return typeof root === "object" && root?.transitions instanceof Map &&
    typeof root.states === "object";
}

function readNode(node: XNode, parent: string | undefined): ChartNode {
  const children = Object.values(node.states).map((child) => readNode(child, node.id));
  const initial = node.type === "compound"
    ? node.initial?.target?.[0]?.id
    : node.type === "history"
    ? historyDefault(node)?.id
    : undefined;
  return {
    id: node.id,
    key: node.key,
    path: [...node.path],
    kind: node.type,
    ...(parent === undefined ? {} : { parent }),
    ...(node.type === "history" ? { history: node.history || "shallow" } : {}),
    ...(initial === undefined ? {} : { initial }),
    children,
    entry: listOf(node.config.entry).map(readAction),
    exit: listOf(node.config.exit).map(readAction),
    invokes: node.invoke.map(({ id, src }) => ({ id, src: nameOf(src) ?? "inline" })),
    transitions: readTransitions(node),
    tags: [...node.tags],
    ...(node.description === undefined ? {} : { description: node.description }),
    ...(node.meta === undefined ? {} : { meta: node.meta }),
  };
}

/** A history state's own default, written relative to its parent (`sibling.child`) or as `#id`. */
function historyDefault(node: XNode): XNode | undefined {
  const { target } = node.config;
  if (typeof target !== "string") return undefined;
  if (target.startsWith("#")) return findById(rootOf(node), target.slice(1));
  return target.replace(/^\./, "").split(".")
    .reduce<XNode | undefined>((at, key) => at?.states[key], node.parent);
}

const rootOf = (node: XNode): XNode => node.parent ? rootOf(node.parent) : node;

function findById(node: XNode, id: string): XNode | undefined {
  if (node.id === id) return node;
  for (const child of Object.values(node.states)) {
    const found = findById(child, id);
    if (found) return found;
  }
  return undefined;
}

function readTransitions(node: XNode): ChartTransition[] {
  const all: ChartTransition[] = [];
  const add = (eventType: string, t: XTransition): void => {
    all.push({
      id: `${node.id}#${all.length}`,
      source: node.id,
      targets: (t.target ?? []).map((target) => target.id),
      trigger: triggerOf(node, eventType, t),
      eventType,
      ...(t.guard === undefined ? {} : { guard: readGuard(t.guard) }),
      actions: t.actions.map(readAction),
      reenter: t.reenter === true,
      ...(t.description === undefined ? {} : { description: t.description }),
    });
  };
  for (const [eventType, list] of node.transitions) list.forEach((t) => add(eventType, t));
  (node.always ?? []).forEach((t) => add("", t));
  return all;
}

function triggerOf(node: XNode, eventType: string, t: XTransition): ChartTrigger {
  if (eventType === "") return { kind: "always" };
  if (eventType.startsWith("xstate.after.") && t.delay !== undefined) {
    return { kind: "after", delay: t.delay };
  }
  if (eventType === `xstate.done.state.${node.id}`) return { kind: "done" };
  const actor = /^xstate\.(done|error)\.actor\.(.*)$/.exec(eventType);
  if (actor) {
    return { kind: "actor", outcome: actor[1] as "done" | "error", actor: actor[2]! };
  }
  const snapshot = /^xstate\.snapshot\.(.*)$/.exec(eventType);
  if (snapshot) return { kind: "actor", outcome: "snapshot", actor: snapshot[1]! };
  return { kind: "event", event: eventType };
}

const listOf = (value: unknown): readonly unknown[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

/** Inline `assign(...)` and friends are functions that carry their kind in `type`. */
function nameOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const { type, name } = value as { type?: unknown; name?: unknown };
  if (typeof type === "string") return type.replace(/^xstate\./, "");
  if (typeof name === "string" && name !== "" && name !== "anonymous") return name;
  return undefined;
}

function readAction(value: unknown): ChartAction {
  const name = nameOf(value);
  const inline = typeof value === "function" ? { inline: true as const } : {};
  return { name: name ?? "inline", ...paramsOf(value), ...inline };
}

function paramsOf(value: unknown): { params?: unknown } {
  const params = typeof value === "object" && value !== null
    ? (value as { params?: unknown }).params
    : undefined;
  if (params === undefined) return {};
  return { params: typeof params === "function" ? "computed" : params };
}

function readGuard(value: unknown): ChartGuard {
  if (typeof value === "function") {
    const f = value as { guards?: readonly unknown[]; stateValue?: unknown; name: string };
    if (f.stateValue !== undefined) {
      const state = f.stateValue;
      return { op: "in", state: typeof state === "string" ? state : JSON.stringify(state) };
    }
    if (Array.isArray(f.guards) && isFormula(f.name)) {
      return { op: f.name, of: f.guards.map(readGuard) };
    }
    return f.name === "" || f.name === "guard" ? { op: "inline" } : { op: "named", name: f.name };
  }
  const name = nameOf(value);
  return name === undefined ? { op: "inline" } : { op: "named", name, ...paramsOf(value) };
}

const isFormula = (name: string): name is "and" | "or" | "not" =>
  name === "and" || name === "or" || name === "not";

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value !== "object") return `a ${typeof value}`;
  return `an object with ${Object.keys(value).slice(0, 5).join(", ") || "no keys"}`;
}
