import type { Model } from "../../src/checker/mod.ts";

/** A defect of the original as a model of its rules, with the property that they break. */
export interface UpstreamDefect {
  /** File name of its drawing, and what `muster check upstream/<name>` takes. */
  readonly name: string;
  /** The number in the list of known defects (wire specification, section 9). */
  readonly number: number;
  /** What goes wrong, in a sentence. */
  readonly what: string;
  /** What ours does instead, in a sentence. */
  readonly ours: string;
  readonly model: Model;
  /** The property that the rules break. */
  readonly property: string;
  /** Steps of the shortest counterexample. */
  readonly steps: number;
}
