/** A group that scales in this process: the real machines and host, real stores over TCP, engines in memory. */
import { EngineCallDriver, ScalingDrawDriver } from "../drivers/scaling-engines.ts";
import {
  OwnStores,
  ScalingStoreDriver,
  type ScalingStoreOptions,
  type StoreHost,
} from "../drivers/scaling-store.ts";
import type { Driver, DriverPort, Holding } from "../drivers/driver.ts";
import { Host } from "../host/mod.ts";
import { Scaler } from "../host/scaler.ts";
import { type JournalStore, MemoryStore } from "../journal/mod.ts";
import { Kernel } from "../kernel/mod.ts";
import type {
  ScaleUpSocket,
  ScalingEffect,
  ScalingResource,
  SendScaleUpInit,
} from "../machines/effects/scaling.ts";
import { DEFAULT_SCALING_LIMITS, type ScalingLimits } from "../machines/scaling.ts";
import { type ScalingConfiguration, scalingSystem } from "../machines/scaling-system.ts";
import { MemoryEngines } from "./memory-engines.ts";

export interface ScalingGroupOptions {
  readonly size: number;
  /** The ranks whose front-ends are here; all by default. Otherwise an operation is asked for at each front-end. */
  readonly ranks?: readonly number[];
  readonly maxSize?: number;
  readonly experts?: number;
  readonly redundant?: number;
  readonly limits?: Partial<ScalingLimits>;
  readonly settleMs?: number;
  readonly store?: ScalingStoreOptions;
  readonly journal?: JournalStore;
  /** What outlives a coordinator that dies: its engines, its stores, and the port of the first store. */
  readonly world?: GroupWorld;
  /** Who greets new ranks; in memory by default. */
  readonly greeting?: Driver<SendScaleUpInit, ScaleUpSocket>;
  readonly fault?: (name: string) => void;
  readonly graceMs?: number;
}

export interface GroupWorld {
  readonly engines: MemoryEngines;
  readonly stores: StoreHost;
  readonly controlPort: number;
}

export class ScalingGroup {
  readonly engines: MemoryEngines;
  readonly scaler: Scaler;
  readonly host: Host<ScalingEffect, ScalingResource>;

  readonly #owns: boolean;

  private constructor(
    engines: MemoryEngines,
    host: Host<ScalingEffect, ScalingResource>,
    owns: boolean,
  ) {
    this.#owns = owns;
    this.engines = engines;
    this.host = host;
    this.scaler = new Scaler(host);
  }

  static async start(options: ScalingGroupOptions): Promise<ScalingGroup> {
    const { size, maxSize = 1024, experts = 0, redundant = 0, settleMs = 5_000 } = options;
    const own = new OwnStores();
    const { engines, stores, controlPort: port } = options.world ?? {
      engines: new MemoryEngines(size),
      stores: own,
      controlPort: await own.serve("control"),
    };
    const limits = { ...DEFAULT_SCALING_LIMITS, ...options.limits };
    const expertise = { experts, redundant, maxSize };
    const configuration: ScalingConfiguration = {
      type: "configured",
      ranks: (options.ranks ?? Array.from({ length: size }, (_, rank) => rank)).map((rank) => ({
        rank,
        topology: {
          ...expertise,
          size,
          leader: rank === 0,
          masterIp: "127.0.0.1",
          control: { host: "127.0.0.1", port },
          limits,
          handshake: rank === 0 ? HANDSHAKE : null,
          hostsControl: rank === 0,
        },
      })),
      operations: {
        ...expertise,
        size,
        settleMs,
        ...(options.ranks === undefined ? {} : { fronts: options.ranks }),
        newcomer: options.ranks === undefined ? { limits, engine: null } : null,
        joiner: null,
        watchesEngines: false,
      },
    };
    const host = await Host.open<ScalingEffect, ScalingResource>({
      kernel: new Kernel(scalingSystem),
      journal: options.journal ?? new MemoryStore(),
      drivers: [
        new ScalingStoreDriver({ ...options.store, stores }) as never,
        new EngineCallDriver(engines) as never,
        new ScalingDrawDriver() as never,
        (options.greeting ?? new MemoryGreeting(engines)) as never,
      ],
      configuration,
      ...(options.fault === undefined ? {} : { fault: options.fault }),
      ...(options.graceMs === undefined ? {} : { graceMs: options.graceMs }),
    });
    return new ScalingGroup(engines, host, options.world === undefined);
  }

  async close(): Promise<void> {
    await this.host.close();
    if (this.#owns) await this.engines.close();
  }
}

const HANDSHAKE = {
  bind: "tcp://127.0.0.1:0",
  form: "wrapped",
  inputs: ["ipc://in"],
  outputs: ["ipc://out"],
  coordinatorInput: "ipc://c-in",
  coordinatorOutput: "ipc://c-out",
  frontendStatsPublish: null,
} as const;

/** New ranks in memory: they are greeted as soon as somebody listens. */
class MemoryGreeting implements Driver<SendScaleUpInit, ScaleUpSocket> {
  readonly name = "memory-greeting";
  readonly effects = ["scaleUp.init"] as const;
  readonly resources = ["socket.scaleUp"] as const;
  readonly #engines: MemoryEngines;
  #port: DriverPort | undefined;

  constructor(engines: MemoryEngines) {
    this.#engines = engines;
  }

  start(port: DriverPort): void {
    this.#port = port;
  }

  perform(): void {}

  hold({ holder, resource }: Holding<ScaleUpSocket>): void {
    const config = resource.reply.parallelConfig as Record<string, never>;
    const bootstrap = {
      size: config["data_parallel_size"]! as number,
      masterIp: config["data_parallel_master_ip"]! as string,
      masterPort: config["data_parallel_master_port"]! as number,
      masterPorts: config["_data_parallel_master_port_list"]! as number[],
      storePort: config["_coord_store_port"]! as number,
    };
    this.#port!.input(holder, { type: "listening", endpoint: resource.bind });
    void this.#engines.greet(bootstrap).then((ranks) => {
      for (const rank of ranks) {
        this.#port!.input(holder, { type: "hello", rank, local: true, headless: false });
      }
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
