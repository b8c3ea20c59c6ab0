/** A kernel: a system's definition, ready to run. It keeps memo tables, but no state of any run. */
import { systemHash } from "./digest.ts";
import { hex } from "./hash.ts";
import { Fold } from "./fold.ts";
import { Instances } from "./instances.ts";
import { Local, type LocalOptions } from "./local.ts";
import { EMPTY, type StepResult, type System, type SystemDefinition } from "./system.ts";
import type { Instance, Typed } from "./types.ts";

export interface KernelOptions extends Pick<LocalOptions, "memoLimit" | "verifyEvery"> {}

/** A system as JSON, for checkpoints and snapshots. States are fingerprint texts. */
export interface SavedSystem {
  readonly seq: number;
  readonly at: number;
  readonly generation: number;
  readonly digest: string;
  readonly instances: readonly (Omit<Instance, "state"> & { readonly state: string })[];
}

export class Kernel<E extends Typed = Typed, R extends Typed = Typed> {
  readonly definition: SystemDefinition<E>;
  readonly locals: ReadonlyMap<string, Local>;
  /** The system before any input. */
  readonly empty: System = EMPTY;

  constructor(definition: SystemDefinition<E>, options: KernelOptions = {}) {
    this.definition = definition;
    this.locals = new Map(
      Object.entries(definition.charts).map(([name, { machine, interned }]) => [
        name,
        new Local(machine, { ...options, interned: interned ?? true }),
      ]),
    );
  }

  /** Applies one input. Pure: the given system stays as it is. Throws as {@link Fold.apply} does. */
  step(system: System, input: StepResult["input"]): StepResult<E, R> {
    const fold = this.fold(system);
    const result = fold.apply(input);
    return { ...result, system: fold.system() } as unknown as StepResult<E, R>;
  }

  /**
   * A private copy to which many inputs are applied one after another: the fast form, for replay.
   *
   * @param hashed false where nobody compares states on the way: the hash is then computed at the end, which is faster still.
   */
  fold(system: System = EMPTY, hashed = true): Fold {
    return new Fold(this.definition as unknown as SystemDefinition, this.locals, system, hashed);
  }

  /** The whole system as JSON. */
  save(system: System): SavedSystem {
    const { seq, at, generation } = system;
    const instances = [...system.instances].map((i) => ({ ...i, state: i.state.key }));
    return { seq, at, generation, digest: hex(system.hash), instances };
  }

  /**
   * The system that was saved.
   *
   * @throws Error when the restored state has another digest than the saved one: the charts have changed since.
   */
  load(saved: SavedSystem): System {
    const edit = Instances.none.edit();
    for (const { state, ...instance } of saved.instances) {
      const local = this.locals.get(instance.chart);
      if (local === undefined) throw new Error(`there is no chart ${instance.chart} any more`);
      edit.set({ ...instance, state: local.restore(state) });
    }
    const { seq, at, generation } = saved;
    const instances = edit.freeze();
    const hash = systemHash(instances);
    if (hex(hash) !== saved.digest) {
      throw new Error(
        `the saved system of input ${seq} has digest ${saved.digest}, restored it has ${hex(hash)}`,
      );
    }
    return { instances, generation, seq, at, hash };
  }
}
