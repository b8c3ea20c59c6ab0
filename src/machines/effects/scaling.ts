/**
 * What scaling asks of the world. Every effect names its store by role and address and its keys by role: which rank a
 * key belongs to follows from the instance that asks (`rank/3/scaling/...`), so that equal states of different ranks ask alike.
 */
import type { EffectTraits } from "../../kernel/mod.ts";

/** The store that serves now, and the one that the operation brings along (it serves after success). */
export type StoreRole = "control" | "reconfig";

export interface StoreAddress {
  readonly host: string;
  readonly port: number;
}

/** The target topology, as rank 0 publishes it and as engines are asked to become it (wire spec, 7.4). */
export interface Bootstrap {
  readonly size: number;
  readonly masterIp: string;
  readonly masterPort: number;
  readonly masterPorts: readonly number[];
  readonly storePort: number;
}

/** Keys of an epoch that a rank writes, by role (wire spec, 7.3). The last five of them belong to the writing rank. */
export type WrittenKey =
  | "current_epoch"
  | "bootstrap"
  | "phase"
  | "operation_id"
  | "num_redundant_experts"
  | "prepared"
  /** `operation/<id>`, the value: whoever knows the operation can wait for its epoch. */
  | "operation_epoch"
  | "completed"
  | "decides"
  | "commit_ready"
  | "old_rank_finished"
  | "shutdown_complete";

export interface KeyValue {
  readonly key: WrittenKey;
  readonly value: string | Bootstrap;
}

// ---- calls ------------------------------------------------------------------------------------------------------

/** Read which epoch the control store names, and how it stands. Outcome: `epochRead`, or `storeFailed`. */
export interface LookUpEpoch {
  readonly type: "store.lookUp";
  readonly at: StoreAddress;
}

/**
 * Set keys of one store, in this order, on one connection; a CHECK behind them is the fence.
 * Outcome: `written {store}`, or `storeFailed {store, text}`: then nobody knows which of them arrived.
 */
export interface WriteStore {
  readonly type: "store.write";
  readonly store: StoreRole;
  readonly at: StoreAddress;
  readonly epoch: string;
  readonly sets: readonly KeyValue[];
}

/**
 * Propose the outcome of an epoch: `compare_set(<epoch>/decision, "", proposal)`. The key is write-once and the reply is what it
 * holds. Outcome: `decided {epoch, outcome}`, or `storeFailed`.
 */
export interface ProposeDecision {
  readonly type: "store.decide";
  readonly at: StoreAddress;
  readonly epoch: string;
  readonly propose: "commit" | "abort";
}

/**
 * Record a failure: `error` unless there is one already (the first cause stays), then phase `failed`, then the fence.
 * Outcome: `failureWritten {store}`, or `storeFailed`.
 */
export interface WriteFailure {
  readonly type: "store.fail";
  readonly store: StoreRole;
  readonly at: StoreAddress;
  readonly epoch: string;
  readonly text: string;
}

/** Ask for the own key of a kind. Outcome: `keyFound` or `keyAbsent`, or `storeFailed`. */
export interface CheckKey {
  readonly type: "store.check";
  readonly at: StoreAddress;
  readonly epoch: string;
  readonly key: "eep_ready" | "finished";
}

/** Open the store server of an operation. Outcome: `storeServing {address}` or `storeServeFailed {text}`. */
export interface ServeStore {
  readonly type: "store.serve";
  readonly host: string;
  readonly epoch: string;
}

/** Draw a fresh epoch and free ports. Outcome: `drawn {epoch, masterPort, masterPorts}`. */
export interface DrawEpoch {
  readonly type: "scaling.draw";
  readonly host: string;
}

/** What a rank asks of its engine (wire spec, 4.4). */
export type EngineRequest =
  | {
    readonly method: "reinitialize_distributed";
    readonly bootstrap: Bootstrap;
    readonly leave: boolean;
  }
  | { readonly method: "pause_scheduler"; readonly mode: "keep" | "wait" | "abort" }
  | { readonly method: "is_scheduler_paused" }
  | { readonly method: "commit_prepared_elastic_ep" }
  | { readonly method: "resume_scheduler" };

/**
 * Call a utility of the own engine. Outcome, all with the method: `utilityReplied {value}`, `utilityFailed {failure}`,
 * `utilityLate {why}` (no reply within the deadline, and why the request has not left, where it has not), or after a restart
 * `utilityUnknown`. A failure that says `unasked` is not the engine's: nothing leads to it.
 */
export interface CallEngine {
  readonly type: "engine.call";
  readonly request: EngineRequest;
  readonly deadlineMs: number;
}

// ---- messages ---------------------------------------------------------------------------------------------------

/** Answer a HELLO at the scale-up socket. */
export interface SendScaleUpInit {
  readonly type: "scaleUp.init";
  readonly rank: number;
}

/** Say how an operation stands to whoever asked for it. */
export interface AnswerOperation {
  readonly type: "operation.answer";
  readonly operation: string;
  readonly outcome: "accepted" | "joined" | "refused" | "completed" | "failed" | "inDoubt";
  readonly text: string | null;
}

export type ScalingEffect =
  | LookUpEpoch
  | WriteStore
  | ProposeDecision
  | WriteFailure
  | CheckKey
  | ServeStore
  | DrawEpoch
  | CallEngine
  | SendScaleUpInit
  | AnswerOperation;

// ---- resources --------------------------------------------------------------------------------------------------

/** What can become true of an epoch in a store; once true it stays true. */
export type StoreFact =
  /** `eep_ready/<rank>` of every rank of the target: input `enginesReady`. */
  | "enginesReady"
  /** Every old rank goes by the decision key: input `everyoneDecides`. */
  | "everyoneDecides"
  /** `commit_ready/<rank>` of every old rank: input `everyoneVoted`. */
  | "everyoneVoted"
  /** The finish or shutdown key of every old rank: input `everyoneFinished`. */
  | "everyoneFinished"
  /** Input `completedSeen`; reported before an error that is there too. */
  | "completed"
  /** Input `decisionSeen {outcome}`. */
  | "decision"
  /** Input `errorSeen {text}`. */
  | "error";

/** Watch facts of an epoch: each is one input when it is found true. A store that is gone for good is `storeLost {store, text}`. */
export interface WatchFacts {
  readonly type: "store.facts";
  readonly store: StoreRole;
  readonly at: StoreAddress;
  readonly epoch: string;
  readonly facts: readonly StoreFact[];
  readonly oldSize: number;
  readonly target: number;
}

/** Watch which epoch the control store names: `epochSeen` at each change of what is known of it. */
export interface WatchEpoch {
  readonly type: "store.epoch";
  readonly at: StoreAddress;
  /** Under which name Muster's rank 0 announces it; null where only the original's keys tell. */
  readonly operation: string | null;
}

/** Keep the store server of an epoch alive. */
export interface KeepStore {
  readonly type: "store.server";
  readonly at: StoreAddress;
  readonly epoch: string;
}

/** The ROUTER for new ranks (wire spec, 7.6). Reports `listening {endpoint}` or `bindFailed {text}`. */
export interface ScaleUpSocket {
  readonly type: "socket.scaleUp";
  readonly bind: string;
  /** The first and the last of the new ranks. */
  readonly ranks: readonly [first: number, last: number];
  readonly reply: ScaleUpReply;
}

/** What new ranks are told: `wrapped` for releases since the wrapper, `flat` for those before. */
export interface ScaleUpReply {
  readonly form: "wrapped" | "flat";
  readonly addresses: {
    readonly inputs: readonly string[];
    readonly outputs: readonly string[];
    readonly coordinatorInput: string | null;
    readonly coordinatorOutput: string | null;
    readonly frontendStatsPublish: string | null;
  };
  readonly parallelConfig: Readonly<Record<string, number | string | readonly number[]>>;
  readonly redundantExperts: number;
}

export type ScalingResource = WatchFacts | WatchEpoch | KeepStore | ScaleUpSocket;

// ---- how they behave --------------------------------------------------------------------------------------------

/**
 * What a restart does about a call whose outcome was owed (the rules of the design, one a line):
 *
 * | call | rule |
 * |---|---|
 * | `store.lookUp`, `store.check` | repeat: they only read |
 * | `store.write` | ask: CHECK the keys first, set what is missing |
 * | `store.decide`, `store.fail` | repeat: write-once, so asking again is asking what was decided |
 * | `store.serve` | ask: the keeper knows it by the call's id and answers with what runs; where there is none it is opened afresh |
 * | `scaling.draw` | repeat: nobody has seen the first draw |
 * | `reinitialize_distributed` | unknown: the machine checks `eep_ready/<rank>`, else it abandons and names the engine to restart |
 * | `pause_scheduler`, `resume_scheduler` | unknown: the machine asks `is_scheduler_paused` and repeats |
 * | `is_scheduler_paused` | unknown: the machine asks again |
 * | `commit_prepared_elastic_ep` | unknown: the machine checks its finish key, then asks again; the engine takes the request only once |
 *
 * A notification is one frame, which nobody repeats. One that a killed coordinator had taken from its socket and not yet written is lost, and
 * no engine can be asked for it: rank 0's limit ends the operation as failed, and the engines are named to start anew.
 *
 * For `engine.call` to "ask" is to conclude the call with `utilityUnknown`: the machine knows what to ask.
 */
export const scalingEffects: Readonly<
  Record<ScalingEffect["type"], EffectTraits & { readonly recovery?: "repeat" | "ask" }>
> = {
  "store.lookUp": { kind: "call", leaves: "durable", recovery: "repeat" },
  "store.check": { kind: "call", leaves: "durable", recovery: "repeat" },
  "store.write": { kind: "call", leaves: "durable", recovery: "ask" },
  "store.decide": { kind: "call", leaves: "durable", recovery: "repeat" },
  "store.fail": { kind: "call", leaves: "durable", recovery: "repeat" },
  "store.serve": { kind: "call", leaves: "durable", recovery: "ask" },
  "scaling.draw": { kind: "call", leaves: "durable", recovery: "repeat" },
  "engine.call": { kind: "call", leaves: "durable", recovery: "ask" },
  "scaleUp.init": { kind: "message", leaves: "appended" },
  "operation.answer": { kind: "message", leaves: "durable" },
};
