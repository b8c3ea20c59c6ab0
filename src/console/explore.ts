import type { SequenceStep } from "../charts/mod.ts";

/** A state of a model, as the page shows it. */
export interface ExploredState {
  /** The choices that led here: indices into `enabled` of each state on the way. */
  readonly path: readonly number[];
  /** The steps so far, for the sequence diagram. */
  readonly steps: readonly SequenceStep[];
  /** What each party's state is, in words. */
  readonly parties: readonly {
    readonly id: string;
    readonly state: string;
    readonly detail?: string;
  }[];
  /** What may happen next, in the order of their indices. */
  readonly enabled: readonly { readonly label: string; readonly kind?: string }[];
  /** Properties that do not hold here. */
  readonly violated: readonly string[];
  /** Whether a run may end here. */
  readonly terminal: boolean;
}

/** A counterexample (or an example) that the checker found. */
export interface FoundTrace {
  readonly property: string;
  readonly text: string;
  readonly path: readonly number[];
}

/** A checked model that the page walks through; `muster check --explore` provides it. */
export interface Explorer {
  readonly name: string;
  readonly summary: string;
  readonly traces: readonly FoundTrace[];
  /** The state after these choices. Throws `RangeError` for a choice that there is not. */
  at(path: readonly number[]): ExploredState;
}
