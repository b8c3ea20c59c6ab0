/** What internal elastic scaling over a Ray cluster asks of the world (wire spec, section 6). */
import type { EffectTraits } from "../../kernel/mod.ts";
import type { PlacedRank, Placement } from "../../planning/mod.ts";
import type {
  AnswerOperation,
  Bootstrap,
  DrawEpoch,
  EngineRequest,
  ServeStore,
} from "./scaling.ts";

/** What is free on the cluster now. Outcome: `snapshotTaken {nodes}` or `snapshotFailed {text}`. */
export interface RaySnapshot {
  readonly type: "ray.snapshot";
}

/** Start a new rank as a job. The launch's id is its own: asking twice starts it once. Outcome: `rankLaunched {rank}` or `rankLaunchFailed {rank, text}`. */
export interface RayStart {
  readonly type: "ray.start";
  readonly launch: string;
  readonly rank: PlacedRank;
  readonly deviceKey: Placement["deviceKey"];
  /** What it joins: `data_parallel_size`, master, ports and store, and `VLLM_ELASTIC_EP_SCALE_UP_LAUNCH=1`. */
  readonly bootstrap: Bootstrap;
}

/** End a launch, whether it runs, waits or is gone. Outcome: `rankStopped {rank}`. */
export interface RayStop {
  readonly type: "ray.stop";
  readonly launch: string;
  readonly rank: number;
}

/** What middle releases are told between their steps (wire spec, 6.2). */
export interface RelayRequest {
  readonly method: "eep_handle_engine_core_notification";
  readonly notification: "NEW_CORE_ENGINES_INIT_READY" | "NEW_CORE_ENGINES_WEIGHTS_INIT_READY";
}

/** Call a utility of one rank. Outcome: `engineReplied {rank, method}` or `engineFailed {rank, method, text}`, also when it is late. */
export interface CallRank {
  readonly type: "rank.call";
  readonly rank: number;
  readonly request: EngineRequest | RelayRequest;
  readonly deadlineMs: number;
}

export type RayScalingEffect =
  | RaySnapshot
  | RayStart
  | RayStop
  | CallRank
  | DrawEpoch
  | ServeStore
  | AnswerOperation;

export const rayEffects: Readonly<
  Record<(RaySnapshot | RayStart | RayStop | CallRank)["type"], EffectTraits>
> = {
  "ray.snapshot": { kind: "call", leaves: "durable", recovery: "repeat" },
  "ray.start": { kind: "call", leaves: "durable", recovery: "repeat" },
  "ray.stop": { kind: "call", leaves: "durable", recovery: "repeat" },
  "rank.call": { kind: "call", leaves: "durable", recovery: "ask" },
};
