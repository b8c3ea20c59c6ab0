/**
 * The configuration of a run: its first input. A restart with another one is refused, so everything that decides how a run
 * goes is in here, and nothing that may differ between two lives of it.
 */
import type { ScalingLimits } from "./scaling.ts";
import type { Expertise } from "./scaling/validation.ts";
import type { Mode, RestartPolicy } from "../planning/mod.ts";

/** Deadlines in milliseconds. They cover the waits that really happen. */
export interface Limits {
  /** From the start of the run until every rank is ready. */
  readonly totalMs: number;
  /** For each rank: from the start of the run until its HELLO. */
  readonly connectMs: number;
  /** For each rank: from its HELLO until its READY (the time in which it loads the model). */
  readonly readyMs: number;
  /** For launches whose output is seen: so long may a process say nothing before it is ready. 0: for ever. */
  readonly progressMs: number;
  /** From the request to stop until a process is killed. */
  readonly stopMs: number;
  /**
   * While it serves: so often is a rank whose process we do not see asked for a sign of life, and so long may it take. 0: never.
   * An engine answers between two steps of its model. So long may also its answer take when a coordinator that came back asks whether it
   * goes on.
   */
  readonly heartbeatEveryMs: number;
  readonly heartbeatWithinMs: number;
}

export const DEFAULT_LIMITS: Limits = {
  totalMs: 30 * 60_000,
  connectMs: 10 * 60_000,
  readyMs: 20 * 60_000,
  progressMs: 0,
  stopMs: 5_000,
  heartbeatEveryMs: 10_000,
  heartbeatWithinMs: 60_000,
};

/** What HELLO of a rank must declare. `headless` of local engines is not looked at, as in the original. */
export interface RankExpectation {
  readonly rank: number;
  readonly local: boolean;
  readonly headless: boolean;
}

/** One process to start: an engine, or a launcher of several. */
export interface Launch {
  /** Unique in the run. */
  readonly id: string;
  /** The ranks that live and die with it. */
  readonly ranks: readonly number[];
  /** `{handshake}`, `{bus0.input}` and the like are replaced with the bound endpoints. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | null;
  readonly inherit: boolean;
  /** Whose words it speaks: the output of vLLM's command names the processes of its engines, whose ends are seen by that. */
  readonly output?: "vllm";
  /** When it ends by itself before its ranks serve. Default: not at all. */
  readonly restarts?: RestartPolicy;
}

/** The input ROUTER and output PULL of one front-end; its position in the list is its client index. */
export interface ClientSockets {
  readonly input: string;
  readonly output: string;
  /** False for a front-end in another process: it binds them itself, and they are only handed out. */
  readonly ours: boolean;
}

/** The sockets of a DP coordinator, which are bound by the machine that speaks on them. */
export interface CoordinatorSockets {
  readonly frontPublish: string;
  readonly backPublish: string;
  readonly backOutput: string;
}

/** What is bound before the first engine is answered. Ports may be 0: the binder reports the real ones. */
export interface Sockets {
  /** Where engines shake hands. */
  readonly handshake: string;
  readonly clients: readonly ClientSockets[];
  readonly coordinator: CoordinatorSockets | null;
}

export interface RunConfiguration {
  readonly type: "configured";
  /** Data-parallel size. */
  readonly size: number;
  readonly mode: Mode;
  readonly ranks: readonly RankExpectation[];
  readonly launches: readonly Launch[];
  readonly sockets: Sockets;
  /** The members of INIT's `parallel_config`; null for the empty map of dense models. */
  readonly parallelConfig: Readonly<Record<string, number | string | readonly number[]>> | null;
  /** `parallelConfig` still lacks the ports of the ranks' groups: they are drawn before the first engine is answered. */
  readonly drawsPorts?: boolean;
  /** `null`: INIT has no hash member. A text is also the reference that ranks' hashes are held against. */
  readonly parallelConfigHash: string | null;
  readonly comparesHashes: boolean;
  /** How request waves are coordinated, where this front-end owns the coordinator; `off` for dense models. */
  readonly waves: "evidence" | "optimistic" | "off";
  /** Columns of a published row of loads (wire spec, 5.3); 3 by default. */
  readonly loadColumns?: 2 | 3;
  /** `upstream` answers as the original does: anything out of line ends the start-up. */
  readonly strict: "muster" | "upstream";
  /** When start-up fails: stop the processes, or hold what there is for an operator to look at. */
  readonly onFailure: "stop" | "hold";
  /** How long local engines outlive their coordinator. 0: not at all. */
  readonly leaseMs: number;
  readonly limits: Limits;
  /** Elastic expert parallelism; null: the cluster keeps its size. */
  readonly scaling?: ScalingSettings | null;
}

/** What the cluster needs to know to scale while it serves. */
export interface ScalingSettings extends Expertise {
  readonly limits: ScalingLimits;
  /** After an abort or an operation's deadline: until ranks that say nothing are no longer waited for. */
  readonly settleMs: number;
  /** Where new ranks shake hands, and in which form they are answered. */
  readonly handshake: { readonly bind: string; readonly form: "wrapped" | "flat" };
  /** How a new rank is started: `{rank}`, `{size}` and `{scaleUp}` are filled in; null: by somebody else. */
  readonly joiner: Pick<Launch, "argv" | "env" | "cwd" | "inherit"> | null;
  /**
   * What follows when an operation left engines with a reconfiguration that they cannot abandon: `restart` starts all engines of the
   * group anew, which ends the requests that they run; `hold` (default) serves on, and scales again once somebody restarts them.
   */
  readonly enginesAfterAbort?: "restart" | "hold";
}
