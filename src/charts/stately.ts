import { guardText } from "./labels.ts";
import type { ChartAction, ChartGuard, ChartModel, ChartNode, ChartTransition } from "./model.ts";
import { indexOf } from "./model.ts";

/**
 * The chart as XState's own JSON configuration, the form that Stately's editor imports and `createMachine` takes.
 * Names stand for guards, actions and delays; a formula over guards, which JSON cannot hold, becomes one guard
 * named by its text. Two spaces, a final line feed.
 */
export function toXStateJson(model: ChartModel): string {
  const index = indexOf(model);
  return JSON.stringify({ id: model.id, ...stateConfig(model.root, index) }, null, 2) + "\n";
}

type Config = Record<string, unknown>;
type Index = ReadonlyMap<string, ChartNode>;

function stateConfig(node: ChartNode, index: Index): Config {
  const parent = node.parent === undefined ? undefined : index.get(node.parent);
  const ownId = parent !== undefined && node.id !== `${parent.id}.${node.key}`;
  const typed = node.kind === "parallel" || node.kind === "final" || node.kind === "history";
  const groups = groupTransitions(node, index);
  return {
    ...(ownId ? { id: node.id } : {}),
    ...(typed ? { type: node.kind } : {}),
    ...(node.kind === "history" ? { history: node.history } : {}),
    ...(node.kind === "history" && node.initial !== undefined
      ? { target: `#${node.initial}` }
      : {}),
    ...(node.description === undefined ? {} : { description: node.description }),
    ...(node.tags.length === 0 ? {} : { tags: node.tags }),
    ...(node.meta === undefined ? {} : { meta: node.meta }),
    ...(node.kind === "compound" ? { initial: index.get(node.initial ?? "")?.key } : {}),
    ...(node.entry.length === 0 ? {} : { entry: node.entry.map(actionConfig) }),
    ...(node.exit.length === 0 ? {} : { exit: node.exit.map(actionConfig) }),
    ...(node.invokes.length === 0 ? {} : {
      invoke: node.invokes.map(({ id, src }) => ({
        id,
        src,
        ...outcome("onDone", groups.actor.get(`done ${id}`)),
        ...outcome("onError", groups.actor.get(`error ${id}`)),
        ...outcome("onSnapshot", groups.actor.get(`snapshot ${id}`)),
      })),
    }),
    ...outcome("on", groups.on),
    ...outcome("onDone", groups.done),
    ...outcome("after", groups.after),
    ...outcome("always", groups.always),
    ...(node.children.length === 0 ? {} : {
      states: Object.fromEntries(
        node.children.map((child) => [child.key, stateConfig(child, index)]),
      ),
    }),
  };
}

const outcome = (name: string, value: unknown): Config =>
  value === undefined ? {} : { [name]: value };

function groupTransitions(node: ChartNode, index: Index) {
  const on: Record<string, Config[]> = {};
  const after: Record<string, Config[]> = {};
  const always: Config[] = [];
  const done: Config[] = [];
  const actor = new Map<string, Config[]>();
  for (const t of node.transitions) {
    const config = transitionConfig(t, node, index);
    const { trigger } = t;
    if (trigger.kind === "event") (on[trigger.event] ??= []).push(config);
    else if (trigger.kind === "after") (after[trigger.delay] ??= []).push(config);
    else if (trigger.kind === "always") always.push(config);
    else if (trigger.kind === "done") done.push(config);
    else {
      const key = `${trigger.outcome} ${trigger.actor}`;
      actor.set(key, [...(actor.get(key) ?? []), config]);
    }
  }
  const some = <T extends object>(value: T): T | undefined =>
    Object.keys(value).length > 0 ? value : undefined;
  return { on: some(on), after: some(after), always: some(always), done: some(done), actor };
}

function transitionConfig(t: ChartTransition, node: ChartNode, index: Index): Config {
  const targets = t.targets.map((id) => {
    const target = index.get(id)!;
    return target.parent === node.parent && node.parent !== undefined ? target.key : `#${id}`;
  });
  return {
    ...(targets.length === 0 ? {} : { target: targets.length === 1 ? targets[0] : targets }),
    ...(t.guard === undefined ? {} : { guard: guardConfig(t.guard) }),
    ...(t.actions.length === 0 ? {} : { actions: t.actions.map(actionConfig) }),
    ...(t.reenter ? { reenter: true } : {}),
    ...(t.description === undefined ? {} : { description: t.description }),
  };
}

const actionConfig = (action: ChartAction): unknown =>
  action.params === undefined ? action.name : { type: action.name, params: action.params };

function guardConfig(guard: ChartGuard): unknown {
  if (guard.op !== "named") return guardText(guard);
  return guard.params === undefined ? guard.name : { type: guard.name, params: guard.params };
}
