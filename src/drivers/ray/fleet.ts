import {
  addRanks,
  type PackStrategy,
  type PlacedRank,
  type Placement,
  type PlacementAnswer,
  type PlacementRefusal,
  planPlacement,
  removeRanks,
} from "../../planning/mod.ts";
import { RayError } from "./error.ts";
import type { RayLauncher, RayOrder } from "./launcher.ts";

/** What a rank runs, once it is known where. */
export interface RankCommand {
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string | null;
}

export interface RayFleetOptions {
  /** `strict` or `fill`: over HTTP a rank is one job, and a job has one node. */
  readonly strategy: Exclude<PackStrategy, "span">;
  readonly deviceKey: string;
  /** Devices of one rank. */
  readonly worldSize: number;
  /** The node that has the local ranks, by address. */
  readonly masterIp: string;
  /** How many ranks start on it. */
  readonly localSize: number;
  readonly command: (rank: PlacedRank) => RankCommand;
  /** Ids of jobs are never used again: this tells the lives of a deployment apart. Default: the time. */
  readonly generation?: string;
  /** For all jobs of one step to start. Default 30,000 and 2,000 a rank. */
  readonly startDeadlineMs?: number;
  readonly stopDeadlineMs?: number;
}

/** A request that does not fit: the planner's refusal, with every node's reason and what would help. */
export class NoRoomError extends RayError {
  readonly refusals: readonly PlacementRefusal[];
  constructor(refusals: readonly PlacementRefusal[]) {
    const first = refusals[0]!;
    super("ray-no-room", `${first.message} ${first.fix}`);
    this.name = "NoRoomError";
    this.refusals = refusals;
  }
}

/**
 * The ranks of a deployment on a Ray cluster: planned from what is free, started all or none, and made more or fewer.
 * One change at a time; what a change that failed had started is stopped before the failure is told.
 */
export class RayFleet {
  readonly #launcher: RayLauncher;
  readonly #options: RayFleetOptions;
  #placement: Placement | null = null;
  #launches = new Map<number, string>();
  #attempt = 0;
  readonly #generation: string;
  #busy: Promise<unknown> = Promise.resolve();

  constructor(launcher: RayLauncher, options: RayFleetOptions) {
    this.#launcher = launcher;
    this.#options = options;
    this.#generation = options.generation ?? Date.now().toString(36);
  }

  /** Where every rank runs; null before the first start. */
  get placement(): Placement | null {
    return this.#placement;
  }

  /** The launch of a rank, for `logs` and exits. */
  launchOf(rank: number): string | undefined {
    return this.#launches.get(rank);
  }

  /**
   * Brings the number of ranks to `size`. The plan comes first: what does not fit is refused before Ray is asked.
   * @throws NoRoomError; RayError `ray-not-started` when jobs were accepted and did not all start in time
   */
  scaleTo(size: number): Promise<Placement> {
    const turn = this.#busy.then(() => this.#scale(size));
    this.#busy = turn.catch(() => {});
    return turn;
  }

  async #scale(size: number): Promise<Placement> {
    const before = this.#placement;
    if (before !== null && size <= before.ranks.length) {
      const after = planned(removeRanks(before, size));
      await this.#stop(before.ranks.slice(size).map((r) => r.rank));
      return this.#placement = after;
    }
    const nodes = await this.#launcher.api.snapshot(this.#launcher.claims());
    const { strategy, deviceKey, worldSize, masterIp, localSize } = this.#options;
    const after = planned(
      before === null || before.ranks.length === 0
        ? planPlacement({ nodes, strategy, deviceKey, worldSize, masterIp, localSize, size })
        : addRanks(before, nodes, masterIp, size),
    );
    await this.#start(after.ranks.slice(before?.ranks.length ?? 0));
    return this.#placement = after;
  }

  /** Starts all of these ranks or none. */
  async #start(ranks: readonly PlacedRank[]): Promise<void> {
    this.#attempt++;
    const orders = new Map(ranks.map((rank) => [rank.rank, this.#order(rank)]));
    const ids = [...orders.values()].map((o) => o.id);
    try {
      await Promise.all([...orders.values()].map((order) => this.#launcher.start(order)));
      const deadline = this.#options.startDeadlineMs ?? 30_000 + 2_000 * ranks.length;
      const late = await this.#launcher.started(ids, deadline);
      if (late.length > 0) throw this.#notStarted(ranks, late, orders, deadline);
    } catch (error) {
      await Promise.allSettled(ids.map((id) => this.#launcher.stop(id, this.#stopDeadline)));
      throw error;
    }
    for (const [rank, { id }] of orders) this.#launches.set(rank, id);
  }

  #notStarted(
    ranks: readonly PlacedRank[],
    late: readonly string[],
    orders: ReadonlyMap<number, RayOrder>,
    deadlineMs: number,
  ): RayError {
    const names = ranks.filter((r) => late.includes(orders.get(r.rank)!.id))
      .map((r) =>
        `rank ${r.rank} (${r.on[0]!.devices} ${this.#options.deviceKey} on ${r.on[0]!.ip})`
      );
    return new RayError(
      "ray-not-started",
      `${names.join(", ")} did not start in ${deadlineMs} ms; all ${ranks.length} were taken back`,
    );
  }

  #order(rank: PlacedRank): RayOrder {
    const { argv, env = {}, cwd = null } = this.#options.command(rank);
    const [share] = rank.on;
    return {
      id: `g${this.#generation}-r${rank.rank}-a${this.#attempt}`,
      ranks: [rank.rank],
      argv,
      env,
      cwd,
      node: share!.node,
      ip: share!.ip,
      resources: { [this.#options.deviceKey]: share!.devices },
    };
  }

  get #stopDeadline(): number {
    return this.#options.stopDeadlineMs ?? 20_000;
  }

  /** By rank, never by the order in which things were created. */
  async #stop(ranks: readonly number[]): Promise<void> {
    const known = ranks.flatMap((rank) => this.#launches.get(rank) ?? []);
    await Promise.all(known.map((id) => this.#launcher.stop(id, this.#stopDeadline)));
    for (const rank of ranks) this.#launches.delete(rank);
  }
}

function planned(answer: PlacementAnswer): Placement {
  if (!answer.ok) throw new NoRoomError(answer.refusals);
  return answer.plan;
}
