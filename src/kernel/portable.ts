/**
 * The portable subset of XState: what the kernel can run as a pure step, draw, export and check.
 *
 * A chart in the subset is plain data: its configuration equals its own JSON (only the root's `context` and `output` may be
 * functions), every guard, action and delay that it names exists, it neither spawns nor sends by itself, and it comes to rest.
 */
import type { AnyStateMachine } from "xstate";

/** Why a chart is outside the subset, and where. */
export interface PortabilityProblem {
  readonly chart: string;
  /** State node id or implementation name. */
  readonly at: string;
  readonly reason: string;
  /** Whether XState itself could not run it as a pure step either. Otherwise it only cannot be written down, or has a better way here. */
  readonly fatal: boolean;
}

/** A chart is outside the portable subset. */
export class NotPortableError extends Error {
  readonly code = "not-portable";
  readonly problems: readonly PortabilityProblem[];
  constructor(problems: readonly PortabilityProblem[]) {
    super(problems.map((p) => `${p.chart}, ${p.at}: ${p.reason}`).join("\n"));
    this.name = "NotPortableError";
    this.problems = problems;
  }
}

/** Throws {@link NotPortableError} unless the chart is in the portable subset. */
export function assertPortable(machine: AnyStateMachine): void {
  const problems = portabilityProblems(machine);
  if (problems.length > 0) throw new NotPortableError(problems);
}

/** Every reason why a chart is outside the portable subset; empty when it is inside. */
export function portabilityProblems(machine: AnyStateMachine): PortabilityProblem[] {
  const problems: PortabilityProblem[] = [];
  const report: Report = (at, reason, fatal = false) =>
    problems.push({ chart: machine.id, at, reason, fatal });
  plainData(machine.config as unknown, "", report);
  implementations(machine, report);
  const nodes = [...nodesOf(machine.root as unknown as Node)];
  for (const node of nodes) references(machine, node, report);
  endless(nodes, report);
  return problems;
}

type Report = (at: string, reason: string, fatal?: boolean) => void;

interface TransitionConfig {
  readonly guard?: unknown;
  readonly actions?: readonly unknown[];
  readonly target?: readonly Node[];
  readonly eventType?: string;
  readonly delay?: unknown;
}

interface Node {
  readonly id: string;
  readonly type: string;
  readonly config: Record<string, unknown>;
  readonly states: Record<string, Node>;
  readonly entry: readonly unknown[];
  readonly exit: readonly unknown[];
  readonly invoke: readonly unknown[];
  readonly after: readonly TransitionConfig[];
  readonly always?: readonly TransitionConfig[];
  readonly initial?: { readonly target: readonly Node[] };
  readonly transitions: ReadonlyMap<string, readonly TransitionConfig[]>;
}

const MAY_BE_FUNCTIONS = new Set(["context", "output"]);

function plainData(value: unknown, path: string, report: Report): void {
  if (typeof value === "function") {
    if (!MAY_BE_FUNCTIONS.has(path)) {
      report(path, "an inline function; name it in setup() so that the configuration stays data");
    }
  } else if (Array.isArray(value)) {
    value.forEach((item, i) => plainData(item, `${path}[${i}]`, report));
  } else if (typeof value === "object" && value !== null) {
    if (Object.getPrototypeOf(value) !== Object.prototype) {
      report(path, `${value.constructor?.name ?? "an object"} is not JSON`);
      return;
    }
    for (const [key, item] of Object.entries(value)) {
      plainData(item, path === "" ? key : `${path}.${key}`, report);
    }
  } else if (
    typeof value === "bigint" || typeof value === "symbol" ||
    (typeof value === "number" && !Number.isFinite(value))
  ) {
    report(path, `${String(value)} is not JSON`);
  }
}

const FORBIDDEN: Readonly<Record<string, string>> = {
  "xstate.sendTo": "sends by itself; return tell(...) from an action instead",
  "xstate.spawnChild": "spawns; return start(...) from an action instead",
  "xstate.emit": "emits; return effect(...) from an action instead",
  "xstate.stopChild": "stops a child; return stop(...) from an action instead",
  "xstate.enqueueActions": "decides at run time which actions it takes; use guards instead",
};

/** What reaches out of the machine by itself, to something that a pure step does not have. */
const FATAL = new Set(["xstate.sendTo", "xstate.spawnChild", "xstate.stopChild"]);

function implementations(machine: AnyStateMachine, report: Report): void {
  for (const [name, action] of Object.entries(machine.implementations.actions)) {
    const type = (action as { type?: string } | undefined)?.type;
    const why = type === undefined ? undefined : FORBIDDEN[type];
    if (why !== undefined) report(`action ${name}`, why, FATAL.has(type!));
  }
  for (const [name, guard] of Object.entries(machine.implementations.guards)) {
    const check = (guard as { check?: unknown } | undefined)?.check;
    if (check !== undefined) {
      report(
        `guard ${name}`,
        "and(), or(), not() and stateIn() cannot be drawn or exported; write one guard",
      );
    }
  }
}

function references(machine: AnyStateMachine, node: Node, report: Report): void {
  const { actions, guards, delays } = machine.implementations as unknown as Record<
    "actions" | "guards" | "delays",
    Record<string, unknown>
  >;
  const known = (table: Record<string, unknown>, reference: unknown, what: string) => {
    const name = typeof reference === "string"
      ? reference
      : (reference as { type?: string } | undefined)?.type;
    if (typeof reference === "function" || name === undefined) {
      // An inline function is reported as such; what it does beside may be worse.
      if (name !== undefined && FATAL.has(name)) report(node.id, FORBIDDEN[name]!, true);
      return;
    }
    if (name.startsWith("xstate.")) {
      if (name in FORBIDDEN) report(node.id, FORBIDDEN[name]!, FATAL.has(name));
      return;
    }
    if (table[name] === undefined) report(node.id, `there is no ${what} ${name}`, true);
  };
  if (node.invoke.length > 0) {
    report(node.id, "invoke runs an actor; return start(...) from an entry action instead");
  }
  for (const action of [...node.entry, ...node.exit]) known(actions, action, "action");
  const all = [...node.transitions.values()].flat().concat(node.always ?? []);
  for (const transition of all) {
    if (transition.guard !== undefined) known(guards, transition.guard, "guard");
    for (const action of transition.actions ?? []) known(actions, action, "action");
  }
  for (const name of Object.keys((node.config["after"] ?? {}) as object)) {
    if (!/^\d+$/.test(name) && delays[name] === undefined) {
      report(node.id, `there is no delay ${name}; XState would fire it at once`, true);
    }
  }
  const timers =
    (node.config["meta"] as { timers?: Record<string, unknown> } | undefined)?.timers ?? {};
  for (const [name, policy] of Object.entries(timers)) {
    if (((node.config["after"] ?? {}) as Record<string, unknown>)[name] === undefined) {
      report(node.id, `meta.timers names ${name}, which this state does not arm`);
    }
    if (!["deadline", "remaining", "restart"].includes(String(policy))) {
      report(node.id, `meta.timers.${name} is ${String(policy)}: deadline, remaining or restart`);
    }
  }
}

/** Finds cycles of unguarded eventless transitions: such a chart never comes to rest, and XState never returns. */
function endless(nodes: readonly Node[], report: Report): void {
  const next = (node: Node): Node[] => {
    const unguarded = (node.always ?? []).find((t) => t.guard === undefined);
    return (unguarded?.target ?? []).flatMap(entered);
  };
  const done = new Set<Node>();
  for (const origin of nodes) {
    const path: Node[] = [];
    const walk = (node: Node): void => {
      if (path.includes(node)) {
        const cycle = [...path.slice(path.indexOf(node)), node].map((n) => n.id).join(" -> ");
        report(node.id, `unguarded eventless transitions in a circle: ${cycle}`, true);
        return;
      }
      if (done.has(node)) return;
      path.push(node);
      for (const target of next(node)) walk(target);
      path.pop();
      done.add(node);
    };
    walk(origin);
  }
}

/** A node and what is entered with it. */
function entered(node: Node): Node[] {
  if (node.type === "parallel") {
    return [node, ...Object.values(node.states).flatMap(entered)];
  }
  return [node, ...(node.initial?.target ?? []).flatMap(entered)];
}

function* nodesOf(node: Node): Generator<Node> {
  yield node;
  for (const child of Object.values(node.states)) yield* nodesOf(child);
}
