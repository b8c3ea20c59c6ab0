/** From a planned topology to the configuration of a run. */
import { parallelConfig } from "../protocol/mod.ts";
import { PlanRefused, type Topology } from "../planning/mod.ts";
import {
  DEFAULT_LIMITS,
  type Launch,
  type Limits,
  type RunConfiguration,
  type ScalingSettings,
} from "./configuration.ts";
import { DEFAULT_SCALING_LIMITS, type ScalingLimits } from "./scaling.ts";

export interface RunOptions {
  /** Processes that Muster starts itself. Ranks in none of them are started by somebody else. */
  readonly launches?: readonly Launch[];
  readonly limits?: Partial<Limits>;
  /**
   * The port of rank 0's group on `topology.masterIp`, and those of the stateless groups (wire spec, section 3). They must be free on the host
   * of rank 0's engine; without them free ones of this host are drawn, which is right where that engine runs here.
   */
  readonly masterPort?: number;
  readonly masterPortList?: readonly number[];
  readonly coordStorePort?: number;
  /** The reference that READY's hash is held against; null: the first READY sets it. */
  readonly parallelConfigHash?: string | null;
  /** The rule of wake-ups; by default that of the engines' releases. */
  readonly waves?: "evidence" | "optimistic";
  readonly strict?: RunConfiguration["strict"];
  readonly onFailure?: RunConfiguration["onFailure"];
  readonly leaseMs?: number;
  /** Lets the cluster scale while it serves (elastic expert parallelism). */
  readonly scaling?: ScalingOptions;
}

export interface ScalingOptions {
  /** Logical experts of the model, and redundant ones at the start; 0 where no target is too small. */
  readonly experts?: number;
  readonly redundantExperts?: number;
  /** The largest size; the initial one by default, as vLLM's `--elastic-ep-max-dp-size`. */
  readonly maxSize?: number;
  readonly limits?: Partial<ScalingLimits>;
  readonly settleMs?: number;
  /** Where new ranks shake hands; a free port of the master address by default. */
  readonly handshake?: string;
  readonly form?: "wrapped" | "flat";
  readonly joiner?: ScalingSettings["joiner"];
  readonly enginesAfterAbort?: ScalingSettings["enginesAfterAbort"];
}

/** The first input of a run of this topology. */
export function configureRun(topology: Topology, options: RunOptions = {}): RunConfiguration {
  const { handshake, coordinator } = topology;
  if (handshake === null) {
    throw new TypeError(
      `A ${topology.role} of mode ${topology.mode} shakes no hands (${topology.backend}): there is nothing to configure.`,
    );
  }
  return {
    type: "configured",
    size: topology.size,
    mode: topology.mode,
    ranks: handshake.engines,
    launches: options.launches ?? [],
    sockets: {
      handshake: handshake.bind.address,
      clients: topology.clients.map(({ input, output }) => ({
        input: input.address,
        output: output.address,
        ours: true,
      })),
      coordinator: coordinator === null ? null : {
        frontPublish: coordinator.frontPublish.address,
        backPublish: coordinator.backPublish.address,
        backOutput: coordinator.backOutput.address,
      },
    },
    parallelConfig: topology.initCarriesParallelConfig
      ? parallelConfig({
        masterIp: topology.masterIp,
        masterPort: options.masterPort ?? 0,
        masterPortList: options.masterPortList ?? [],
        size: topology.size,
        ...(options.coordStorePort === undefined ? {} : { coordStorePort: options.coordStorePort }),
      })
      : null,
    // With a coordination store rank 0 chooses by itself and publishes what it chose.
    drawsPorts: topology.initCarriesParallelConfig && options.masterPort === undefined &&
      options.coordStorePort === undefined,
    parallelConfigHash: options.parallelConfigHash ?? null,
    comparesHashes: topology.comparesHashes,
    waves: coordinator?.waves === true ? options.waves ?? "evidence" : "off",
    loadColumns: coordinator?.loadColumns ?? 3,
    strict: options.strict ?? "muster",
    onFailure: options.onFailure ?? "stop",
    leaseMs: options.leaseMs ?? 0,
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    scaling: options.scaling === undefined ? null : scalingSettings(topology, options.scaling),
  };
}

/** Where new ranks shake hands: whoever starts them with their own front-ends knows the head's port only (wire spec, 7.6). */
const greetingAt = ({ mode, handshake, firstRank, masterIp }: Topology): string =>
  mode === "external" && firstRank === 0 ? handshake!.bind.address : `tcp://${masterIp}:0`;

function scalingSettings(topology: Topology, options: ScalingOptions): ScalingSettings {
  if (!topology.initCarriesParallelConfig) {
    const single = topology.size === 1;
    throw new PlanRefused([{
      code: "elastic-wrong",
      flag: "--max-size",
      value: String(options.maxSize ?? topology.size),
      message: single
        ? "A single rank has no group that could grow."
        : "Only ranks of a mixture-of-experts model scale.",
      fix: single
        ? "Begin with two ranks (--data-parallel-size 2), or leave --max-size out."
        : "Add --moe (moe: true), or leave --max-size out.",
    }]);
  }
  if (topology.mode === "hybrid") {
    throw new PlanRefused([{
      code: "elastic-wrong",
      flag: "--max-size",
      value: String(options.maxSize ?? topology.size),
      message: "hybrid load balancing cannot be scaled elastically.",
      fix: "Use internal or external load balancing, or leave --max-size out.",
    }]);
  }
  return {
    experts: options.experts ?? 0,
    redundant: options.redundantExperts ?? 0,
    maxSize: options.maxSize ?? topology.size,
    limits: { ...DEFAULT_SCALING_LIMITS, ...options.limits },
    settleMs: options.settleMs ?? 30_000,
    handshake: {
      bind: options.handshake ?? greetingAt(topology),
      form: options.form ?? "wrapped",
    },
    // Behind an external load balancer a new rank is a server of its own, which somebody else starts.
    joiner: topology.mode === "external" ? null : options.joiner ?? null,
    ...(options.enginesAfterAbort === undefined
      ? {}
      : { enginesAfterAbort: options.enginesAfterAbort }),
  };
}
