/**
 * A front-end's connection to the DP coordinator (wire spec, 5.3 and 5.4): the loads of all engines, a fair pick among
 * them, the wave to stamp a request with, and the wake-up when engines rest.
 *
 * ```ts
 * const front = await FrontEndClient.connect({ address: coordinator.endpoints.frontPublish, engines: 4 });
 * const rank = front.pick();
 * const { wave } = await front.begin(rank); // stamp the request with it, then send it
 * front.finish(rank);
 * ```
 */
import {
  finished,
  type FrontEnd,
  frontEnd,
  heard,
  pick,
  resized,
  send,
  wakeAgain,
} from "../peers/front-end.ts";
import type { EngineLoad } from "../peers/load-table.ts";
import {
  decodePublish,
  encodeScaleElasticEp,
  encodeWakeUp,
  SUBSCRIBE_ALL,
} from "../protocol/mod.ts";
import { connectXSubscriber, type Context, type ZmqSocket } from "./zmq/sockets.ts";

export interface FrontEndOptions {
  /** The coordinator's front publish address. */
  readonly address: string;
  /** Engines that this front-end gives requests to. */
  readonly engines: number;
  /** The first of them, where it has only its own node's (hybrid). */
  readonly firstEngine?: number;
  /** Front-ends that share the engines. */
  readonly clients?: number;
  readonly context?: Context;
}

/** One engine's load as this front-end sees it. */
export interface LoadView extends EngineLoad {
  readonly engine: number;
  /** Requests of this front-end that are under way there. */
  readonly inFlight: number;
  /** Milliseconds since statistics were last published; null before the first. */
  readonly ageMs: number | null;
}

export class FrontEndClient {
  readonly #first: number;
  #front: FrontEnd;
  #socket: ZmqSocket;
  #countsAt: number | null = null;
  #published = 0;
  #refused = 0;
  #wait: (() => void)[] = [];

  private constructor(options: FrontEndOptions) {
    this.#first = options.firstEngine ?? 0;
    this.#front = frontEnd(options.engines, options.clients ?? 1);
    this.#socket = connectXSubscriber({
      address: options.address,
      ...(options.context === undefined ? {} : { context: options.context }),
      onMessage: (frames) => this.#hear(frames),
    });
    void this.#socket.send([SUBSCRIBE_ALL]);
  }

  /** Resolves when the coordinator's first publish has arrived, so that nothing sent upstream is lost. Rejects after `withinMs`. */
  static async connect(
    options: FrontEndOptions & { readonly withinMs?: number },
  ): Promise<FrontEndClient> {
    const client = new FrontEndClient(options);
    const { withinMs = 10_000 } = options;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      await Promise.race([
        client.nextPublish(),
        new Promise((_, reject) => {
          timer = setTimeout(() => {
            reject(
              new Error(
                `no coordinator published at ${options.address} within ${withinMs} ms: is the address right, and have all engines subscribed?`,
              ),
            );
          }, withinMs);
        }),
      ]);
      return client;
    } catch (error) {
      client.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The wave that the coordinator last published. */
  get wave(): number {
    return this.#front.wave;
  }

  /** Do engines run, as far as this front-end knows? */
  get running(): boolean {
    return this.#front.running;
  }

  /** Publishes heard so far. */
  get published(): number {
    return this.#published;
  }

  /** Publishes that could not be read. */
  get refused(): number {
    return this.#refused;
  }

  /** The load of each engine, with what this front-end has added since the last publish. */
  loads(): LoadView[] {
    const ageMs = this.#countsAt === null ? null : Math.round(performance.now() - this.#countsAt);
    return this.#front.inFlight.map((inFlight, engine) => {
      const load = this.#front.loads[engine] ?? { waiting: 0, running: 0 };
      return { ...load, engine: engine + this.#first, inFlight, ageMs };
    });
  }

  /** The least loaded engine, fair also before the first statistics. */
  pick(): number {
    return pick(this.#front) + this.#first;
  }

  /**
   * A request is about to be sent to an engine. When engines rest, the others are woken; the engine itself wakes by the request.
   * Resolves with the wave to stamp the request with, when the wake-up is on its way.
   */
  async begin(engine: number): Promise<{ readonly wave: number; readonly woke: boolean }> {
    const { front, wave, wake } = send(this.#front, engine - this.#first);
    this.#front = front;
    if (wake === null) return { wave, woke: false };
    await this.#socket.send([encodeWakeUp({ ...wake, exclude: wake.exclude + this.#first })]);
    return { wave, woke: true };
  }

  /** A request that was begun is done, or will not be sent. */
  finish(engine: number): void {
    this.#front = finished(this.#front, engine - this.#first);
  }

  /** Tells the coordinator that the cluster has another number of engines. */
  async scaled(engines: number): Promise<void> {
    this.#front = resized(this.#front, engines);
    await this.#socket.send([encodeScaleElasticEp(engines)]);
  }

  /** Resolves when something is published. */
  nextPublish(): Promise<void> {
    return new Promise((resolve) => this.#wait.push(resolve));
  }

  close(): void {
    this.#socket.close();
  }

  #hear(frames: readonly Uint8Array[]): void {
    const said = decodePublish(frames);
    if (!said.ok) {
      this.#refused++;
      return;
    }
    this.#published++;
    if (said.value.counts !== null) this.#countsAt = performance.now();
    this.#front = heard(this.#front, said.value, this.#first);
    const wake = wakeAgain(this.#front);
    // Only a publish with counts comes late enough for the first wake-up to have had its effect.
    if (wake !== null && said.value.counts !== null) {
      this.#front = { ...this.#front, running: true };
      void this.#socket.send([encodeWakeUp(wake)]);
    }
    for (const resolve of this.#wait.splice(0)) resolve();
  }
}
