/**
 * Our statecharts, one a file, and how they are put together.
 *
 * @module
 */
import type { AnyStateMachine } from "xstate";
import { cluster } from "./cluster.ts";
import { rayScalingCharts } from "./ray-scaling-system.ts";

export { everybodyAdopted } from "./adopted.ts";
export * from "./cluster.ts";
export * from "./configuration.ts";
export { configureRun, type RunOptions, type ScalingOptions } from "./configure.ts";
export * from "./effects.ts";
export {
  engine,
  type EngineContext,
  type EngineEvent,
  type Phase,
  type RefusalReason,
} from "./engine.ts";
export { launcher, type LauncherContext, type LauncherEvent } from "./launcher.ts";
export {
  operation,
  type OperationContext,
  type OperationEvent,
  type OperationOutput,
} from "./operation.ts";
export { operations, type OperationsEvent, type OperationsInput } from "./operations.ts";
export { process, type ProcessContext, type ProcessEvent } from "./process.ts";
export * from "./effects/ray.ts";
export * from "./ray-scaling.ts";
export * from "./ray-scaling-system.ts";
export { scaleUpHandshake, type ScaleUpHandshakeEvent } from "./scale-up-handshake.ts";
export * from "./effects/scaling.ts";
export * from "./scaling-system.ts";
export * from "./scaling.ts";
export * from "./scaling/validation.ts";
export { topology, type TopologyEvent, type TopologyInput } from "./topology.ts";
export { startup } from "./startup.ts";
export {
  type Endpoints,
  type Failure,
  type FailureCode,
  initOf,
  type StartupContext,
  type StartupEvent,
} from "./startup/context.ts";

/** Every machine by its name. */
export const machines: Readonly<Record<string, AnyStateMachine>> = Object.fromEntries(
  Object.entries({ ...cluster.charts, ...rayScalingCharts }).map((
    [name, { machine }],
  ) => [name, machine]),
);
export { waves, type WavesContext, type WavesEvent, type WavesInput } from "./waves.ts";
export { calls, groupCall, type GroupCallOutcome, type Unanswered, utility } from "./group-call.ts";
