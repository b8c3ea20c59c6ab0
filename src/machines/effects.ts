/**
 * Everything that our machines can ask of the world: a closed union, and how each of its members behaves.
 *
 * A *message* is never owed. A *call* is owed until its one outcome has arrived, and says what a restart does about it. A
 * *resource* is held until it is released; the host brings the world to the set of held ones.
 */
import { type ScalingEffect, scalingEffects, type ScalingResource } from "./effects/scaling.ts";
import type { EffectTraits } from "../kernel/mod.ts";
import type { Init } from "../protocol/mod.ts";
import { type CoordinatorSocket, type WavesEffect, wavesEffects } from "./effects/waves.ts";

// ---- start-up ---------------------------------------------------------------------------------------------------

/** Answer the HELLO of the rank that asks, with the INIT of the handshake socket. */
export interface SendInit {
  readonly type: "handshake.init";
}

/** Start one process. Outcome: `spawned {pid}` or `spawnFailed {text}`. */
export interface Spawn {
  readonly type: "process.spawn";
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | null;
  /** The environment of the coordinator is passed on too. */
  readonly inherit: boolean;
  /** The output names the processes of the engines; the end of one is reported to its rank as `engineGone`. */
  readonly output?: "vllm";
  /** So often at most is `progressed` reported when its output has grown; 0: never. */
  readonly progressEveryMs: number;
}

/** Terminate a process and its tree, at the latest after `graceMs` by force. Outcome: `stopAnswered`. */
export interface StopProcess {
  readonly type: "process.stop";
  readonly graceMs: number;
}

/** Choose where a keeper of processes will live. Outcome: `keeperPlaced {place}`. */
export interface PlaceKeeper {
  readonly type: "keeper.place";
}

/** Say something to whoever embeds the coordinator. */
export interface Announce {
  readonly type: "announce";
  readonly what: "formed" | "failed" | "stopped";
}

/** Find ports of this host that nobody uses. Outcome: `portsDrawn {ports}`. */
export interface DrawPorts {
  readonly type: "ports.draw";
  readonly host: string;
  readonly count: number;
}

export type StartupEffect =
  | DrawPorts
  | SendInit
  | Spawn
  | StopProcess
  | PlaceKeeper
  | Announce;

/** The ROUTER on which engines shake hands. Reports `bound {socket, endpoints: {bind}}` or `bindFailed {socket, text}`. */
export interface HandshakeSocket {
  readonly type: "socket.handshake";
  readonly bind: string;
  /** The ranks that are awaited here, as ranges with both ends included. Whoever else speaks is a stranger. */
  readonly ranks: readonly (readonly [number, number])[];
  /** What a HELLO is answered with; null until every address is known. */
  readonly init: Init | null;
}

/** The sockets on which one front-end exchanges requests and outputs with engines. Reports `bound` with `input` and `output`. */
export interface BusSocket {
  readonly type: "socket.bus";
  /** Index among the front-ends of the cluster; -1 is the coordinator's and never here. */
  readonly client: number;
  /** The ranks that may speak here, as ranges with both ends included. */
  readonly ranks: readonly (readonly [number, number])[];
  readonly input: string;
  readonly output: string;
}

/**
 * Asks the rank of its holder for a sign of life, over the bus of a front-end. Answers are nobody's business; what is reported is
 * `unresponsive {afterMs, why}`, once, when none has come for so long.
 */
export interface Heartbeat {
  readonly type: "heartbeat";
  readonly everyMs: number;
  readonly withinMs: number;
}

/** A directory of the keeper's own, and the mark of everything that it starts. */
export interface KeeperPlace {
  readonly mark: string;
  readonly directory: string;
}

/** A process as it can be recognised: pids are used again. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: number | null;
  readonly boot: string | null;
}

/** The process that owns local engines. Reports `keeperUp {identity}` or `keeperLost {text}`. */
export interface Keeper {
  readonly type: "keeper";
  readonly place: KeeperPlace;
  /** How long engines outlive their coordinator. */
  readonly leaseMs: number;
  /** The keeper that must be found there; null: none was started yet. */
  readonly identity: ProcessIdentity | null;
}

export type StartupResource = HandshakeSocket | BusSocket | Keeper | Heartbeat;

/** What a restart does about a call that was owed. */
export type Recovery =
  /** Carry it out again: it is idempotent. */
  | "repeat"
  /** Ask the world whether it happened; the driver answers with the outcome. */
  | "ask";

export interface OurTraits extends EffectTraits {
  readonly recovery?: Recovery;
}

export const startupEffects: Readonly<Record<StartupEffect["type"], OurTraits>> = {
  "handshake.init": { kind: "message", leaves: "appended" },
  // The keeper knows a launch by its effect id, so asking again starts nothing twice.
  "process.spawn": { kind: "call", leaves: "durable", recovery: "repeat" },
  "process.stop": { kind: "call", leaves: "durable", recovery: "repeat" },
  "keeper.place": { kind: "call", leaves: "durable", recovery: "repeat" },
  "ports.draw": { kind: "call", leaves: "appended", recovery: "repeat" },
  "announce": { kind: "message", leaves: "durable" },
};

// ---- the closed union -------------------------------------------------------------------------------------------

export type Effect = StartupEffect | WavesEffect | ScalingEffect;
export type Resource = StartupResource | CoordinatorSocket | ScalingResource;

/** How each effect behaves. */
export const effects: Readonly<Record<Effect["type"], OurTraits>> = {
  ...startupEffects,
  ...wavesEffects,
  ...scalingEffects,
};

export type {
  CoordinatorReady,
  CoordinatorSocket,
  PublishWave,
  StartWave,
  WavesEffect,
} from "./effects/waves.ts";
