/**
 * XState's inspection protocol for instances of a kernel: tools that take `inspect` get what they would get from plain
 * actors of the same charts.
 *
 * Each instance has a plain actor beside it that is told the same events. Its clock stands still (timers fire when the
 * journal says so), and what its actions return is dropped, as under any plain actor. It decides nothing: it is only looked at.
 */
import {
  type Actor,
  type AnyActorRef,
  type AnyStateMachine,
  createActor,
  type InspectionEvent,
  type Observer,
} from "xstate";
import type { KernelEvent, Transition } from "../kernel/mod.ts";

/** What `createActor` takes as `inspect`: a function or an observer. */
export type Inspector = ((event: InspectionEvent) => void) | Observer<InspectionEvent>;

/** A clock that never fires: a delayed event comes as an event, when the run says so. */
const STANDING = { setTimeout: () => 0, clearTimeout: () => {} };

/**
 * Tells an inspector every delivery of a run: `coordinator.subscribe(inspectSteps(machines, inspector))`. Works on recorded
 * steps, too. An instance that is first met in the middle of a run begins with the state that it has then.
 */
export function inspectSteps(
  machines: Readonly<Record<string, AnyStateMachine>>,
  inspector: Inspector,
): (step: { readonly transitions: readonly Transition[] }) => void {
  const actors = new Map<string, Actor<AnyStateMachine>>();

  const begin = (transition: Transition, options: object): Actor<AnyStateMachine> => {
    const machine = machines[transition.chart]!;
    const actor = createActor(machine, {
      id: transition.instance,
      inspect: inspector,
      clock: STANDING,
      ...options,
    } as never) as Actor<AnyStateMachine>;
    actors.set(transition.instance, actor);
    // An instance that ends or fails is told by its snapshot; it is not an error of the program that looks.
    actor.subscribe({ error: () => {} });
    return actor.start();
  };

  const follow = (transition: Transition): void => {
    const { instance, chart, event, before, after, kind } = transition;
    if (machines[chart] === undefined) return;
    if (kind === "started") {
      begin(transition, { input: event["input"] });
      return;
    }
    if (after === undefined) {
      actors.get(instance)?.stop();
      actors.delete(instance);
      return;
    }
    if (kind === "failed") return;
    const actor = actors.get(instance) ?? begin(transition, { snapshot: persisted(before) });
    tell(actor, event, actors.get(String(event["from"] ?? "")));
  };

  return ({ transitions }) => transitions.forEach(follow);
}

/** The state of an instance as `createActor` takes it back. */
function persisted(state: Transition["before"]): unknown {
  const { value, context, status, historyValue } = state!.snapshot as unknown as Record<
    string,
    unknown
  >;
  return { value, context, status, historyValue: historyValue ?? {}, children: {} };
}

/** What instances tell each other comes with its sender, as between plain actors (`sourceRef`). */
function tell(
  actor: Actor<AnyStateMachine>,
  event: KernelEvent,
  source: AnyActorRef | undefined,
): void {
  if (source === undefined) {
    actor.send(event as never);
    return;
  }
  const { system } = actor as unknown as {
    system: { _relay(source: AnyActorRef, target: AnyActorRef, event: unknown): void };
  };
  system._relay(source, actor, event);
}
