/**
 * The coordinator as other programs embed it.
 *
 * ```ts
 * import { Coordinator } from "muster";
 *
 * await using coordinator = await Coordinator.start({
 *   cluster: { dataParallelSize: 4, dataParallelAddress: "10.0.0.1", dataParallelSizeLocal: 0 },
 *   journal: "./run",
 * });
 * const status = await coordinator.ready();
 * console.log(`${status.ready} ranks, ${status.blocks?.sum} blocks`);
 * ```
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { BusDriver } from "./drivers/bus.ts";
import { DpCoordinatorDriver, type LoadObservation } from "./drivers/dp-coordinator.ts";
import { EmbedderDriver } from "./drivers/embedder.ts";
import { FrontEndClient } from "./drivers/front-end.ts";
import { HandshakeDriver } from "./drivers/handshake.ts";
import { PortsDriver } from "./drivers/ports.ts";
import { ProcessDriver } from "./drivers/processes.ts";
import { ScaleUpSocketDriver } from "./drivers/scale-up-socket.ts";
import { EngineCallDriver, ScalingDrawDriver } from "./drivers/scaling-engines.ts";
import { KeptStores } from "./drivers/kept-stores.ts";
import { ScalingStoreDriver } from "./drivers/scaling-store.ts";
import { makeDirectory, storeError } from "./journal/stores/files.ts";
import { clusterHasEnded } from "./host/ended.ts";
import { Follower } from "./host/follower.ts";
import { callAll, type GroupCallOptions } from "./host/group-calls.ts";
import { Host, type HostOptions, type Logger, type RecoveryReport } from "./host/mod.ts";
import { type Durability, type FaultPoint, type JournalStore, MemoryStore } from "./journal/mod.ts";
import { makeRoom } from "./journal/stores/earlier.ts";
import { FileStore } from "./journal/stores/mod.ts";
import { type Operation, type ScaleOptions, Scaler, ScalingRefused } from "./host/scaler.ts";
import type { Applied, KernelEvent } from "./kernel/mod.ts";
import {
  clusterKernel,
  configureRun,
  type Effect,
  everybodyAdopted,
  ids,
  type Launch,
  type Resource,
  type RunOptions,
} from "./machines/mod.ts";
import {
  type ClusterConfigInput,
  parseClusterConfig,
  planOrThrow,
  planTopology,
  type Topology,
} from "./planning/mod.ts";
import { type ClusterEvent, type ClusterStatus, type FailureRecord, serves } from "./view/mod.ts";

export interface CoordinatorOptions extends Omit<RunOptions, "launches"> {
  /** What vLLM's flags say, in camelCase. */
  readonly cluster: ClusterConfigInput;
  /** Processes to start, or how to make them from the plan. Ranks in none of them are started by somebody else. */
  readonly launches?: readonly Launch[] | ((topology: Topology) => readonly Launch[]);
  /** A directory for the journal; a run that is found there is gone on with. In memory by default. */
  readonly journal?: string | JournalStore;
  /**
   * With a directory: when the run that is found there has failed or was stopped, it is kept in `earlier/` (the last eight are) and a
   * new one begins. One that goes on is gone on with all the same. For whoever is started again by a supervisor.
   */
  readonly anew?: boolean;
  readonly durability?: Durability;
  /** Directory for sockets and the output of processes. Beside the journal, or temporary, by default. */
  readonly directory?: string;
  readonly logger?: Logger;
  /** Takes out of what happens what must not be kept: see {@link HostOptions.redact}. */
  readonly redact?: HostOptions<Effect, Resource>["redact"];
  /** For tests of crashes. */
  readonly fault?: FaultPoint;
}

/** A cluster did not form up, or is no more. `record` says which rank, when, in what phase, and what to do. */
export class ClusterError extends Error {
  readonly code: FailureRecord["code"];
  readonly record: FailureRecord;
  constructor(record: FailureRecord) {
    super(`${record.sentence} ${record.remedy} [${record.code}]`);
    this.name = "ClusterError";
    this.code = record.code;
    this.record = record;
  }
}

/** Phases that lead to nothing but the end. */
const ENDED: readonly ClusterStatus["phase"][] = ["failed", "stopping", "stopped"];

/** @throws Error before every rank is ready */
function assertServes(status: ClusterStatus): void {
  if (serves(status)) return;
  const what = status.phase === "formed" ? "being adopted" : status.phase;
  throw new Error(`the cluster is ${what}: await ready() first`);
}

export class Coordinator {
  readonly topology: Topology;
  /** Where the output of launched processes goes, one file each. */
  readonly logs: string;
  /** Operations that change the size: how they stand, and those that ended. Null for a cluster that keeps its size. */
  readonly scaling: Scaler | null;
  /** Where the run is kept now that ended in this journal's directory before: see {@link CoordinatorOptions.anew}. */
  readonly earlier: string | null;
  readonly #host: Host<Effect, Resource>;
  readonly #follower: Follower;
  readonly #temporary: string | undefined;
  #closed: Promise<void> | undefined;

  private constructor(
    host: Host<Effect, Resource>,
    follower: Follower,
    topology: Topology,
    logs: string,
    temporary: string | undefined,
    scales: boolean,
    earlier: string | null,
  ) {
    this.earlier = earlier;
    this.#host = host;
    this.scaling = scales ? new Scaler(host) : null;
    this.#follower = follower;
    this.topology = topology;
    this.logs = logs;
    this.#temporary = temporary;
    this.over = !host.report.fresh && ENDED.includes(follower.fold.brief().phase);
    host.onFailure(() => follower.wake());
  }

  /**
   * Plans the topology, binds every socket, starts what is to be started, and begins to shake hands.
   *
   * @throws PlanRefused with the flag, the value and the fix; JournalError and HostError as `Host.open` does
   */
  static async start(options: CoordinatorOptions): Promise<Coordinator> {
    const temporary = options.directory === undefined && typeof options.journal !== "string"
      ? mkdtempSync(join(tmpdir(), "muster-"))
      : undefined;
    try {
      return await Coordinator.#open(options, temporary);
    } catch (error) {
      if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true });
      throw error;
    }
  }

  static async #open(
    options: CoordinatorOptions,
    temporary: string | undefined,
  ): Promise<Coordinator> {
    const directory = resolve(options.directory ?? temporary ?? options.journal as string);
    const config = planOrThrow(
      parseClusterConfig({ rpcBasePath: directory, ...options.cluster }),
    );
    const topology = planOrThrow(planTopology(config));
    const { launches = [] } = options;
    const configuration = configureRun(topology, {
      ...options,
      launches: typeof launches === "function" ? launches(topology) : launches,
    });
    try {
      makeDirectory(directory);
    } catch (error) {
      throw storeError(directory, error);
    }
    const earlier = options.anew === true && typeof options.journal === "string"
      ? await makeRoom(resolve(options.journal), () => clusterHasEnded(options.journal as string))
      : undefined;
    const logs = join(directory, "logs");
    const follower = new Follower();
    const bus = new BusDriver();
    const handshake = new HandshakeDriver();
    const processes = new ProcessDriver({ logs });
    const host = await Host.open<Effect, Resource>({
      kernel: clusterKernel(),
      journal: typeof options.journal === "string"
        ? new FileStore(resolve(options.journal), {
          ...(options.durability === undefined ? {} : { durability: options.durability }),
        })
        : options.journal ?? new MemoryStore(),
      drivers: [
        handshake,
        bus,
        new EngineCallDriver(bus),
        new ScalingStoreDriver({ stores: new KeptStores(() => processes.keeper()) }),
        new ScalingDrawDriver(),
        new ScaleUpSocketDriver(handshake),
        new DpCoordinatorDriver(),
        processes,
        new PortsDriver(),
        new EmbedderDriver((what) => follower.announce(what)),
      ] as never,
      configuration,
      views: { status: follower },
      settled: everybodyAdopted(),
      ...(options.logger === undefined ? {} : { logger: options.logger }),
      ...(options.redact === undefined ? {} : { redact: options.redact }),
      ...(options.fault === undefined ? {} : { fault: options.fault }),
    });
    return new Coordinator(
      host,
      follower,
      topology,
      logs,
      temporary,
      options.scaling !== undefined,
      earlier ?? null,
    );
  }

  /** What was found in the journal and done about it; `report.fresh` for a new run. */
  get report(): RecoveryReport {
    return this.#host.report;
  }

  /** The journal held a run that had failed or had been stopped: nothing goes on in it but what is left to stop. */
  readonly over: boolean;

  /** Resolves with the complete report when what was owed and overdue has been seen to; at once for a new run. */
  get recovered(): Promise<RecoveryReport> {
    return this.#host.recovered;
  }

  /** Names this run in every life of it. */
  get instance(): string {
    return this.#host.report.run;
  }

  /** The cluster now. */
  status(): ClusterStatus {
    return this.#follower.fold.status();
  }

  /**
   * Resolves when every rank is ready; after a restart, when each of them has answered this coordinator.
   *
   * @throws ClusterError when the start-up failed; the reason of `signal` when it is aborted
   */
  async ready(options: { readonly signal?: AbortSignal } = {}): Promise<ClusterStatus> {
    await this.#follower.until(
      () => {
        const { phase, failure, serves } = this.#follower.fold.brief();
        if (failure !== null) throw new ClusterError(failure);
        if (phase === "stopping" || phase === "stopped") {
          throw new Error(
            this.over
              ? `run ${this.instance} was stopped before this start: begin a new one with another journal directory, or with the option anew`
              : "the cluster was stopped before it was ready",
          );
        }
        return serves;
      },
      () => this.#host.failure,
      options.signal,
    );
    return this.status();
  }

  /**
   * A connection to this cluster's DP coordinator: the loads of all ranks, a fair pick among them, the wave to stamp a request with.
   *
   * @throws Error when this front-end has no DP coordinator, or before every rank is ready
   */
  connectFrontEnd(options: { readonly clients?: number } = {}): Promise<FrontEndClient> {
    const status = this.status();
    const { endpoints, size } = status;
    const address = endpoints["coordinator"]?.["frontPublish"];
    if (address === undefined) {
      throw new Error("this front-end has no DP coordinator: see topology.why");
    }
    assertServes(status);
    return FrontEndClient.connect({ address, engines: size, ...options });
  }

  /**
   * Scales to `target` ranks while the cluster serves. Answers as soon as the operation is accepted; await, observe or abort it.
   * The same target as a running operation's is that operation.
   *
   * @throws ScalingRefused with the reason, or with the operation that is in the way
   */
  scale(target: number, options: ScaleOptions = {}): Promise<Operation> {
    if (this.scaling === null) {
      return Promise.reject(
        new ScalingRefused("this cluster keeps its size: start it with the option `scaling`", null),
      );
    }
    return this.scaling.scale(target, options);
  }

  /**
   * Starts all engines anew as one group of the size that serves now, and ends the requests that they run. Needed where an operation
   * ended with engines that cannot abandon a reconfiguration. Await {@link ready} afterwards.
   *
   * Resolves when it has begun, with what is left to do by hand where somebody else started engines.
   * @throws ScalingRefused with the reason
   */
  restartEngines(): Promise<string | null> {
    if (this.scaling === null) {
      return Promise.reject(
        new ScalingRefused("this cluster keeps its size and its engines", null),
      );
    }
    return this.scaling.restartEngines();
  }

  /**
   * Pauses the schedulers of all ranks together: `keep` freezes requests, `wait` lets running ones finish, `abort` ends them. Idempotent.
   *
   * @throws GroupCallError that names the ranks which did not answer
   */
  async pause(
    mode: "keep" | "wait" | "abort" = "keep",
    options: GroupCallOptions = {},
  ): Promise<void> {
    await callAll(
      this.#host,
      this.#readyRanks(),
      "pause",
      { method: "pause_scheduler", mode },
      options,
    );
  }

  /** Resumes the schedulers of all ranks together. Idempotent. @throws GroupCallError */
  async resume(options: GroupCallOptions = {}): Promise<void> {
    await callAll(
      this.#host,
      this.#readyRanks(),
      "resume",
      { method: "resume_scheduler" },
      options,
    );
  }

  /**
   * Waits until none of these ranks has requests, as the DP coordinator's table of loads says. Whoever admits requests is to give them no
   * new ones meanwhile. False when the time is over before.
   *
   * @throws Error where this front-end has no DP coordinator: then nobody here knows
   */
  drained(ranks: readonly number[], timeoutMs: number): Promise<boolean> {
    if (this.status().endpoints["coordinator"] === undefined) {
      return Promise.reject(new Error("this front-end has no DP coordinator: see topology.why"));
    }
    return new Promise((resolve) => {
      const settle = (idle: boolean) => {
        clearTimeout(timer);
        off();
        resolve(idle);
      };
      const off = this.observe((seen) => {
        if (seen.type !== "load") return;
        const { rows } = seen as LoadObservation;
        const busy = ranks.some((rank) =>
          (rows[rank]?.running ?? 0) + (rows[rank]?.waiting ?? 0) > 0
        );
        if (!busy) settle(true);
      });
      const timer = setTimeout(() => settle(false), timeoutMs);
    });
  }

  /** Calls `listener` for everything that happens from now on, at once and in order. Returns how to stop. */
  onEvent(listener: (event: ClusterEvent) => void): () => void {
    this.#follower.listeners.add(listener);
    return () => void this.#follower.listeners.delete(listener);
  }

  /** What happens from now on, until the coordinator is closed. */
  events(): AsyncGenerator<ClusterEvent, void, void> {
    return this.#follower.events(() => this.#closed !== undefined);
  }

  /** Every step in order: for charts, pages and logs. Returns how to stop listening. */
  subscribe(listener: (step: Applied<Effect, Resource>) => void): () => void {
    return this.#host.subscribe(listener);
  }

  /** What is seen and no input: the load of engines. The latest of its type is enough. Returns how to stop listening. */
  observe(listener: (observation: { readonly type: string }) => void): () => void {
    return this.#host.observe(listener);
  }

  /** Something that an operator or a test says to an instance. Resolves when it is in the journal. */
  submit(to: string, event: KernelEvent): Promise<Applied<Effect, Resource>> {
    return this.#host.submit(to, event);
  }

  /** Stops every launched process and closes. Engines that somebody else started are left alone. */
  close(): Promise<void> {
    this.#closed ??= this.#shut(true);
    return this.#closed;
  }

  /** Closes and leaves launched processes running for as long as the lease lasts: the next coordinator adopts them. */
  detach(): Promise<void> {
    this.#closed ??= this.#shut(false);
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #readyRanks(): number[] {
    const status = this.status();
    assertServes(status);
    // Behind an external or hybrid load balancer the engines of others are on buses of others.
    const { mode } = this.topology;
    const ownOnly = mode === "external" || mode === "hybrid";
    return status.ranks.filter((r) => r.state === "ready" && (r.local || !ownOnly))
      .map((r) => r.rank);
  }

  async #shut(stopping: boolean): Promise<void> {
    // A run that was stopped in an earlier life is not stopped again: its journal stays as it is.
    const stopped = this.over && this.status().phase === "stopped";
    if (stopping && !stopped && this.#host.failure === undefined) {
      await this.#host.submit(ids.startup, { type: "stop" }).catch(() => {});
      await this.#follower.until(
        () => this.#follower.announced("stopped") || this.#host.failure !== undefined,
        () => undefined,
      );
    }
    await this.#host.close();
    this.#follower.wake();
    if (this.#temporary !== undefined) rmSync(this.#temporary, { recursive: true, force: true });
  }
}
