/** The engine's side of start-up over real sockets: what the reference engine says, and what it hears. */
import process from "node:process";
import type { Bootstrap } from "../machines/effects/scaling.ts";
import type { EngineEffect } from "../peers/engine.ts";
import { joiningEngine } from "../peers/engine-scaling.ts";
import {
  type Decoded,
  decodeInit,
  decodeScaleUpInit,
  encodeEngineHandshake,
  type EngineAddresses,
  type EngineFacts,
  type Init,
  type ParallelConfig,
  type WireRank,
} from "../protocol/mod.ts";
import type { Driver, DriverPort, Order } from "./driver.ts";
import { ServingEngine } from "./engine-serving.ts";
import { connectDealer, type Context, type ZmqSocket } from "./zmq/sockets.ts";

export interface EnginePeerOptions {
  readonly rank: WireRank;
  /** It was launched to join a group that scales up. */
  readonly joining?: boolean;
  /** The handshake address of each contact, in the order of its HELLOs. */
  readonly handshakes: readonly string[];
  readonly context?: Context;
  /** How it serves; every member has a default. */
  readonly serving?: {
    readonly stepMs?: number;
    readonly tokens?: number;
    readonly capacity?: number;
    readonly agreeEvery?: number;
    readonly saysWhenItRuns?: boolean;
    readonly facts?: EngineFacts | null;
    readonly blocks?: number;
  };
  /** What ends the engine. By default the process, with the text on standard error. */
  readonly exit?: (code: number, text: string) => void;
  /** Told what happens, for a log. */
  readonly say?: (text: string) => void;
}

const LAST_WORDS_MS = 200;

/** The instance that the driver feeds. */
export const ENGINE = "engine";

/** The group that a rank joins, as its INIT tells. */
const bootstrapOf = (config: ParallelConfig): Bootstrap => ({
  size: Number(config["data_parallel_size"] ?? 1),
  masterIp: String(config["data_parallel_master_ip"] ?? ""),
  masterPort: Number(config["data_parallel_master_port"] ?? 0),
  masterPorts: config["_data_parallel_master_port_list"] as readonly number[] ?? [],
  storePort: Number(config["_coord_store_port"] ?? 0),
});

export class EnginePeerDriver implements Driver<EngineEffect, never> {
  readonly name = "engine";
  readonly effects = [
    "engine.hello",
    "engine.ready",
    "engine.nonsense",
    "engine.join",
    "engine.exit",
  ] as const;
  readonly resources = [] as const;
  readonly #options: EnginePeerOptions;
  #port: DriverPort | undefined;
  #contacts = new Map<number, ZmqSocket>();
  #serving: ServingEngine | undefined;

  constructor(options: EnginePeerOptions) {
    this.#options = options;
  }

  start(port: DriverPort): void {
    this.#port = port;
  }

  perform({ effect }: Order<EngineEffect>): void {
    const { say = () => {} } = this.#options;
    switch (effect.type) {
      case "engine.hello": {
        const { contact, local, headless } = effect;
        say(`HELLO to ${this.#options.handshakes[contact]}`);
        return void this.#contact(contact).send([
          encodeEngineHandshake({ type: "hello", local, headless }),
        ]);
      }
      case "engine.ready": {
        const { contact, local, headless, blocks, hash, storePort, redundant } = effect;
        say(`READY to ${this.#options.handshakes[contact]}`);
        return void this.#contact(contact).send([
          encodeEngineHandshake({
            type: "ready",
            local,
            headless,
            ...(blocks === undefined ? {} : { numGpuBlocks: blocks, dpStatsAddress: null }),
            ...(hash === undefined ? {} : { parallelConfigHash: hash }),
            ...(storePort === undefined ? {} : { coordStorePort: storePort }),
            ...(redundant === undefined ? {} : { numRedundantExperts: redundant }),
          }),
        ]);
      }
      case "engine.nonsense":
        return void this.#contact(effect.contact).send([
          effect.what === "garbage" ? new Uint8Array([0xc1, 0xff, 0x00]) : encodeEngineHandshake({
            type: "unknown-status",
            status: "BYE",
            local: true,
            headless: false,
          }),
        ]);
      case "engine.join":
        return void this.#join(effect.addresses, effect.parallelConfig);
      case "engine.exit":
        return this.#exit(effect.code, effect.text);
    }
  }

  /** What serves, once it has joined. */
  get serving(): ServingEngine | undefined {
    return this.#serving;
  }

  async close(): Promise<void> {
    for (const socket of this.#contacts.values()) socket.close();
    this.#contacts.clear();
    await this.#serving?.close();
  }

  #contact(contact: number): ZmqSocket {
    let socket = this.#contacts.get(contact);
    if (socket === undefined) {
      const { rank, handshakes, context } = this.#options;
      socket = connectDealer({
        rank,
        address: handshakes[contact]!,
        lingerMs: 5000,
        ...(context === undefined ? {} : { context }),
        onMessage: ([payload]) => {
          const init = this.#initOf(payload ?? new Uint8Array());
          if (!init.ok) return this.#exit(1, `INIT cannot be read: ${init.refusal.text}`);
          this.#port!.input(ENGINE, { type: "init", contact, init: init.value });
        },
      });
      this.#contacts.set(contact, socket);
    }
    return socket;
  }

  /** A rank that joins is answered in the wrapped form, or in the flat one of earlier releases (7.6). */
  #initOf(payload: Uint8Array): Decoded<Init> {
    if (this.#options.joining !== true) return decodeInit(payload);
    const wrapped = decodeScaleUpInit(payload);
    if (!wrapped.ok) return decodeInit(payload);
    const { engineMetadata, numRedundantExperts } = wrapped.value;
    return { ok: true, value: { ...engineMetadata, numRedundantExperts } };
  }

  async #join(addresses: EngineAddresses, config: ParallelConfig): Promise<void> {
    const { rank, context, say, serving = {} } = this.#options;
    const port = Number(config["data_parallel_master_port"] ?? 0);
    const host = String(config["data_parallel_master_ip"] ?? "");
    this.#serving = new ServingEngine({
      rank,
      size: Number(config["data_parallel_size"] ?? 1),
      addresses,
      // Without the settings of its group an engine runs by itself, as those of dense models do.
      group: port === 0 ? null : { host, port },
      behaviour: {
        coordinated: port !== 0,
        capacity: serving.capacity ?? 256,
        agreeEvery: serving.agreeEvery ?? 32,
        saysWhenItRuns: serving.saysWhenItRuns ?? true,
        blocks: serving.blocks ?? 1000,
      },
      facts: serving.facts ?? null,
      stepMs: serving.stepMs ?? 2,
      ...(this.#options.joining === true
        ? { joining: joiningEngine(rank, bootstrapOf(config)) }
        : {}),
      tokens: serving.tokens ?? 8,
      exit: (code, text) => this.#exit(code, text),
      ...(context === undefined ? {} : { context }),
      ...(say === undefined ? {} : { say }),
    });
    await this.#serving.join();
    this.#port!.input(ENGINE, { type: "joined" });
    this.#serving.begin();
  }

  #exit(code: number, text: string): void {
    if (this.#options.exit !== undefined) return this.#options.exit(code, text);
    process.stderr.write(`engine ${this.#options.rank}: ${text}\n`);
    // Its last words are with libzmq's thread, which Deno does not wait for when a process exits.
    setTimeout(() => process.exit(code), LAST_WORDS_MS);
  }
}
