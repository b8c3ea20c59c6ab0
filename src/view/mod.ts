/**
 * Folds for people over the same journal: status and failure records.
 *
 * @module
 */
export { type ClusterEvent, eventsOf } from "./events.ts";
export { type FailureRecord } from "./failure-record.ts";
export { type FailureKind, FAILURES } from "./failures.ts";
export { countRanks, countsText, type RankCounts } from "./rank-counts.ts";
export {
  type ClusterPhase,
  type ClusterStatus,
  type ProcessStatus,
  type RankState,
  type RankStatus,
  serves,
  StatusFold,
  statusOf,
} from "./status.ts";
export { duration, exitText, rankList } from "./words.ts";
