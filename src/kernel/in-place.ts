/**
 * The commonest step of a chart whose every state is new: a transition without a target that assigns and asks for outputs. XState makes a
 * new snapshot for each assignment, with its tags and its value; here only the context is a new one.
 *
 * What is done here is what XState does, and a test compares both on every chart. Whatever is more than that (a target, a built-in action, a
 * guard of guards, an eventless transition that is now enabled) is left to XState. The shapes are internal to xstate 5.33.
 */
import type { AnyMachineSnapshot, AnyStateMachine } from "xstate";
import type { KernelEvent } from "./types.ts";

type Named = string | { readonly type: string; readonly params?: unknown };
type Given = { readonly context: unknown; readonly event: KernelEvent };
type Implementation = ((given: Given, params: unknown) => unknown) & {
  readonly type?: string;
  readonly resolve?: unknown;
  readonly check?: unknown;
  readonly assignment?: unknown;
};
interface Transition {
  readonly target: readonly unknown[] | undefined;
  readonly actions: readonly Named[];
  readonly guard?: Named;
}
interface Node {
  readonly always: readonly Transition[] | undefined;
}

/** The same states with a new context, and which of its members are others. */
export interface Moved {
  readonly snapshot: AnyMachineSnapshot;
  readonly update: Readonly<Record<string, unknown>>;
}

/** Where it moved to, unless it stays as it was, and what the actions returned in order. */
export interface InPlace<Output> {
  readonly moved: Moved | undefined;
  readonly outputs: readonly Output[];
}

/** What the event does, or undefined when XState has to say. Throws what guards and actions throw. */
export function takenInPlace<Output>(
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  event: KernelEvent,
): InPlace<Output> | undefined {
  const enabled = machine.getTransitionData(snapshot as never, event as never);
  const transition = enabled[0] as unknown as Transition | undefined;
  if (transition === undefined || enabled.length > 1) return undefined;
  if (transition.target !== undefined || transition.actions.length === 0) return undefined;
  const actions = machine.implementations.actions as Record<string, Implementation | undefined>;
  const outputs: Output[] = [];
  let context: Record<string, unknown> = snapshot.context;
  let update: Record<string, unknown> | undefined;
  for (const named of transition.actions) {
    const action = actions[nameOf(named)];
    const params = paramsOf(named);
    if (action === undefined || typeof params === "function") return undefined;
    if (action.type === "xstate.assign") {
      const assigned = assignedBy(action.assignment, { context, event }, params);
      context = { ...context };
      for (const name in assigned) context[name] = assigned[name];
      update = update === undefined ? assigned : { ...update, ...assigned };
    } else if (action.resolve !== undefined) return undefined;
    else {
      const returned = action({ context, event }, params) as Output | Output[] | undefined;
      if (Array.isArray(returned)) outputs.push(...returned);
      else if (returned !== undefined) outputs.push(returned);
    }
  }
  if (update === undefined && outputs.length === 0) return undefined;
  // deno-lint-ignore no-explicit-any
  for (const { always } of (snapshot as any)._nodes as Node[]) {
    if (always === undefined) continue;
    for (const candidate of always) {
      if (!isClosed(machine, candidate, { context, event })) return undefined;
    }
  }
  if (update === undefined) return { moved: undefined, outputs };
  return { moved: { snapshot: { ...snapshot, context }, update }, outputs };
}

/** Surely not enabled: its guard is a plain one, and says no. */
function isClosed(machine: AnyStateMachine, { guard }: Transition, given: Given): boolean {
  if (guard === undefined) return false;
  const guards = machine.implementations.guards as Record<string, Implementation | undefined>;
  const implementation = guards[nameOf(guard)];
  const params = paramsOf(guard);
  if (typeof implementation !== "function" || implementation.check !== undefined) return false;
  return typeof params !== "function" && implementation(given, params) === false;
}

function assignedBy(assignment: unknown, given: Given, params: unknown): Record<string, unknown> {
  type Assigner = (given: Given, params: unknown) => unknown;
  if (typeof assignment === "function") {
    return (assignment as Assigner)(given, params) as Record<string, unknown>;
  }
  const update: Record<string, unknown> = {};
  for (const name in assignment as Record<string, unknown>) {
    const value = (assignment as Record<string, unknown>)[name];
    update[name] = typeof value === "function" ? (value as Assigner)(given, params) : value;
  }
  return update;
}

const nameOf = (named: Named): string => typeof named === "string" ? named : named.type;
const paramsOf = (named: Named): unknown => typeof named === "string" ? undefined : named.params;
