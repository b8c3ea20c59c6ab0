/**
 * A front-end of real engines: the bus that it binds itself, and what our coordinator tells it. Muster only hands its addresses out, as it does for API
 * servers in other processes.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { BusDriver } from "../../../src/drivers/bus.ts";
import { DpCoordinatorDriver } from "../../../src/drivers/dp-coordinator.ts";
import { EmbedderDriver } from "../../../src/drivers/embedder.ts";
import { HandshakeDriver } from "../../../src/drivers/handshake.ts";
import { vllmLaunches } from "../../../src/drivers/launchers/vllm.ts";
import { PortsDriver } from "../../../src/drivers/ports.ts";
import { ProcessDriver } from "../../../src/drivers/processes.ts";
import {
  bindEngineBus,
  type CallOutcome,
  type EngineBus,
} from "../../../src/drivers/zmq/engine-bus.ts";
import { connectXSubscriber, type ZmqSocket } from "../../../src/drivers/zmq/sockets.ts";
import { ScaleUpSocketDriver } from "../../../src/drivers/scale-up-socket.ts";
import { EngineCallDriver, ScalingDrawDriver } from "../../../src/drivers/scaling-engines.ts";
import { ScalingStoreDriver } from "../../../src/drivers/scaling-store.ts";
import { Host } from "../../../src/host/mod.ts";
import { MemoryStore } from "../../../src/journal/mod.ts";
import {
  clusterKernel,
  configureRun,
  type Effect,
  type Resource,
  type RunConfiguration,
  type StartupContext,
} from "../../../src/machines/mod.ts";
import { parseClusterConfig, planOrThrow, planTopology } from "../../../src/planning/mod.ts";
import {
  decodePublish,
  decodeRequestOutputs,
  encodeWakeUp,
  type Publish,
  type Utility,
  wireRank,
} from "../../../src/protocol/mod.ts";
import { ENVIRONMENT, model, type ModelKind, SMALL, until, type Vllm } from "./head.ts";

export class FrontEnd {
  readonly tokens: Map<string, number[]> = new Map();
  readonly finished: Set<string> = new Set();
  readonly firstFrames: Set<number> = new Set();
  readonly published: Publish[] = [];
  /** Ranks and fields of everything that was refused or unexpected. */
  readonly strange: string[] = [];
  dying = 0;
  readonly logs: string;
  #bus!: EngineBus;
  #host!: Host<Effect, Resource>;
  #front: ZmqSocket | undefined;
  #calls = 0;

  private constructor(logs: string) {
    this.logs = logs;
  }

  /** Starts engines and forms the cluster up. */
  static async open(t: TestContext, vllm: Vllm, kind: ModelKind): Promise<FrontEnd> {
    const { directory, model: path } = model(t, kind);
    const self = new FrontEnd(join(directory, "logs"));
    mkdirSync(self.logs);
    self.#bus = await bindEngineBus({
      input: "tcp://127.0.0.1:0",
      output: "tcp://127.0.0.1:0",
      clientIndex: 0,
      expects: (rank) => rank < 2,
      onFirstFrame: (rank) => void self.firstFrames.add(rank),
      onNotification: (rank, n) => void self.strange.push(`${rank}: ${JSON.stringify(n)}`),
      onEngineDead: () => self.dying++,
      onOutputs: (_, frames) => self.#outputs(frames[0]!),
      onMalformed: (rank, refusal) => void self.strange.push(`${rank}: ${refusal.text}`),
      onStrangers: (s) => void self.strange.push(`${s.kind}: ${s.sample}`),
    });
    t.after(() => self.#bus.close());
    const topology = planOrThrow(planTopology(planOrThrow(parseClusterConfig({
      dataParallelSize: 2,
      dataParallelSizeLocal: 0,
      dataParallelAddress: "127.0.0.1",
      dataParallelRpcPort: 0,
      allowLoopback: true,
      moe: kind === "moe",
      generation: vllm.generation,
      rpcBasePath: directory,
    }))));
    const launches = vllmLaunches({
      model: path,
      size: 2,
      ranks: 2,
      perLaunch: 1,
      program: vllm.command,
      flags: SMALL,
    }, ENVIRONMENT);
    const configured = configureRun(topology, { launches });
    const configuration: RunConfiguration = {
      ...configured,
      sockets: {
        ...configured.sockets,
        clients: [{ ...self.#bus.endpoints, ours: false }],
      },
    };
    const busOfNobody = new BusDriver();
    self.#host = await Host.open<Effect, Resource>({
      kernel: clusterKernel(),
      journal: new MemoryStore(),
      drivers: [
        new HandshakeDriver(),
        busOfNobody,
        new EngineCallDriver(busOfNobody),
        new ScalingStoreDriver(),
        new ScalingDrawDriver(),
        new ScaleUpSocketDriver(),
        new DpCoordinatorDriver(),
        new ProcessDriver({ logs: self.logs }),
        new PortsDriver(),
        new EmbedderDriver(() => {}),
      ] as never,
      configuration,
    });
    t.after(() => self.#close());
    await until(() => self.place !== "starting", "the start-up is over");
    return self;
  }

  /** Where the start-up is: `starting`, `formed`, `failed`, ... */
  get place(): string {
    const value = this.#host.system.instances.get("startup")!.state.snapshot.value as
      | string
      | Record<string, unknown>;
    return typeof value === "string" ? value : Object.keys(value)[0]!;
  }

  get startup(): StartupContext {
    return this.#host.system.instances.get("startup")!.state.snapshot.context as StartupContext;
  }

  /** The wave of our coordinator. */
  get wave(): number {
    return (this.#host.system.instances.get("waves")!.state.snapshot.context as { wave: number })
      .wave;
  }

  call(rank: number, utility: Utility): Promise<CallOutcome> {
    return this.#bus.call({
      rank: wireRank(rank),
      callId: String((1n << 63n) + BigInt(++this.#calls)),
      utility,
      deadlineMs: 60_000,
    });
  }

  /** Passes a request on as it is. */
  async add(rank: number, frames: readonly Uint8Array[]): Promise<void> {
    const sent = await this.#bus.send(wireRank(rank), frames as Uint8Array[]);
    if (!sent.ok) throw new Error(`the request did not leave: ${sent.reason}`);
  }

  /** Subscribes at our coordinator, as front-ends do. */
  async subscribe(): Promise<void> {
    this.#front = connectXSubscriber({
      address: this.startup.bound["coordinator"]!["frontPublish"]!,
      onMessage: (frames) => {
        const said = decodePublish(frames);
        if (said.ok) this.published.push(said.value);
        else this.strange.push(`publish: ${said.refusal.text}`);
      },
    });
    await this.#front.send([Uint8Array.of(1)]);
    await until(() => this.published.length > 0, "the coordinator has published");
  }

  /** Tells the coordinator that a rank has a request although all rest. */
  async wake(exclude: number, wave: number): Promise<void> {
    await this.#front!.send([encodeWakeUp({ exclude, wave })]);
  }

  #outputs(main: Uint8Array): void {
    const read = decodeRequestOutputs(main);
    if (!read.ok) return void this.strange.push(read.refusal.text);
    for (const { requestId, newTokenIds, finishReason } of read.value) {
      const tokens = this.tokens.get(requestId) ?? [];
      this.tokens.set(requestId, [...tokens, ...newTokenIds]);
      if (finishReason !== null) this.finished.add(requestId);
    }
  }

  async #close(): Promise<void> {
    this.#front?.close();
    await this.#host.submit("startup", { type: "stop" }).catch(() => {});
    const ended = () =>
      ["stopped"].includes(this.place) || JSON.stringify(
        this.#host.system.instances.get("startup")!.state.snapshot.value,
      ).includes("cleared");
    await until(ended, "everything is stopped", 60_000).catch(() => {});
    await this.#host.close();
  }
}
