/** The keeper: local processes and services that outlive their coordinator for a lease, and nothing that outlives the keeper. */
export { type ConnectKeeper, KeeperClient, type KeeperHandlers } from "./client.ts";
export { KeeperError, type KeeperErrorCode } from "./errors.ts";
export { drawKeeperPlace, type KeeperPlace } from "./place.ts";
export type {
  ChildStatus,
  ExitEvent,
  Launch,
  ServiceStatus,
  StopReport,
  Welcome,
} from "./protocol.ts";
export { selfCommand } from "./self.ts";
export { keeperCommand, type StartKeeper, startKeeper } from "./start.ts";
export { sweepAfterKeeper, type SweepReport } from "./sweep.ts";
