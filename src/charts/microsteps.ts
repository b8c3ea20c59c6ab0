/**
 * Which transitions a step really took, `always` and raised events included. The kernel does not keep them, so XState is
 * asked once more; what this rests on (the scope's shape, the `@xstate.microstep` inspection event) is of xstate 5.33.
 */
import { type AnyMachineSnapshot, type AnyStateMachine, createActor, createMachine } from "xstate";

/** One microstep: the snapshot after it and XState's own definitions of the transitions that led there. */
export interface Microstep {
  readonly event: { readonly type: string };
  readonly snapshot: AnyMachineSnapshot;
  readonly transitions: readonly object[];
}

interface InspectedMicrostep {
  readonly type: string;
  readonly event: { readonly type: string };
  readonly snapshot: AnyMachineSnapshot;
  readonly _transitions: readonly object[];
}

const bystander = createActor(createMachine({}));

export class MicrostepProbe {
  readonly machine: AnyStateMachine;
  #found: Microstep[] = [];
  // deno-lint-ignore no-explicit-any
  readonly #scope: any;

  constructor(machine: AnyStateMachine) {
    this.machine = machine;
    const system = Object.create(bystander.system);
    system._sendInspectionEvent = (seen: InspectedMicrostep): void => {
      if (seen.type !== "@xstate.microstep") return;
      const { event, snapshot, _transitions: transitions } = seen;
      this.#found.push({ event, snapshot, transitions });
    };
    this.#scope = {
      self: bystander,
      system,
      id: "",
      sessionId: "",
      defer() {},
      logger() {},
      stopChild() {},
      emit() {},
      actionExecutor() {},
    };
  }

  /** The microsteps of an event; none when no transition was taken. Nothing is executed. */
  step(snapshot: AnyMachineSnapshot, event: { readonly type: string }): readonly Microstep[] {
    this.#found = [];
    this.machine.microstep(snapshot, event as never, this.#scope);
    return this.#found.filter((step) => step.transitions.length > 0);
  }

  /** The microsteps from the start to the first stable state for an instance's input. */
  initial(input: unknown): readonly Microstep[] {
    this.#found = [];
    this.machine.getInitialSnapshot(this.#scope, input as never);
    return this.#found;
  }
}
