/**
 * Engines in memory for tests and benchmarks: the simulated engines of `peers/` behind the same seam as the engine bus. They meet at once,
 * and write `eep_ready/<rank>` to the real store of the operation.
 */
import type { EngineAnswer, EngineCaller } from "../drivers/scaling-engines.ts";
import { TcpStoreClient } from "../drivers/tcpstore/mod.ts";
import type { Bootstrap } from "../machines/effects/scaling.ts";
import {
  type EngineInput,
  joiningEngine,
  type Meeting,
  type ScalingEngine,
  servingEngine,
  stepEngine,
} from "../peers/engine-scaling.ts";
import { SHUTDOWN_CURRENT_RANK, type Utility } from "../protocol/mod.ts";

type Listener = Parameters<EngineCaller["onNotification"]>[0];

export class MemoryEngines implements EngineCaller {
  readonly engines: Map<number, ScalingEngine> = new Map();
  /** Methods that fail or stay unanswered on a rank, on demand. */
  readonly faults: Map<string, "fails" | "silent"> = new Map();
  #listeners: Listener[] = [];
  #answers = new Map<string, (answer: EngineAnswer) => void>();
  #stores = new Map<number, Promise<TcpStoreClient>>();

  /** Ranks whose engines are somebody else's: they are there whenever others meet. */
  readonly #foreign: ReadonlySet<number>;

  constructor(size: number, foreign: readonly number[] = []) {
    this.#foreign = new Set(foreign);
    for (let rank = 0; rank < size; rank++) if (!this.#foreign.has(rank)) this.restart(rank, size);
  }

  /** A new process for a rank. */
  restart(rank: number, size: number): void {
    this.engines.set(rank, servingEngine(rank, size));
  }

  /** New ranks form the group of an operation. */
  join(ranks: readonly number[], bootstrap: Bootstrap): void {
    for (const rank of ranks) this.engines.set(rank, joiningEngine(rank, bootstrap));
    this.#meet();
  }

  /**
   * New ranks come where somebody listens: those that are missing to the size of this operation, and are not in it already. Resolves with them.
   */
  greet(bootstrap: Bootstrap): Promise<readonly number[]> {
    const { engines } = this;
    const old = [...engines.values()].filter((e) => !e.gone && !e.joining).length;
    const missing = Array.from({ length: Math.max(0, bootstrap.size - old) }, (_, i) => old + i);
    // One that was greeted before its coordinator died does not come again.
    const isGreeted = (rank: number) =>
      engines.get(rank)?.reconfiguration?.bootstrap.storePort === bootstrap.storePort;
    const ranks = missing.filter((rank) => !isGreeted(rank));
    this.join(ranks, bootstrap);
    return Promise.resolve(ranks);
  }

  call(rank: number, { method, args }: Utility, call: string): Promise<EngineAnswer> {
    const fault = this.faults.get(`${rank} ${method}`);
    if (fault === "fails") {
      const failure = `Call to ${method} method failed: on demand`;
      return Promise.resolve({ ok: false, failure });
    }
    if (fault === "silent") return new Promise(() => {});
    return new Promise((resolve) => {
      this.#answers.set(call, resolve);
      this.#step(rank, { type: "utility", call, method, args: [argumentOf(method, args)] });
      this.#meet();
    });
  }

  onNotification(listener: Listener): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    for (const store of this.#stores.values()) await store.then((s) => s.close(), () => {});
  }

  #step(rank: number, input: EngineInput): void {
    const engine = this.engines.get(rank);
    if (engine === undefined) return;
    const [next, outputs] = stepEngine(engine, input);
    this.engines.set(rank, next);
    for (const output of outputs) {
      switch (output.type) {
        case "reply":
          this.#answers.get(output.call)?.({ ok: true, value: output.value });
          break;
        case "failure":
          this.#answers.get(output.call)?.({ ok: false, failure: output.text });
          break;
        case "notify":
          this.#listeners.forEach((listener) => listener(rank, output.notification));
          break;
        case "ready":
          // A store that is gone has nobody who waits for this.
          void this.#store(output.bootstrap)
            .then((store) => store.set(`eep_ready/${rank}`, "1")).catch(() => {});
          break;
      }
    }
  }

  #meet(): void {
    for (let met = true; met;) {
      met = false;
      for (const engine of [...this.engines.values()]) {
        const meeting = engine.meetings.find((m) => this.#complete(m));
        if (meeting === undefined) continue;
        met = true;
        for (let rank = 0; rank < meeting.size; rank++) {
          this.#step(rank, { type: "met", what: meeting.what });
        }
      }
    }
  }

  #complete({ what, size }: Meeting): boolean {
    for (let rank = 0; rank < size; rank++) {
      if (this.#foreign.has(rank)) continue;
      const there = this.engines.get(rank)?.meetings.some((m) =>
        m.what === what && m.size === size
      );
      if (!there) return false;
    }
    return true;
  }

  #store({ masterIp: host, storePort: port }: Bootstrap): Promise<TcpStoreClient> {
    const known = this.#stores.get(port) ?? TcpStoreClient.connect({ host, port });
    this.#stores.set(port, known);
    return known;
  }
}

/** The wire's request back as the simulated engine's. */
function argumentOf(method: string, args: Utility["args"]): unknown {
  if (method !== "reinitialize_distributed") return args[0];
  const request = args[0] as Record<string, never>;
  const bootstrap: Bootstrap = {
    size: request["new_data_parallel_size"]!,
    masterIp: request["new_data_parallel_master_ip"]!,
    masterPort: request["new_data_parallel_master_port"]!,
    masterPorts: request["new_data_parallel_master_port_list"]!,
    storePort: request["coord_store_port"]!,
  };
  return { bootstrap, leave: request["new_data_parallel_rank"] === SHUTDOWN_CURRENT_RANK };
}
