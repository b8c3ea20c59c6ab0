/** What one rank knows of one scaling operation, and the facts that reach it. */
import type { Bootstrap, StoreAddress, StoreRole } from "../effects/scaling.ts";

/** Deadlines of a rank's part, in milliseconds. */
export interface ScalingLimits {
  /** From the request until this rank is prepared and told to commit. */
  readonly prepareMs: number;
  /** From its vote until it stops waiting in silence. */
  readonly voteMs: number;
  /** From the decision until it stops waiting in silence. */
  readonly outcomeMs: number;
  /** For one utility call. */
  readonly utilityMs: number;
  /** Between two attempts at a store that did not answer, or an engine that refused. */
  readonly retryMs: number;
}

export const DEFAULT_SCALING_LIMITS: ScalingLimits = {
  prepareMs: 300_000,
  voteMs: 600_000,
  outcomeMs: 600_000,
  utilityMs: 60_000,
  retryMs: 500,
};

/** Why an operation ended without success, or hangs: the first cause that this rank met. */
export interface ScalingCause {
  readonly code: ScalingCode;
  readonly text: string;
}

export type ScalingCode =
  | "aborted"
  | "another-active"
  | "different-target"
  | "prepare-late"
  | "vote-late"
  | "outcome-late"
  | "failed-elsewhere"
  | "store-failed"
  | "store-lost"
  | "handshake-failed"
  | "engine-failed"
  | "engine-late"
  | "engine-lost"
  | "engine-unknown";

export interface ScalingInput {
  /** The name of the request on this rank. */
  readonly operation: string;
  /** Every rank knows the operation by this name, so that it identifies the epoch; not so for requests as the original takes them. */
  readonly shared: boolean;
  /** Who is told how it goes: an instance id, or empty. */
  readonly report: string;
  /** Rank 0 publishes; the others follow. */
  readonly leader: boolean;
  /** This rank is still there afterwards. */
  readonly remains: boolean;
  readonly oldSize: number;
  readonly target: number;
  readonly control: StoreAddress;
  readonly masterIp: string;
  /** Redundant experts of the target, by this rank's own arithmetic. */
  readonly redundancy: number;
  /** The last epoch that this rank acted on: never taken for a new one. */
  readonly previous: string;
  readonly limits: ScalingLimits;
  /** Nobody will say `commit`: go on when prepared, as the original does. */
  readonly autoCommit: boolean;
  /** For the scale-up handshake; null where this rank does not lead. */
  readonly handshake: HandshakeSettings | null;
}

/** What rank 0 needs to greet new ranks. */
export interface HandshakeSettings {
  readonly bind: string;
  readonly form: "wrapped" | "flat";
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly coordinatorInput: string | null;
  readonly coordinatorOutput: string | null;
  readonly frontendStatsPublish: string | null;
  readonly maxSize: number;
}

export interface ScalingContext extends ScalingInput {
  /** Empty until this rank joined an epoch. */
  readonly epoch: string;
  readonly bootstrap: Bootstrap | null;
  /** An earlier epoch that rank 0 found without an end, and ends first. */
  readonly earlier: string;
  /** Something of this epoch may be visible to others, so a failure has to be published. */
  readonly joined: boolean;
  /** The engine was asked to reconfigure: after a failure it has to be restarted. */
  readonly engineTouched: boolean;
  /** Every old rank goes by the decision key. */
  readonly everyoneDecides: boolean;
  /** Why this rank proposes to abort; null while it does not. */
  readonly objection: ScalingCause | null;
  /** An error of this epoch that was read since the vote; null while there is none. */
  readonly error: string | null;
  /** The commit request may have been taken already, so that a refusal of it says nothing. */
  readonly requested: boolean;
  readonly attempts: number;
  /** It serves in the new topology, but its engine did not resume. */
  readonly engineToRestart: boolean;
  readonly outcome: ScalingOutput["outcome"];
  readonly cause: ScalingCause | null;
}

/** What the control store says of its current epoch, in one reading. */
export interface EpochView {
  readonly epoch: string;
  readonly bootstrap: Bootstrap | null;
  readonly operation: string | null;
  readonly prepared: boolean;
  /** Null until it is there; read before `prepared` is believed. */
  readonly redundancy: number | null;
  readonly error: string | null;
  readonly completed: boolean;
}

export type UtilityEvent =
  | { type: "utilityReplied"; method: string; value: string | boolean | null }
  | { type: "utilityFailed"; method: string; failure: string }
  | { type: "utilityLate"; method: string }
  | { type: "utilityUnknown"; method: string };

export type ScalingEvent =
  // commands
  | { type: "commit" }
  | { type: "abort"; text: string }
  // the store
  | { type: "epochRead"; view: EpochView | null }
  | { type: "epochSeen"; view: EpochView }
  | { type: "written"; store: StoreRole }
  | { type: "failureWritten"; store: StoreRole }
  | { type: "decided"; epoch: string; outcome: "commit" | "abort" }
  | { type: "keyFound" }
  | { type: "keyAbsent" }
  | { type: "storeFailed"; store: StoreRole; text: string }
  | { type: "storeLost"; store: StoreRole; text: string }
  | { type: "enginesReady" }
  | { type: "everyoneDecides" }
  | { type: "everyoneVoted" }
  | { type: "everyoneFinished" }
  | { type: "completedSeen" }
  | { type: "decisionSeen"; outcome: "commit" | "abort" }
  | { type: "errorSeen"; text: string }
  // calls
  | { type: "drawn"; epoch: string; masterPort: number; masterPorts: readonly number[] }
  | { type: "storeServing"; address: StoreAddress }
  | { type: "storeServeFailed"; text: string }
  | UtilityEvent
  // the engine
  | { type: "reconfigureFinished" }
  | { type: "shutdownComplete" }
  | { type: "engineLost"; text: string }
  // the scale-up handshake
  | { type: "handshakeListening"; endpoint: string }
  | { type: "everyoneGreeted" }
  | { type: "handshakeFailed"; text: string }
  | { type: "ended"; from: string };

/** What is left of an operation when a rank's part has ended. */
export interface ScalingOutput {
  /** `stranded`: in doubt for good, because the store that knows the outcome is gone. */
  readonly outcome: "completed" | "failed" | "stranded";
  readonly operation: string;
  readonly epoch: string;
  readonly bootstrap: Bootstrap | null;
  readonly redundancy: number;
  readonly remains: boolean;
  readonly engineToRestart: boolean;
  readonly cause: ScalingCause | null;
}
