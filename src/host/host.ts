/**
 * A host runs a system: it takes inputs from drivers and operators one after another, steps the kernel, appends to the journal,
 * and lets effects leave when their input is as safe as they demand.
 *
 * ```
 * drivers, operators, timers -> queue -> step -> append, write -> appended effects leave
 *                                                   fdatasync  -> durable effects leave, commands are answered
 * ```
 */
import { randomUUID } from "node:crypto";
import process from "node:process";
import type { Driver, DriverPort } from "../drivers/driver.ts";
import {
  asciiJson,
  type FaultPoint,
  type JournalStore,
  type OwnedJournal,
} from "../journal/mod.ts";
import {
  type Applied,
  type InstanceId,
  type Kernel,
  type KernelEvent,
  SYSTEM,
  type System,
  type Typed,
} from "../kernel/mod.ts";
import { type Clock, SteadyTime, systemClock } from "./clock.ts";
import { assertSameConfiguration } from "./configuration.ts";
import { HostError, textOf } from "./error.ts";
import { type Logger, silent } from "./logger.ts";
import { Outbox } from "./outbox.ts";
import { Pipeline } from "./pipeline.ts";
import { rebuilt, recover, type Recovered } from "./recover.ts";
import type { RecoveryReport } from "./report.ts";
import { Restart, type RestartOptions } from "./restart.ts";
import { Timers } from "./timers.ts";
import { headerOf, Upkeep, type UpkeepOptions } from "./upkeep.ts";
import { type View, Views } from "./views.ts";

export interface HostOptions<E extends Typed, R extends Typed>
  extends RestartOptions, UpkeepOptions {
  readonly kernel: Kernel<E, R>;
  readonly journal: JournalStore;
  /** One driver for every effect type of the kernel: see {@link discard} for those that a program does without. */
  readonly drivers: readonly Driver<E, R>[];
  /** JSON. Input 1 of the run; a restart with another one is refused. */
  readonly configuration: object;
  /** Folds for people, by name: told every input that is replayed at the start, then every one that happens. */
  readonly views?: Readonly<Record<string, View>>;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** Takes out of an event what must not be kept. Applied before the machines see it: what is kept is what was acted on. */
  readonly redact?: (to: InstanceId, event: KernelEvent) => KernelEvent;
  /** Go on with a journal that is a fork: only with drivers whose world is not that of the run that it was forked from. */
  readonly fork?: boolean;
  /**
   * For tests: after every input the system is folded anew from the journal by a kernel of its own, compared with the one in hand, and the
   * run goes on from it. So is every host of a process with `MUSTER_ALWAYS_REPLAY=1`.
   */
  readonly alwaysReplay?: boolean;
  /** For tests of crashes. */
  readonly fault?: FaultPoint;
}

const DEFAULTS = { snapshotEvery: 10_000, compactAfterBytes: 64 << 20 };

/** What `open` has found out before there is a host. */
interface Opened {
  readonly journal: OwnedJournal;
  readonly clock: Clock;
  readonly time: SteadyTime;
  readonly run: string;
  readonly configuration: KernelEvent;
  readonly views: Views;
  readonly past: Recovered | undefined;
  readonly tookMs: number;
}

export class Host<E extends Typed = Typed, R extends Typed = Typed> {
  /** What was found in the journal and what was done about it; complete once {@link recovered} has resolved. */
  report: RecoveryReport;
  /** Resolves when the grace is over and owed calls were treated. Rejects when the host failed or was closed before. */
  readonly recovered: Promise<RecoveryReport>;
  /** Why the host stopped by itself. */
  failure: HostError | undefined;
  #ended: HostError | undefined;

  readonly #options: HostOptions<E, R>;
  readonly #opened: Opened;
  readonly #logger: Logger;
  readonly #pipeline: Pipeline<E, R>;
  readonly #timers: Timers;
  readonly #outbox: Outbox;
  readonly #upkeep: Upkeep<E, R>;
  readonly #listeners = new Set<(result: Applied<E, R>) => void>();
  readonly #observers = new Set<(observation: Typed) => void>();
  readonly #failureListeners = new Set<(failure: HostError) => void>();
  readonly #endListeners = new Set<(why: HostError) => void>();
  #restart: Restart<E, R> | undefined;
  #closing: Promise<void> | undefined;
  #recovery!: { resolve(report: RecoveryReport): void; reject(error: unknown): void };

  /**
   * Opens a run: takes its journal, folds it, brings timers and resources back, and starts the drivers. A journal that is empty begins with the
   * configuration as input 1.
   *
   * Resolves when the first input (`configured`, or after a restart `resumed`) is safe.
   *
   * @throws JournalError `journal-locked`, `journal-damaged`, `journal-format`, `journal-incompatible`, `configuration-changed`,
   *   `journal-store`; HostError `host-no-driver`
   */
  static async open<E extends Typed, R extends Typed>(
    options: HostOptions<E, R>,
  ): Promise<Host<E, R>> {
    const { kernel, journal: store } = options;
    const clock = options.clock ?? systemClock;
    const configuration = JSON.parse(
      asciiJson({ ...options.configuration, type: "configured" }),
    ) as KernelEvent;
    const journal = await store.own(options.fault);
    let host: Host<E, R> | undefined;
    try {
      const began = clock.now();
      const views = new Views(options.views ?? {});
      const past = recover(kernel, journal, views, options.fork === true);
      if (past !== undefined) {
        assertSameConfiguration(store.name, past.configuration, configuration);
      }
      const time = new SteadyTime(clock, past?.system.at ?? 0);
      const run = past?.run ?? randomUUID();
      const tookMs = clock.now() - began;
      host = new Host(options, { journal, clock, time, run, configuration, views, past, tookMs });
      const { fence } = journal;
      const first = (past?.system.seq ?? 0) + 1;
      await journal.begin(headerOf(kernel, { run, fence, first, at: time.now(), ...past?.origin }));
      await host.#start();
      return host;
    } catch (error) {
      if (host === undefined) await journal.close().catch(() => {});
      else await host.close().catch(() => {});
      throw error;
    }
  }

  private constructor(options: HostOptions<E, R>, opened: Opened) {
    const { kernel } = options;
    const { journal, clock, time, run, configuration, views, past } = opened;
    this.#options = options;
    this.#opened = opened;
    this.#logger = options.logger ?? silent;
    this.#outbox = new Outbox(
      options.drivers as unknown as Driver[],
      kernel.definition.effects,
      options.fault ?? (() => {}),
    );
    this.#pipeline = new Pipeline<E, R>(past?.system ?? kernel.empty, {
      kernel,
      journal,
      time,
      redact: options.redact,
      rebuild: options.alwaysReplay ?? process.env["MUSTER_ALWAYS_REPLAY"] === "1"
        ? () => rebuilt(kernel, journal, this.#pipeline.system)
        : undefined,
      hooks: {
        applied: (result) => this.#applied(result),
        moved: (appended, durable) => this.#moved(appended, durable),
        failed: (error) => this.#fail(error),
      },
    });
    this.#timers = new Timers(clock, time, ({ to, timer, generation }) => {
      this.#pipeline.put({ to, event: { type: "timer.fired", timer, generation } });
    });
    this.#upkeep = new Upkeep({ ...DEFAULTS, ...options }, {
      kernel,
      journal,
      pipeline: this.#pipeline,
      views,
      time,
      logger: this.#logger,
      run,
      configuration,
      origin: past?.origin ?? {},
      from: past?.from ?? 0,
    });
    this.report = {
      run,
      fence: journal.fence,
      fresh: past === undefined,
      from: past?.from ?? 0,
      replayed: past?.replayed ?? 0,
      tookMs: opened.tookMs,
      downMs: past === undefined ? 0 : time.now() - past.system.at,
      leftOut: past?.leftOut ?? [],
      held: 0,
      overdue: 0,
      owed: [],
      forgetful: past?.forgetful ?? [],
    };
    this.recovered = new Promise((resolve, reject) => this.#recovery = { resolve, reject });
    this.recovered.catch(() => {});
  }

  /** The system after the last input. */
  get system(): System {
    return this.#pipeline.system;
  }

  /**
   * An operator's command, or anything else that happened.
   *
   * Resolves with what it led to when the input is safe.
   *
   * @throws HostError `host-closed`, `host-journal`, `host-step`
   */
  submit(to: InstanceId, event: KernelEvent): Promise<Applied<E, R>> {
    return new Promise((resolve, reject) => {
      this.#pipeline.put({ to, event, safe: resolve, refused: reject });
    });
  }

  /** Every step's result in order, once its input is in the journal. Returns how to stop listening. */
  subscribe(listener: (result: Applied<E, R>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What drivers observe without it being an input: superseded by the next of its kind. */
  observe(listener: (observation: Typed) => void): () => void {
    this.#observers.add(listener);
    return () => this.#observers.delete(listener);
  }

  /** Told when the host stops by itself, once. */
  onFailure(listener: (failure: HostError) => void): () => void {
    if (this.failure !== undefined) listener(this.failure);
    this.#failureListeners.add(listener);
    return () => this.#failureListeners.delete(listener);
  }

  /** Told when no step will come any more, once: the host has stopped by itself, or is closed. */
  onEnd(listener: (why: HostError) => void): () => void {
    if (this.#ended !== undefined) listener(this.#ended);
    this.#endListeners.add(listener);
    return () => this.#endListeners.delete(listener);
  }

  #end(why: HostError): void {
    if (this.#ended !== undefined) return;
    this.#ended = why;
    for (const listener of [...this.#endListeners]) this.#tell(() => listener(why));
  }

  /** Saves the state, so that the next start need not replay. Happens by itself every `snapshotEvery` inputs. */
  snapshot(): Promise<void> {
    return this.#upkeep.snapshot();
  }

  /** Replaces the journal's past by a checkpoint. Happens by itself after `compactAfterBytes`. */
  async compact(): Promise<void> {
    await this.#upkeep.compact().catch((error) => {
      this.#fail(error);
      throw this.failure;
    });
  }

  /** Takes no more inputs, lets out what may leave, closes the drivers and gives the journal up. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#pipeline.pump();
    this.#timers.stop();
    this.#restart?.cancel();
    await this.#upkeep.rest();
    await this.#pipeline.drained();
    const closed = new HostError("host-closed", "this host is closed");
    this.#pipeline.end(closed);
    this.#end(closed);
    this.#outbox.stop();
    this.#recovery.reject(closed);
    for (const driver of this.#options.drivers) {
      await driver.close().catch((error) =>
        this.#logger.error({ err: error }, `the driver ${driver.name} did not close`)
      );
    }
    const { journal } = this.#opened;
    if (this.failure !== undefined) await journal.close().catch(() => {});
    else {
      await this.#upkeep.settle();
      await journal.close();
    }
  }

  // ---- start -------------------------------------------------------------------------------------------------

  async #start(): Promise<void> {
    const port: DriverPort = {
      fence: this.report.fence,
      input: (to, event, safe) => this.#pipeline.put({ to, event, safe }),
      outcome: (call, to, event, safe) => {
        this.#outbox.concluded(call);
        this.#pipeline.put({ to, event: { ...event, call }, safe });
      },
      observe: (observation) => {
        for (const observer of this.#observers) this.#tell(() => observer(observation));
      },
    };
    for (const driver of this.#options.drivers) await driver.start(port);
    const { clock, configuration, past } = this.#opened;
    if (past !== undefined) {
      this.#restart = new Restart<E, R>(this.#options, {
        clock,
        timers: this.#timers,
        outbox: this.#outbox,
        pipeline: this.#pipeline,
        traits: this.#options.kernel.definition.effects,
      }, ({ overdue, owed }) => this.#recovered({ ...this.report, overdue, owed }));
      this.report = { ...this.report, held: this.#restart.held, owed: this.#restart.owed };
    }
    const event: KernelEvent = past === undefined
      ? configuration
      : { type: "resumed", downMs: this.report.downMs };
    await new Promise<Applied<E, R>>((resolve, reject) => {
      this.#pipeline.putFirst({ to: SYSTEM, event, safe: resolve, refused: reject });
      this.#pipeline.go();
    });
    if (this.#restart !== undefined) this.#restart.listen();
    else {
      this.#timers.start();
      this.#recovery.resolve(this.report);
    }
  }

  #recovered(report: RecoveryReport): void {
    this.report = report;
    this.#moved(this.#pipeline.appended, this.#pipeline.durable);
    this.#logger.info({ recovery: report }, "recovered");
    this.#recovery.resolve(report);
  }

  // ---- steps -------------------------------------------------------------------------------------------------

  #applied(result: Applied<E, R>): void {
    for (const effect of result.effects) {
      if (effect.kind === "arm") {
        const { from: to, timer, generation, dueAt } = effect;
        this.#timers.arm({ to, timer, generation, dueAt });
      } else if (effect.kind === "disarm") this.#timers.disarm(effect.generation);
    }
    this.#outbox.add(result.input.seq, result.effects);
    this.#tell(() => this.#opened.views.apply(result));
    for (const listener of this.#listeners) this.#tell(() => listener(result));
    this.#restart?.stepped();
  }

  /** Whoever only looks on cannot stop the run. */
  #tell(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#logger.error({ err: error }, `a listener or a view threw: ${textOf(error)}`);
    }
  }

  #moved(appended: number, durable: number): void {
    try {
      this.#outbox.flush(appended, durable);
    } catch (error) {
      return this.#fail(error);
    }
    this.#upkeep.attend().catch((error) => this.#fail(error));
  }

  #fail(cause: unknown): void {
    if (this.failure !== undefined) return;
    const failure = cause instanceof HostError ? cause : new HostError(
      "host-journal",
      `the journal cannot be written, nothing leaves any more: ${textOf(cause)}`,
      cause,
    );
    this.failure = failure;
    this.#timers.stop();
    this.#restart?.cancel();
    this.#outbox.stop();
    this.#pipeline.end(failure);
    this.#recovery.reject(failure);
    this.#logger.error({ err: failure }, failure.message);
    for (const listener of this.#failureListeners) listener(failure);
    this.#end(failure);
  }
}
