/**
 * Journal, kernel and drivers put together and run.
 *
 * @module
 */
export { type Clock, SteadyTime, systemClock } from "./clock.ts";
export {
  ConfigurationChangedError,
  type ConfigurationDifference,
  differencesOf,
} from "./configuration.ts";
export {
  DpCoordinator,
  type DpCoordinatorSettings,
  type DpCoordinatorState,
  dpCoordinatorSystem,
} from "./dp-coordinator.ts";
export { HostError, type HostErrorCode } from "./error.ts";
export { Host, type HostOptions } from "./host.ts";
export type { Logger } from "./logger.ts";
export { discard } from "./outbox.ts";
export type { RestartOptions } from "./restart.ts";
export type { UpkeepOptions } from "./upkeep.ts";
export type { View } from "./views.ts";
export { type OwedCall, recoveredText, type RecoveryReport, reportText } from "./report.ts";
