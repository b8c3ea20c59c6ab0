/** Internal elastic scaling, carried out: jobs of a Ray cluster, and utilities of every rank with a deadline. Stores, epochs and answers have the drivers of external scaling. */
import { setImmediate } from "node:timers";
import type { Bootstrap, CallRank, RaySnapshot, RayStart, RayStop } from "../../machines/mod.ts";
import type { PlacedRank } from "../../planning/mod.ts";
import { type ScalingNotification, utilities, type Utility } from "../../protocol/mod.ts";
import type { Driver, DriverPort, Order } from "../driver.ts";
import { endText } from "../launchers/launcher.ts";
import { type EngineAnswer, utilityOf } from "../scaling-engines.ts";
import type { RankCommand } from "./fleet.ts";
import type { RayLauncher, RayOrder } from "./launcher.ts";

/** Whoever can speak to the engines of an internal load balancer: its engine bus, or engines in memory. */
export interface RankCaller {
  /** Resolves with the engine's answer, never when there is none. */
  call(rank: number, utility: Utility, call: string): Promise<EngineAnswer>;
  /** Scaling notifications of every rank, from now on. */
  onNotification(listener: (rank: number, notification: ScalingNotification) => void): void;
  /** The first frame of every new rank on the input socket. */
  onJoined(listener: (rank: number) => void): void;
}

export interface RayScalingOptions {
  readonly launcher: RayLauncher;
  readonly engines: RankCaller;
  /** What a new rank runs: it gets its addresses as arguments, there is no handshake. */
  readonly command: (rank: PlacedRank, bootstrap: Bootstrap) => RankCommand;
  /** For one rank to start. Default 120,000. */
  readonly startDeadlineMs?: number;
  readonly stopDeadlineMs?: number;
}

type Effects = RaySnapshot | RayStart | RayStop | CallRank;

/** The instance that owns the deployment. */
const OWNER = "ray-scaling";

export class RayScalingDriver implements Driver<Effects, never> {
  readonly name = "ray-scaling";
  readonly effects = [
    "ray.snapshot",
    "ray.start",
    "ray.stop",
    "rank.call",
  ] as const;
  readonly resources = [] as const;
  readonly #options: RayScalingOptions;
  readonly #deadlines: Set<ReturnType<typeof setTimeout>> = new Set();
  #port: DriverPort | undefined;
  #unlisten: (() => void) | undefined;

  constructor(options: RayScalingOptions) {
    this.#options = options;
  }

  start(port: DriverPort): void {
    this.#port = port;
    const { engines, launcher } = this.#options;
    engines.onJoined((rank) => port.input(OWNER, { type: "joined", rank }));
    // An engine replies before it notifies; the reply is a promise, and has its turn first.
    engines.onNotification((rank, kind) =>
      setImmediate(() => port.input(OWNER, { type: "notified", rank, kind }))
    );
    this.#unlisten = launcher.exited(({ ranks, end, asked }) => {
      if (asked) return;
      for (const rank of ranks) port.input(OWNER, { type: "rankGone", rank, text: endText(end) });
    });
  }

  channel({ effect }: Order<Effects>): string {
    return "rank" in effect && typeof effect.rank === "number" ? `rank ${effect.rank}` : this.name;
  }

  perform({ id, from, effect }: Order<Effects>): void {
    const outcome = (event: { type: string; [key: string]: unknown }) =>
      this.#port!.outcome(id, from, event);
    switch (effect.type) {
      case "ray.snapshot":
        return void this.#snapshot().then(
          (nodes) => outcome({ type: "snapshotTaken", nodes }),
          (error: Error) => outcome({ type: "snapshotFailed", text: error.message }),
        );
      case "ray.start": {
        const { rank } = effect.rank;
        return void this.#launch(effect).then(
          () => outcome({ type: "rankLaunched", rank }),
          (error: Error) => outcome({ type: "rankLaunchFailed", rank, text: error.message }),
        );
      }
      case "ray.stop": {
        const { rank, launch } = effect;
        const deadline = this.#options.stopDeadlineMs ?? 20_000;
        // A launch that nobody knows has nothing to be stopped.
        return void this.#options.launcher.stop(launch, deadline).catch(() => {})
          .then(() => outcome({ type: "rankStopped", rank }));
      }
      case "rank.call":
        return this.#call(effect, id, outcome);
    }
  }

  /** A utility of an earlier life: what came of it is not known here. */
  ask(order: Order<Effects>): void {
    if (order.effect.type !== "rank.call") return this.perform(order);
    const { rank, request: { method } } = order.effect;
    const text = `${method}: the coordinator was restarted before the answer came`;
    this.#port!.outcome(order.id, order.from, { type: "engineFailed", rank, method, text });
  }

  close(): Promise<void> {
    this.#unlisten?.();
    for (const deadline of this.#deadlines) clearTimeout(deadline);
    this.#deadlines.clear();
    return Promise.resolve();
  }

  async #snapshot() {
    const { launcher } = this.#options;
    return await launcher.api.snapshot(launcher.claims());
  }

  async #launch({ launch, rank, deviceKey, bootstrap }: RayStart): Promise<void> {
    const { launcher, command, startDeadlineMs = 120_000 } = this.#options;
    const { argv, env = {}, cwd = null } = command(rank, bootstrap);
    const [share] = rank.on;
    const order: RayOrder = {
      id: launch,
      ranks: [rank.rank],
      argv,
      env: { ...env, VLLM_ELASTIC_EP_SCALE_UP_LAUNCH: "1" },
      cwd,
      node: share!.node,
      ip: share!.ip,
      resources: { [deviceKey]: share!.devices },
    };
    await launcher.start(order);
    const late = await launcher.started([launch], startDeadlineMs);
    if (late.length) {
      throw new Error(
        `rank ${rank.rank} (${share!.devices} ${deviceKey} on ${
          share!.ip
        }) did not start in ${startDeadlineMs} ms`,
      );
    }
  }

  #call(
    { rank, request, deadlineMs }: CallRank,
    id: string,
    outcome: (event: { type: string; [key: string]: unknown }) => void,
  ): void {
    const { method } = request;
    let open = true;
    const conclude = (event: { type: string; [key: string]: unknown }) => {
      if (!open) return;
      open = false;
      clearTimeout(deadline);
      this.#deadlines.delete(deadline);
      outcome({ ...event, rank, method });
    };
    const failed = (text: string) =>
      conclude({ type: "engineFailed", text: `rank ${rank}: ${text}` });
    const deadline = setTimeout(
      () => failed(`${method} was not answered in ${deadlineMs} ms`),
      deadlineMs,
    );
    this.#deadlines.add(deadline);
    const utility = request.method === "eep_handle_engine_core_notification"
      ? utilities.handleNotification(request.notification)
      : utilityOf(request);
    this.#options.engines.call(rank, utility, id).then(
      (answer) => answer.ok ? conclude({ type: "engineReplied" }) : failed(answer.failure),
      (error: Error) => failed(error.message),
    );
  }
}
