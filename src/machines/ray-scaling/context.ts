import type { NodeSnapshot, Placement } from "../../planning/mod.ts";
import type { Bootstrap, StoreAddress } from "../effects/scaling.ts";

/** `two-phase`: prepare, pause, commit (newest). `relay`: notifications are passed on between steps (middle releases). */
export type NotificationFlow = "two-phase" | "relay";

export interface RayScalingInput {
  readonly flow: NotificationFlow;
  /** Where every rank runs: the one owner of the size. */
  readonly placement: Placement;
  /** The launch of each rank, by rank. */
  readonly launches: readonly string[];
  readonly maxSize: number;
  readonly masterIp: string;
  /** Logical and redundant experts of the model; null where nobody counts. */
  readonly experts: { readonly logical: number; readonly redundant: number } | null;
  /** For a whole operation. */
  readonly deadlineMs: number;
  /** For removed ranks to leave by themselves, and for what a failed operation started to be gone. */
  readonly settleMs: number;
}

/** How far an operation is: until `preparing` nothing was asked of an engine, from `committing` on there is no way back. */
export type Stage = "planning" | "preparing" | "committing" | "leaving";

export interface RayScalingContext extends RayScalingInput {
  readonly operation: string;
  readonly target: number;
  readonly stage: Stage;
  /** The placement of the target. It becomes `placement` when the operation is through, and is dropped when it fails. */
  readonly planned: Placement | null;
  readonly bootstrap: Bootstrap | null;
  readonly store: StoreAddress | null;
  readonly epoch: string;
  /** What is still awaited, as `kind/rank` or `kind`. */
  readonly waiting: readonly string[];
  /** New ranks from which a first frame came, whenever that was. */
  readonly joined: readonly number[];
  /** Removed ranks that have left, whenever that was. */
  readonly left: readonly number[];
  /** Old ranks that were asked to pause. */
  readonly paused: readonly number[];
  readonly failure: { readonly rank: number | null; readonly text: string } | null;
  /** Engines that hold a reconfiguration that will not be: only a restart frees them. */
  readonly enginesToRestart: readonly number[];
}

export type Notification =
  | "NEW_CORE_ENGINES_INIT_READY"
  | "NEW_CORE_ENGINES_WEIGHTS_INIT_READY"
  | "RECONFIGURE_FINISHED"
  | "SHUTDOWN_COMPLETE";

export type RayScalingEvent =
  | { type: "scale"; operation: string; target: number }
  | { type: "abort"; text: string }
  | { type: "snapshotTaken"; nodes: readonly NodeSnapshot[] }
  | { type: "snapshotFailed"; text: string }
  | { type: "drawn"; epoch: string; masterPort: number; masterPorts: readonly number[] }
  | { type: "drawFailed"; text: string }
  | { type: "storeServing"; address: StoreAddress }
  | { type: "storeServeFailed"; text: string }
  | { type: "storeLost"; text: string }
  | { type: "rankLaunched"; rank: number }
  | { type: "rankLaunchFailed"; rank: number; text: string }
  | { type: "rankStopped"; rank: number }
  /** A rank's job ended without being told to. */
  | { type: "rankGone"; rank: number; text: string }
  | { type: "engineReplied"; rank: number; method: string }
  | { type: "engineFailed"; rank: number; method: string; text: string }
  /** `eep_ready` of every rank of the target is in the store. */
  | { type: "enginesReady" }
  /** The first frame of a rank on the input socket. */
  | { type: "joined"; rank: number }
  | { type: "notified"; rank: number; kind: Notification }
  | { type: "engineRestarted"; rank: number }
  /** Everything was started anew, with these places. */
  | { type: "regrouped"; placement: Placement; launches: readonly string[] };

export const sizeOf = (context: Pick<RayScalingInput, "placement">): number =>
  context.placement.ranks.length;

const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);

/** Ranks that are there before and after. */
export const remaining = (c: RayScalingContext): number[] =>
  range(0, Math.min(sizeOf(c), c.target));
export const newRanks = (c: RayScalingContext): number[] => range(sizeOf(c), c.target);
export const removed = (c: RayScalingContext): number[] => range(c.target, sizeOf(c));
export const oldRanks = (c: RayScalingContext): number[] => range(0, sizeOf(c));

/** New ranks whose start was asked for. */
export const started = (c: RayScalingContext): number[] =>
  c.stage === "planning" ? [] : newRanks(c);

/** The launch of a rank, also of one that is new. */
export const launchOf = (c: RayScalingContext, rank: number): string =>
  c.launches[rank] ?? `${c.operation}-r${rank}`;

/** Why a target cannot be scaled to, or null (wire spec, 6.1, preconditions). */
export function refusalOf(c: RayScalingContext, target: number): string | null {
  const size = sizeOf(c);
  if (c.enginesToRestart.length > 0) {
    return `engines ${
      c.enginesToRestart.join(", ")
    } hold an abandoned reconfiguration and must be restarted first`;
  }
  if (!Number.isInteger(target) || target < 1) return "the new size must be a positive integer";
  if (target > c.maxSize) {
    return `cannot scale to ${target}: --elastic-ep-max-dp-size is ${c.maxSize}`;
  }
  if (c.experts === null) return null;
  const { logical, redundant } = c.experts;
  const physical = logical + redundant;
  if (Math.floor(physical * target / size) - logical >= 0) return null;
  return `cannot scale to ${target}: the experts need at least ${
    Math.ceil(logical * size / physical)
  }`;
}
