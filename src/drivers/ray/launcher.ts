import type { Resources } from "../../planning/mod.ts";
import {
  type End,
  Exits,
  type Launched,
  type Launcher,
  LauncherError,
  type LaunchExit,
  type LaunchOrder,
  type Stopped,
} from "../launchers/launcher.ts";
import { isOver, type Job, RayApi } from "./api.ts";
import { endOfCode, endOfJob } from "./end.ts";
import { RayError } from "./error.ts";
import type { RayAddress } from "./http.ts";
import { type JobTerms, specOf, submitOnce } from "./job-spec.ts";
import { LeaseServer } from "./lease-server.ts";
import type { OwnClaim } from "./resources.ts";

/** A process on a node of a Ray cluster. */
export interface RayOrder extends LaunchOrder {
  /** Ray's id of the node: there or not at all. */
  readonly node: string;
  /** That node's address. */
  readonly ip: string;
  /** What the job holds there: `GPU` and `CPU`, or the platform's key. Ray chooses the devices and tells the process. */
  readonly resources: Resources;
}

export interface RayLauncherOptions extends RayAddress {
  /** The name of this deployment among all that use the Ray cluster: letters, digits and `-`. */
  readonly fleet: string;
  /** An address of this host that the nodes reach: their guards ask there. Null: ranks without a lease. */
  readonly leaseHost: string | null;
  /** Default 0, a free one. A launcher that is to take over another's ranks needs the same port. */
  readonly leasePort?: number;
  /** So long a rank goes on that cannot reach this launcher. Default 15,000. */
  readonly leaseMs?: number;
  /** From a polite stop to one by force. Default 5,000. */
  readonly graceMs?: number;
  /** A job that has not started by then never will. Default 120,000. */
  readonly startMs?: number;
}

interface Rank {
  readonly order: RayOrder;
  readonly job: string;
  /** Its guard asked for the first lease, or Ray says RUNNING where there is no lease. */
  started: boolean;
  /** A stop was asked for: the lease is not renewed. */
  asked: boolean;
  /** How it ended, once that is known. */
  end: End | null;
  /** The guard told the end itself. */
  told: boolean;
  /** Ray has it off its hands. */
  off: boolean;
  dueAt: number;
}

const SOON_MS = 500;
const SELDOM_MS = 5_000;

/**
 * Ranks as jobs of an existing Ray cluster, each pinned to its node, guarded, and on a lease.
 *
 * What Ray does not promise, this does: a job that was stopped before it started never starts its rank; a rank whose
 * job, node or coordinator is lost ends by itself; devices count as free only when the last lease of their rank is over.
 */
export class RayLauncher implements Launcher<RayOrder> {
  readonly kind: string = "ray";
  readonly api: RayApi;
  readonly fleet: string;
  readonly #options: RayLauncherOptions;
  readonly #leaseMs: number;
  readonly #graceMs: number;
  readonly #ranks = new Map<string, Rank>();
  readonly #exits = new Exits();
  readonly #changes = new Set<() => void>();
  #lease: LeaseServer | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  private constructor(options: RayLauncherOptions) {
    this.#options = options;
    this.fleet = options.fleet;
    this.#leaseMs = options.leaseMs ?? 15_000;
    this.#graceMs = options.graceMs ?? 5_000;
    this.api = new RayApi(options);
  }

  /**
   * Looks for the cluster and opens the lease.
   * @throws LauncherError `launcher-unreachable`, `launch-refused` (the fleet's name)
   */
  static async open(options: RayLauncherOptions): Promise<RayLauncher> {
    if (!/^[A-Za-z0-9-]{1,40}$/.test(options.fleet)) {
      throw new LauncherError(
        "launch-refused",
        `${options.fleet} is no name for a fleet (letters, digits, -)`,
      );
    }
    const launcher = new RayLauncher(options);
    try {
      await launcher.api.version();
      if (options.leaseHost !== null) {
        const holder = {
          may: (job: string) => launcher.#may(job),
          ended: (job: string, code: number) => launcher.#toldEnd(job, code),
        };
        launcher.#lease = await LeaseServer.open(holder, options.leaseHost, options.leasePort ?? 0);
      }
    } catch (error) {
      launcher.api.http.close();
      throw new LauncherError("launcher-unreachable", (error as Error).message);
    }
    launcher.#tick();
    return launcher;
  }

  /** Where guards ask, or null without a lease. */
  get leasePort(): number | null {
    return this.#lease?.port ?? null;
  }

  async start(order: RayOrder): Promise<Launched> {
    const launched = { id: order.id, where: `${order.ip}, Ray node ${order.node}`, pid: null };
    if (this.#ranks.has(order.id)) return launched;
    const spec = specOf(order, this.#terms());
    const rank = this.#track(order, spec.id);
    try {
      await submitOnce(this.api, spec);
      rank.dueAt = Date.now() + SOON_MS;
    } catch (error) {
      const refused = error instanceof RayError && error.code === "ray-refused";
      if (refused) this.#ranks.delete(order.id);
      // It may have arrived all the same: then it is stopped, and its guard may not start it.
      else Object.assign(rank, { asked: true, dueAt: Date.now() + SOON_MS });
      throw new LauncherError(
        refused ? "launch-refused" : "launcher-unreachable",
        (error as Error).message,
      );
    }
    return launched;
  }

  async stop(id: string, deadlineMs: number): Promise<Stopped> {
    const rank = this.#ranks.get(id);
    if (rank === undefined) throw new LauncherError("unknown-launch", `there is no launch ${id}`);
    rank.asked = true;
    if (!rank.off) {
      await this.api.stop(rank.job).catch(() => {});
      rank.dueAt = 0;
      if (!rank.started) {
        this.#ends(rank, { kind: "not-started", text: "it was stopped before it started" });
      }
      // Ended, and Ray has its devices back; a queued one holds none.
      await this.#until(() => rank.end !== null && (rank.off || !rank.started), deadlineMs);
    }
    const killed = rank.end?.kind === "signal" && rank.end.signal === "SIGKILL";
    return { killed, left: rank.end === null };
  }

  exited(listener: (exit: LaunchExit) => void): () => void {
    return this.#exits.listen(listener);
  }

  logs(id: string, lines = 20): Promise<readonly string[]> {
    const rank = this.#ranks.get(id);
    if (rank === undefined) {
      return Promise.reject(new LauncherError("unknown-launch", `there is no launch ${id}`));
    }
    return this.api.tail(rank.job, rank.order.node, lines);
  }

  /** Ends everything, waits until the last lease is over or the deadline is, and lets go. */
  async close(deadlineMs: number = this.#graceMs + 5_000): Promise<void> {
    if (this.#closed) return;
    await Promise.all([...this.#ranks.keys()].map((id) => this.stop(id, deadlineMs)));
    await this.#until(() => this.claims().length === 0, deadlineMs);
    await this.detach();
  }

  /** Lets go without stopping anything: from now on the leases run out. */
  async detach(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#lease?.close();
    this.api.http.close();
  }

  /** Waits for ranks to start. Those that did not in time, or ended before, are the answer. */
  async started(ids: readonly string[], deadlineMs: number): Promise<readonly string[]> {
    const waiting = () =>
      ids.filter((id) => {
        const rank = this.#ranks.get(id);
        return rank !== undefined && !rank.started && rank.end === null;
      });
    await this.#until(() => waiting().length === 0, deadlineMs);
    return ids.filter((id) => !(this.#ranks.get(id)?.started ?? false));
  }

  /** What ranks of this launcher hold: also those that ended, until their last lease is over. */
  claims(): OwnClaim[] {
    return [...this.#ranks.values()]
      .filter((rank) => !this.#settled(rank))
      .map(({ job, order }) => ({ job, node: order.node, resources: order.resources }));
  }

  /**
   * Finds the ranks of a launcher before this one (same fleet, same lease port): what is known goes on, what is not
   * is stopped.
   * @returns ids that were found, jobs that were stopped, and ids of which Ray knows nothing.
   */
  async adopt(
    orders: readonly RayOrder[],
  ): Promise<{ found: string[]; stopped: string[]; missing: string[] }> {
    const terms = this.#terms();
    const jobs = (await this.api.jobs()).filter((j) => j.metadata["fleet"] === this.#options.fleet);
    const wanted = new Map(orders.map((order) => [specOf(order, terms).id, order]));
    const found = jobs.filter((job) => wanted.has(job.id));
    for (const job of found) this.#saw(this.#track(wanted.get(job.id)!, job.id), job);
    const strangers = jobs.filter((job) => !wanted.has(job.id) && !isOver(job));
    await Promise.all(strangers.map((job) => this.api.stop(job.id)));
    const known = new Set(found.map((job) => job.id));
    return {
      found: found.map((job) => wanted.get(job.id)!.id),
      stopped: strangers.map((job) => job.id),
      missing: [...wanted].filter(([job]) => !known.has(job)).map(([, order]) => order.id),
    };
  }

  #terms(): JobTerms {
    const { fleet, leaseHost, startMs } = this.#options;
    return {
      fleet,
      lease: this.#lease && { host: leaseHost!, port: this.#lease.port },
      leaseMs: this.#leaseMs,
      graceMs: this.#graceMs,
      notAfterMs: Date.now() + (startMs ?? 120_000),
    };
  }

  #track(order: RayOrder, job: string): Rank {
    const rank: Rank = {
      order,
      job,
      started: false,
      asked: false,
      end: null,
      told: false,
      off: false,
      dueAt: Infinity, // until it is known that Ray has it
    };
    this.#ranks.set(order.id, rank);
    return rank;
  }

  #byJob(job: string): Rank | undefined {
    return [...this.#ranks.values()].find((rank) => rank.job === job);
  }

  #may(job: string): boolean {
    const rank = this.#byJob(job);
    if (rank === undefined || rank.asked || rank.end !== null || this.#closed) return false;
    rank.started = true;
    this.#changed();
    return true;
  }

  #toldEnd(job: string, code: number): void {
    const rank = this.#byJob(job);
    if (rank === undefined) return;
    rank.told = true;
    rank.dueAt = 0;
    this.#ends(rank, endOfCode(code));
  }

  /** Nothing of it can be running any more. */
  #settled(rank: Rank): boolean {
    if (rank.end !== null && !rank.started) return true;
    if (!rank.off) return false;
    const seen = this.#lease?.lastSeen(rank.job) ?? null;
    return rank.told || seen === null || Date.now() > seen + this.#leaseMs + this.#graceMs;
  }

  /** One look at every rank that is due, then a pause. */
  #tick(): void {
    this.#timer = setTimeout(async () => {
      const due = [...this.#ranks.values()].filter((r) => !r.off && r.dueAt <= Date.now());
      await Promise.all(due.map((rank) => this.#look(rank)));
      this.#changed();
      if (!this.#closed) this.#tick();
    }, SOON_MS);
  }

  async #look(rank: Rank): Promise<void> {
    try {
      this.#saw(rank, await this.api.job(rank.job));
    } catch {
      rank.dueAt = Date.now() + SELDOM_MS; // Ray is away; the guards have their leases.
    }
  }

  #saw(rank: Rank, job: Job | null): void {
    if (job === null) {
      rank.off = true;
      const text = "Ray does not know its job any more (a new cluster, or the record was deleted)";
      this.#ends(rank, { kind: rank.started ? "unknown" : "not-started", text });
      return;
    }
    if (job.status === "RUNNING" && this.#lease === null) rank.started = true;
    if (isOver(job)) {
      rank.off = true;
      this.#ends(rank, endOfJob(job, rank.started));
    }
    const steady = rank.started && !rank.asked && rank.end === null;
    rank.dueAt = Date.now() + (steady ? SELDOM_MS : SOON_MS);
  }

  /** Once for each rank: the first who knows how it ended says so. */
  #ends(rank: Rank, end: End): void {
    if (rank.end !== null) return;
    rank.end = end;
    this.#changed();
    const { id, ranks, node } = rank.order;
    const at = Date.now();
    this.api.tail(rank.job, node, 20).catch((): string[] => []).then((tail) =>
      this.#exits.tell({ id, ranks, end, asked: rank.asked, tail, at })
    );
  }

  #changed(): void {
    for (const look of this.#changes) look();
  }

  #until(truth: () => boolean, deadlineMs: number): Promise<void> {
    return new Promise((done) => {
      const finish = () => {
        clearTimeout(timer);
        this.#changes.delete(look);
        done();
      };
      const look = () => truth() && finish();
      const timer = setTimeout(finish, deadlineMs);
      this.#changes.add(look);
      look();
    });
  }
}
