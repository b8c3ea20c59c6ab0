/**
 * Muster: the control plane of data-parallel LLM serving, as statecharts.
 *
 * ```ts
 * import { Coordinator } from "muster";
 * ```
 *
 * Rooms have entry points of their own: `muster/kernel`, `muster/checker`, `muster/charts`, `muster/tcpstore`, ...
 *
 * @module
 */
export { ClusterError, Coordinator, type CoordinatorOptions } from "./coordinator.ts";
export { GroupCallError, type GroupCallOptions } from "./host/group-calls.ts";
export type { Logger, RecoveryReport } from "./host/mod.ts";
export type { Launch, Limits } from "./machines/mod.ts";
export { type ClusterConfigInput, PlanRefused, type Topology } from "./planning/mod.ts";
export {
  type ClusterEvent,
  type ClusterStatus,
  type FailureRecord,
  FAILURES,
  type RankStatus,
} from "./view/mod.ts";
