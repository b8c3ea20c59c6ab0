/**
 * The DP coordinator's sockets (wire spec, section 5): what arrives becomes inputs of the wave machine, statistics go into the
 * load table and out again on time. No frame that a peer can send ends it.
 */
import type { InstanceId } from "../kernel/mod.ts";
import type { CoordinatorSocket, WavesEffect } from "../machines/mod.ts";
import { type EngineLoad, LoadTable } from "../peers/load-table.ts";
import {
  COORDINATOR_READY,
  decodeBackFrame,
  decodeEngineOutputs,
  decodeFrontFrame,
  encodePublish,
  encodeStartDpWave,
} from "../protocol/mod.ts";
import type { Driver, DriverPort, Holding, Order } from "./driver.ts";
import type { Frames } from "./zmq/readiness.ts";
import { bindPull, bindXPublisher, type ZmqSocket } from "./zmq/sockets.ts";
import { StrangerCounter } from "./zmq/strangers.ts";

export interface DpCoordinatorOptions {
  /** From one publish of statistics to the next while they change (the original: 100). */
  readonly intervalMs?: number;
  /** While they do not (the original: 5,000). */
  readonly idleIntervalMs?: number;
  /** How long engines of the same step are waited for (the original: 50). */
  readonly gatherMs?: number;
}

/** What goes out to whoever embeds the coordinator whenever it is published. */
export interface LoadObservation {
  readonly type: "load";
  readonly rows: readonly EngineLoad[];
  readonly wave: number;
  readonly running: boolean;
  readonly dropped: number;
  readonly late: number;
}

interface Open {
  readonly holder: InstanceId;
  readonly key: string;
  readonly table: LoadTable;
  readonly columns: 2 | 3;
  readonly strangers: StrangerCounter;
  sockets: { front: ZmqSocket; back: ZmqSocket; reports: ZmqSocket } | undefined;
  closed: boolean;
  wave: number;
  running: boolean;
  publishedAt: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  timerAt: number;
}

export class DpCoordinatorDriver implements Driver<WavesEffect, CoordinatorSocket> {
  readonly name = "dp-coordinator";
  readonly effects = ["waves.ready", "waves.start", "waves.publish"] as const;
  readonly resources = ["socket.coordinator"] as const;
  readonly #options: Required<DpCoordinatorOptions>;
  #port: DriverPort | undefined;
  #open: Open | undefined;

  constructor(options: DpCoordinatorOptions = {}) {
    this.#options = { intervalMs: 100, idleIntervalMs: 5000, gatherMs: 50, ...options };
  }

  start(port: DriverPort): void {
    this.#port = port;
  }

  /** The load table; undefined before the sockets are held. */
  get loads(): LoadTable | undefined {
    return this.#open?.table;
  }

  hold({ holder, key, resource }: Holding<CoordinatorSocket>): void {
    if (this.#open !== undefined) return this.#open.table.resize(resource.rows);
    const open: Open = {
      holder,
      key,
      table: new LoadTable(resource.rows, resource.ordered),
      columns: resource.columns,
      strangers: new StrangerCounter((s) => this.#port!.input(holder, { type: "strangers", ...s })),
      sockets: undefined,
      closed: false,
      wave: 0,
      running: false,
      publishedAt: 0,
      timer: undefined,
      timerAt: Infinity,
    };
    this.#open = open;
    void this.#bind(open, resource);
  }

  release(): void {
    this.#shut();
  }

  perform({ effect }: Order<WavesEffect>): void {
    const open = this.#open;
    if (open?.sockets === undefined) return;
    switch (effect.type) {
      case "waves.ready":
        return void open.sockets.back.send([COORDINATOR_READY]);
      case "waves.start":
        return void open.sockets.back.send(encodeStartDpWave(effect));
      case "waves.publish": {
        const { wave, running } = effect;
        open.wave = wave;
        open.running = running;
        return void open.sockets.front.send([encodePublish({ counts: null, wave, running })]);
      }
    }
  }

  close(): Promise<void> {
    this.#shut();
    return Promise.resolve();
  }

  async #bind(open: Open, resource: CoordinatorSocket): Promise<void> {
    const port = this.#port!;
    const bound: ZmqSocket[] = [];
    try {
      const front = await bindXPublisher({
        address: resource.frontPublish,
        onMessage: (frames) => this.#front(open, frames),
      });
      bound.push(front);
      const back = await bindXPublisher({
        address: resource.backPublish,
        onMessage: (frames) => this.#back(open, frames),
      });
      bound.push(back);
      const reports = await bindPull({
        address: resource.backOutput,
        onMessage: (frames) => this.#report(open, frames),
      });
      bound.push(reports);
      if (open.closed) return bound.forEach((s) => s.close());
      open.sockets = { front, back, reports };
      port.input(open.holder, {
        type: "bound",
        socket: open.key,
        endpoints: {
          frontPublish: front.endpoint,
          backPublish: back.endpoint,
          backOutput: reports.endpoint,
        },
      });
      this.#schedule(open, performance.now() + this.#options.gatherMs);
    } catch (error) {
      bound.forEach((s) => s.close());
      const text = (error as Error).message;
      port.input(open.holder, { type: "bindFailed", socket: open.key, text });
    }
  }

  #front(open: Open, frames: Frames): void {
    const said = decodeFrontFrame(frames);
    if (!said.ok) return open.strangers.count("message", () => `front-end: ${said.refusal.text}`);
    const { value } = said;
    switch (value.type) {
      case "subscribe":
        return this.#port!.input(open.holder, { type: "frontSubscribed" });
      case "unsubscribe":
        return this.#port!.input(open.holder, { type: "frontUnsubscribed" });
      case "scale-elastic-ep":
        return this.#port!.input(open.holder, { type: "scaled", size: value.size });
      case "wake-up":
        return this.#port!.input(open.holder, {
          type: "wake",
          exclude: value.exclude,
          wave: value.wave,
        });
    }
  }

  #back(open: Open, frames: Frames): void {
    const said = decodeBackFrame(frames);
    if (!said.ok || said.value.topic !== "") {
      const why = said.ok ? `subscription to ${said.value.topic}` : said.refusal.text;
      return open.strangers.count("message", () => `engine side: ${why}`);
    }
    const type = said.value.type === "subscribe" ? "subscribed" : "unsubscribed";
    this.#port!.input(open.holder, { type });
  }

  #report(open: Open, frames: Frames): void {
    const said = decodeEngineOutputs(frames);
    if (!said.ok) return open.strangers.count("message", () => `engine: ${said.refusal.text}`);
    if (said.value.type === "engine-dead") {
      return open.strangers.count("message", () => "engine: ENGINE_CORE_DEAD at the coordinator");
    }
    const { engineIndex, schedulerStats, waveComplete, startWave, outputCount, utilityOutput } =
      said.value;
    if (outputCount > 0 || utilityOutput !== null) {
      open.strangers.count("message", () => `engine ${engineIndex}: outputs that are not for us`);
    }
    if (schedulerStats !== null) {
      const { running, waiting, kvCacheUsage, currentWave, stepCounter } = schedulerStats;
      const report = { running, waiting, kvCacheUsage, wave: currentWave, step: stepCounter };
      open.table.record(engineIndex, report, Date.now());
      this.#changed(open);
    }
    if (waveComplete !== null) {
      this.#port!.input(open.holder, {
        type: "waveComplete",
        wave: waveComplete,
        engine: engineIndex,
      });
    } else if (startWave !== null) {
      this.#port!.input(open.holder, { type: "startWave", wave: startWave, engine: engineIndex });
    }
  }

  /** The next publish is due an interval after the last one, and no stream of events moves it further away. */
  #changed(open: Open): void {
    const now = performance.now();
    const gathered = open.table.stepComplete ? now : now + this.#options.gatherMs;
    const due = Math.max(open.publishedAt + this.#options.intervalMs, gathered);
    if (due < open.timerAt) this.#schedule(open, due);
  }

  #schedule(open: Open, dueAt: number): void {
    clearTimeout(open.timer);
    open.timerAt = dueAt;
    open.timer = setTimeout(() => {
      open.timerAt = Infinity;
      this.#publish(open);
    }, Math.max(0, dueAt - performance.now()));
  }

  #publish(open: Open): void {
    if (open.sockets === undefined || open.closed) return;
    const rows = open.table.take();
    const { wave, running } = open;
    const counts = rows.map((row) => ofWidth(row, open.columns));
    void open.sockets.front.send([encodePublish({ counts, wave, running })]);
    const { dropped, late } = open.table;
    const observed: LoadObservation = { type: "load", rows, wave, running, dropped, late };
    this.#port!.observe(observed);
    open.publishedAt = performance.now();
    const { intervalMs, idleIntervalMs } = this.#options;
    const wait = open.table.changed ? intervalMs : idleIntervalMs;
    this.#schedule(open, open.publishedAt + wait);
  }

  #shut(): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    open.closed = true;
    clearTimeout(open.timer);
    open.strangers.close();
    if (open.sockets === undefined) return;
    for (const socket of Object.values(open.sockets)) socket.close();
  }
}

/** All rows of a publish are equally wide: readers take a row apart by its width. */
const ofWidth = ({ waiting, running, kvCacheUsage }: EngineLoad, columns: 2 | 3): EngineLoad =>
  columns === 2 ? { waiting, running } : { waiting, running, kvCacheUsage: kvCacheUsage ?? 0 };
