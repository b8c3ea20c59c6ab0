/** The reference engine: an engine without a GPU that speaks the real protocol, as a process or inside one. */
import { ENGINE, EnginePeerDriver, type EnginePeerOptions } from "../drivers/engine-peer.ts";
import { Host } from "../host/mod.ts";
import { MemoryStore } from "../journal/mod.ts";
import { Kernel, type KernelEvent, start, type SystemDefinition } from "../kernel/mod.ts";
import { type EngineEffect, simulatedEngine, type SimulatedEngineInput } from "../peers/engine.ts";

/** The system of one reference engine. */
export const referenceEngine: SystemDefinition<EngineEffect> = {
  charts: { simulatedEngine: { machine: simulatedEngine } },
  effects: {
    "engine.hello": { kind: "message", leaves: "appended" },
    "engine.ready": { kind: "message", leaves: "appended" },
    "engine.nonsense": { kind: "message", leaves: "appended" },
    "engine.join": { kind: "message", leaves: "appended" },
    "engine.exit": { kind: "message", leaves: "appended" },
  },
  boot: (configured: KernelEvent) => [
    start(ENGINE, "simulatedEngine", (configured as unknown as { engine: never }).engine),
  ],
};

const kernel = new Kernel<EngineEffect, never>(referenceEngine);

export interface ReferenceEngineOptions extends EnginePeerOptions {
  readonly behaviour: SimulatedEngineInput;
}

/** A reference engine at work. */
export class ReferenceEngine {
  readonly #host: Host<EngineEffect, never>;

  private constructor(host: Host<EngineEffect, never>) {
    this.#host = host;
  }

  static async start(options: ReferenceEngineOptions): Promise<ReferenceEngine> {
    const host = await Host.open<EngineEffect, never>({
      kernel,
      journal: new MemoryStore(),
      drivers: [new EnginePeerDriver(options) as never],
      configuration: { engine: options.behaviour },
    });
    return new ReferenceEngine(host);
  }

  /** The state's name: `waiting`, `loading`, `serving`, ... */
  get state(): string {
    return String(this.#host.system.instances.get(ENGINE)?.state.snapshot.value);
  }

  close(): Promise<void> {
    return this.#host.close();
  }
}
