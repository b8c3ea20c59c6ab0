/**
 * How machines run, whatever they say: a pure step over instances of XState charts.
 *
 * Generic in effects and resources, and usable for anyone's machines.
 *
 * @module
 */
export type { Chart } from "./chart.ts";
export { effectsDigest } from "./digest.ts";
export { Fold, KernelError } from "./fold.ts";
export { type Hash, hashText, hex, hex32 } from "./hash.ts";
export { Instances } from "./instances.ts";
export { Kernel, type KernelOptions, type SavedSystem } from "./kernel.ts";
export {
  ImpureChartError,
  Local,
  type LocalOptions,
  type LocalOutput,
  type LocalState,
  type LocalStep,
  type MicroTransition,
  type StepKind,
} from "./local.ts";
export { effect, hold, release, start, stop, tell } from "./outputs.ts";
export {
  assertPortable,
  NotPortableError,
  type PortabilityProblem,
  portabilityProblems,
} from "./portable.ts";
export {
  type Applied,
  type ChartKind,
  EMPTY,
  rankOf,
  stateDigest,
  type StepResult,
  type System,
  type SystemDefinition,
} from "./system.ts";
export * from "./types.ts";
