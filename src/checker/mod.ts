/**
 * Every interleaving: explores the very machines that run in production, with the search choosing what happens next.
 *
 * @module
 */
export { type LocalView, type Program, type Reduced, type Reducer } from "./behaviour.ts";
export {
  check,
  checkAsync,
  Checking,
  type CheckOptions,
  type Thrown,
  UnsoundSymmetryError,
  UnsuitedFingerprintsError,
  type Verdict,
  type Violation,
  type Witness,
} from "./check.ts";
export {
  conform,
  type Conformance,
  conformanceText,
  type ConformOptions,
  type Observation,
  type Unexplained,
} from "./conform.ts";
export {
  type ChartCoverage,
  type Coverage,
  coverageOf,
  coverageText,
  type Covered,
} from "./coverage.ts";
export { type ReachedFirst, witnessesOf } from "./witnesses.ts";
export {
  Exploration,
  type ExploredChoice,
  type ExploredState,
  type ExploreRequest,
} from "./explore.ts";
export { collisions } from "./fingerprint-table.ts";
export * from "./model.ts";
export type { Growth } from "./growth.ts";
export { doneOf, errorOf } from "./invoked.ts";
export { type RegressionOptions, regressionTest } from "./regression.ts";
export { breaks } from "./breaks.ts";
export { type Choice, type Chooser, type Run, Runner } from "./run.ts";
export {
  BrokenPropertyError,
  follow,
  type Followed,
  NotDeterministicError,
  play,
  type ScheduleOptions,
  scheduleProperty,
  schedules,
  type ScheduleStep,
  twice,
} from "./schedules.ts";
export { shrink, type Shrunk } from "./shrink.ts";
export {
  randomOf,
  simulate,
  simulateAsync,
  type SimulateOptions,
  type Simulation,
} from "./simulate.ts";
export { type ItfState, type ItfTrace, replay, toItf } from "./trace-file.ts";
export type { Progress, StopReason } from "./search.ts";
export type { Action, ActionKind } from "./space.ts";
export { type Change, ReplayError, type Trace, traceOf, type TraceStep } from "./trace.ts";
export { traceText, verdictText } from "./verdict-text.ts";
export type { World } from "./world.ts";
export { type Mutant, mutantsOf } from "./mutants.ts";
export {
  chartsOf,
  type Fate,
  type MutationOptions,
  type MutationScore,
  mutationScore,
  mutationScoreAsync,
  mutationText,
  scoreOf,
  UnfitModelError,
  withProgram,
} from "./mutate.ts";
