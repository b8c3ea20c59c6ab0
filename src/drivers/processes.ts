/**
 * Local processes, through the keeper that owns them.
 *
 * A launch is known to the keeper as `<process instance>@<effect id>`, so that a spawn that is asked again after a crash
 * starts nothing twice, and an exit that happened meanwhile finds its instance.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { EffectId, InstanceId } from "../kernel/mod.ts";
import type { Keeper, PlaceKeeper, ProcessIdentity, Spawn, StopProcess } from "../machines/mod.ts";
import type { Driver, DriverPort, Holding, Order } from "./driver.ts";
import { sizeOf } from "./keeper/tail.ts";
import { watchEngines } from "./launchers/engine-watch.ts";
import type { VllmStep } from "./launchers/vllm-output.ts";
import { causeSince } from "./launchers/first-cause.ts";
import {
  type ChildStatus,
  drawKeeperPlace,
  type ExitEvent,
  KeeperClient,
  KeeperError,
  type KeeperHandlers,
  startKeeper,
  sweepAfterKeeper,
  type SweepReport,
} from "./keeper/mod.ts";

export type ProcessEffect = Spawn | StopProcess | PlaceKeeper;

export interface ProcessDriverOptions {
  /** Where the output of launches goes, one file each. Absolute. */
  readonly logs: string;
  /** Preferred directory of keepers. */
  readonly keepers?: string;
}

/** How far the start of a rank has come, as its output tells: seen, and no input. */
export interface LaunchStep {
  readonly type: "launch-step";
  readonly launch: string;
  /** Null: the command itself says it. */
  readonly rank: number | null;
  readonly step: VllmStep;
}

/** `process/engine-0@6.1`, with `~2500` where its output is watched so often: the keeper hands that to the next coordinator too. */
const launchIdOf = ({ from, id, effect }: Order<Spawn>): string =>
  `${from}@${id}${effect.progressEveryMs > 0 ? `~${effect.progressEveryMs}` : ""}`;
const progressEveryMsOf = (launchId: string): number =>
  Number(/~([\d.]+)$/.exec(launchId)?.[1] ?? 0);
const callOf = (launchId: string): EffectId =>
  /@([\d.]+)(?:~[\d.]+)?$/.exec(launchId)![1] as EffectId;
const instanceOf = (launchId: string): InstanceId => launchId.slice(0, launchId.lastIndexOf("@"));

export class ProcessDriver implements Driver<ProcessEffect, Keeper> {
  readonly name = "processes";
  readonly effects = [
    "process.spawn",
    "process.stop",
    "keeper.place",
  ] as const;
  readonly resources = ["keeper"] as const;
  readonly #options: ProcessDriverOptions;
  #port: DriverPort | undefined;
  #client: KeeperClient | undefined;
  #connecting: Promise<void> = Promise.resolve();
  #holder: InstanceId = "";
  #released = false;
  /** Where the output of each launch of this life begins: its log may have that of an earlier one before. */
  readonly #began = new Map<string, { readonly log: string; readonly at: number }>();
  readonly #unwatch = new Map<string, () => void>();
  /** How much each watched launch had written when it was last looked at. */
  readonly #watched = new Map<string, number>();
  #watch: ReturnType<typeof setInterval> | undefined;

  constructor(options: ProcessDriverOptions) {
    this.#options = options;
    mkdirSync(options.logs, { recursive: true });
  }

  start(port: DriverPort): void {
    this.#port = port;
  }

  hold({ holder, resource }: Holding<Keeper>): void {
    if (this.#client !== undefined) return; // it only became known by its identity
    this.#holder = holder;
    this.#released = false;
    this.#connecting = this.#hire(resource);
  }

  release(): void {
    this.#released = true;
    this.#connecting = this.#dismiss();
  }

  perform(order: Order<ProcessEffect>): void {
    switch (order.effect.type) {
      case "keeper.place":
        return this.#port!.outcome(order.id, order.from, {
          type: "keeperPlaced",
          place: drawKeeperPlace(this.#options.keepers) as unknown as Record<string, string>,
        });
      case "process.spawn":
        return void this.#spawn(order as Order<Spawn>);
      case "process.stop":
        return void this.#stop(order as Order<StopProcess>);
    }
  }

  /** The keeper, when it has been reached; undefined where there is none. */
  async keeper(): Promise<KeeperClient | undefined> {
    await this.#connecting;
    return this.#client;
  }

  /** Detaches: what happens to the launches is the lease's concern unless the keeper was released before. */
  async close(): Promise<void> {
    clearInterval(this.#watch);
    for (const stop of this.#unwatch.values()) stop();
    this.#unwatch.clear();
    await this.#connecting;
    this.#client?.detach();
    this.#client = undefined;
  }

  async #hire(keeper: Keeper): Promise<void> {
    const port = this.#port!;
    const handlers: KeeperHandlers = {
      exited: (exit) => this.#exited(exit),
      lost: (_how, reason) => {
        this.#client = undefined;
        port.input(this.#holder, { type: "keeperLost", text: reason });
      },
    };
    const { fence } = port;
    const { place, leaseMs, identity } = keeper;
    try {
      const found = identity !== null || existsSync(join(place.directory, "token"));
      const client = found
        ? await KeeperClient.connect(place, {
          fence,
          leaseMs,
          ...(identity === null ? {} : { expect: identity as never }),
        }, handlers)
        : await startKeeper({ place, fence, leaseMs }, handlers);
      if (this.#released) return client.detach();
      this.#client = client;
      for (const exit of client.welcome.exits) this.#exited(exit);
      for (const child of client.welcome.children) {
        this.#watchEngines(child);
        if (child.alive) this.#watchOver(child, progressEveryMsOf(child.id));
      }
      port.input(this.#holder, { type: "keeperUp", identity: identityOf(client) });
    } catch (error) {
      const swept = identity === null
        ? ""
        : await sweepAfterKeeper(place, identity as never).then(sweptText, () => "");
      const text = (error as Error).message + swept;
      port.input(this.#holder, { type: "keeperLost", text });
    }
  }

  async #dismiss(): Promise<void> {
    await this.#connecting;
    const client = this.#client;
    this.#client = undefined;
    await client?.hostStop(0).catch(() => {});
  }

  async #spawn(order: Order<Spawn>): Promise<void> {
    const { argv, env, cwd, inherit, progressEveryMs, output } = order.effect;
    const id = launchIdOf(order);
    const answer = (event: { type: string; [k: string]: unknown }) =>
      this.#port!.outcome(order.id, order.from, event);
    await this.#connecting;
    if (this.#client === undefined) {
      return answer({ type: "spawnFailed", text: "there is no keeper" });
    }
    try {
      const log = join(this.#options.logs, `${logName(order.from)}.log`);
      this.#began.set(id, { log, at: sizeOf(log) });
      const child = await this.#client.spawn({
        id,
        argv: [...argv],
        env: { ...(inherit ? ownEnvironment() : {}), ...env },
        cwd: cwd ?? process.cwd(),
        log,
        ...(output === undefined ? {} : { note: output }),
      });
      if (child.pid === null) return; // the exit that says why is on its way
      this.#watchEngines(child);
      this.#watchOver(child, progressEveryMs);
      answer({ type: "spawned", pid: child.pid });
    } catch (error) {
      answer({ type: "spawnFailed", text: (error as Error).message });
    }
  }

  async #stop(order: Order<StopProcess>): Promise<void> {
    await this.#connecting;
    const client = this.#client;
    try {
      const { children } = client === undefined
        ? { children: [] }
        : { children: await client.list() };
      const mine = children.filter((c) => instanceOf(c.id) === order.from && c.alive);
      await Promise.all(mine.map((c) => client!.stop(c.id, order.effect.graceMs)));
    } catch (error) {
      if (!(error instanceof KeeperError)) throw error; // its loss is an input of its own
    }
    this.#port!.outcome(order.id, order.from, { type: "stopAnswered" });
  }

  #exited(exit: ExitEvent): void {
    this.#watched.delete(exit.id);
    this.#unwatch.get(exit.id)?.();
    this.#unwatch.delete(exit.id);
    const to = instanceOf(exit.id);
    // The keeper tells it again to every new coordinator until it is in a journal.
    const safe = () => void this.#client?.acknowledge(exit.seq).catch(() => {});
    if (exit.error !== undefined) {
      // It never ran: that is the outcome of the spawn.
      const call = callOf(exit.id);
      const { message: text } = exit.error;
      return this.#port!.outcome(call, to, { type: "spawnFailed", text }, safe);
    }
    const { code, signal } = exit;
    const tail = this.#withCause(exit);
    this.#port!.input(to, { type: "exited", code, signal, tail }, safe);
  }

  /** The last lines, after the first cause where that is further up: a Python program ends with those who waited for it. */
  #withCause({ id, tail }: ExitEvent): readonly string[] {
    const began = this.#began.get(id);
    this.#began.delete(id);
    const cause = began === undefined ? null : causeSince(began.log, began.at);
    return cause === null || tail.some((line) => line.includes(cause)) ? tail : [cause, ...tail];
  }

  /** vLLM's command outlives its engines for a while: their ends are seen by themselves. */
  #watchEngines({ id, log, note, alive }: ChildStatus): void {
    if (note !== "vllm" || !alive || this.#unwatch.has(id)) return;
    const port = this.#port!;
    const launch = instanceOf(id).replace(/^process\//, "");
    const stop = watchEngines(log, {
      progress: ({ rank, step }) => {
        const observed: LaunchStep = { type: "launch-step", launch, rank, step };
        port.observe(observed);
      },
      gone: (rank) =>
        port.input(`rank/${rank}/engine`, { type: "engineGone", code: null, signal: null }),
    });
    this.#unwatch.set(id, stop);
  }

  /** Output that grows is progress: reported, but no more often than the machine wants to know. */
  #watchOver({ id, logBytes }: ChildStatus, everyMs: number): void {
    if (everyMs <= 0) return;
    this.#watched.set(id, logBytes);
    this.#watch ??= setInterval(() => void this.#look(), Math.max(50, everyMs));
  }

  async #look(): Promise<void> {
    const children = await this.#client?.list().catch(() => []) ?? [];
    for (const { id, logBytes } of children) {
      if (!this.#watched.has(id) || logBytes === this.#watched.get(id)) continue;
      this.#watched.set(id, logBytes);
      this.#port!.input(instanceOf(id), { type: "progressed" });
    }
  }
}

const identityOf = (client: KeeperClient): ProcessIdentity => {
  const { mark: _mark, runtime: _runtime, ...identity } = client.welcome.keeper;
  return identity as unknown as ProcessIdentity;
};

const logName = (instance: InstanceId): string =>
  instance.replace(/^process\//, "").replace(/[^\w.-]/g, "_");

const ownEnvironment = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([k, v]) => v === undefined ? [] : [[k, v]]),
  );

const sweptText = ({ killed }: SweepReport): string =>
  killed === null || killed === 0 ? "" : `; ${killed} processes that it left were killed`;
