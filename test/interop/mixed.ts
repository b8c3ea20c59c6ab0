/** A cluster in which some front-ends are ours and the others the original's, and what becomes of one operation in it. */
import { OwnStores, type StoreHost } from "../../src/drivers/scaling-store.ts";
import { MemoryStore } from "../../src/journal/mod.ts";
import type { ScalingOutput } from "../../src/machines/scaling.ts";
import { MemoryEngines } from "../../src/testing/memory-engines.ts";
import { ScalingGroup } from "../../src/testing/scaling-group.ts";
import type { Original, Originals } from "./originals.ts";

const LIMITS = {
  prepareMs: 12_000,
  voteMs: 8_000,
  outcomeMs: 8_000,
  utilityMs: 5_000,
  retryMs: 50,
};
/** Ours have their own limits, and may stay in doubt. */
const PATIENCE_MS = 18_000;

export interface Mixed {
  /** Ranks of ours. */
  readonly ours: readonly number[];
  readonly from: number;
  readonly to: number;
  /** What goes wrong at which original rank. */
  readonly theirs?: Readonly<Record<number, string>>;
  /** What the engines of ours do wrong: `1 pause_scheduler`. */
  readonly engines?: Readonly<Record<string, "fails" | "silent">>;
  /** Our engines speak, while ours prepares, of an operation that is long over. */
  readonly lateWord?: boolean;
  /** Ours is asked to abort once its part is in a state of this name. */
  readonly abortIn?: string;
  /** Our coordinator dies at this fault point. */
  readonly dies?: {
    readonly at: string;
    /** It comes back from its journal. */
    readonly returns?: boolean;
    /** The stores that it hosts go with it. */
    readonly withStores?: boolean;
  };
  /** Ask again once everybody has ended, with every engine of ours started anew. */
  readonly again?: boolean;
}

export interface Ending {
  /** How ours ended; `waiting` while it is in doubt, `gone` when it died and did not return. */
  readonly ours: Readonly<Record<number, string>>;
  readonly theirs: Readonly<Record<number, string>>;
  /** Why ours failed. */
  readonly texts: readonly string[];
  /** Ranks whose engines ours asks to be started anew. */
  readonly restart: readonly number[];
  /** What came of asking again. */
  readonly again?: Ending;
}

class Death extends Error {}

/** The front-ends of ours: one coordinator, which may die. */
class Ours {
  readonly ended = new Map<number, ScalingOutput>();
  readonly #mixed: Mixed;
  readonly #engines: MemoryEngines;
  readonly #servers: OwnStores;
  readonly #controlPort: number;
  readonly #journal = new MemoryStore();
  #group!: ScalingGroup;
  #armed = false;
  #dead = false;

  constructor(mixed: Mixed, engines: MemoryEngines, servers: OwnStores, controlPort: number) {
    this.#mixed = mixed;
    this.#engines = engines;
    this.#servers = servers;
    this.#controlPort = controlPort;
  }

  async open(): Promise<void> {
    const stores: StoreHost = {
      serve: (name) => this.#servers.serve(name),
      stop: (port) => this.#servers.stop(port),
      close: () => Promise.resolve(),
    };
    this.#group = await ScalingGroup.start({
      size: this.#mixed.from,
      ranks: this.#mixed.ours,
      limits: LIMITS,
      graceMs: 20,
      journal: this.#journal,
      world: { engines: this.#engines, stores, controlPort: this.#controlPort },
      fault: (name) => {
        if (this.#dead || (this.#armed && name === this.#mixed.dies?.at)) {
          this.#dead = true;
          throw new Death(name);
        }
      },
    });
    this.#group.host.subscribe(({ transitions }) => {
      for (const { event, chart, instance } of transitions) {
        if (chart !== "topology" || event.type !== "ended") continue;
        this.ended.set(Number(instance.split("/")[1]), event["output"] as ScalingOutput);
      }
    });
  }

  async scale(operation: string): Promise<void> {
    const { ours, to, lateWord, abortIn, dies } = this.#mixed;
    this.ended.clear();
    this.#armed = true;
    const died = new Promise<void>((resolve) => this.#group.host.onFailure(() => resolve()));
    for (const rank of ours) {
      const asked = this.#say(rank, {
        type: "prepare",
        operation,
        target: to,
        remains: rank < to,
        report: "",
        shared: false,
      });
      if (dies !== undefined) asked.catch(() => {});
      else await asked;
      const late = { type: "notified", notification: "reconfigureFinished" };
      if (lateWord === true) await this.#say(rank, late);
      if (abortIn !== undefined) {
        await this.#reaches(rank, operation, abortIn);
        await this.#say(rank, { type: "abort", operation, text: "the operator thinks otherwise" });
      }
    }
    if (dies !== undefined) await this.#die(died);
    this.#armed = false;
  }

  /** Starts their engines anew. */
  mend(): void {
    for (const rank of this.#mixed.ours) this.#engines.restart(rank, this.#mixed.from);
    this.#engines.faults.clear();
  }

  async settle(): Promise<void> {
    const until = Date.now() + PATIENCE_MS;
    while (!this.#gone && this.ended.size < this.#mixed.ours.length && Date.now() < until) {
      await new Promise((r) => setTimeout(r, 50));
    }
  }

  outcome(rank: number): string {
    return this.ended.get(rank)?.outcome ?? (this.#gone ? "gone" : "waiting");
  }

  async close(): Promise<void> {
    await this.#group.close().catch(() => {});
  }

  get #gone(): boolean {
    return this.#mixed.dies !== undefined && this.#mixed.dies.returns !== true;
  }

  async #die(died: Promise<void>): Promise<void> {
    await died;
    await this.close();
    this.#journal.crash("process");
    if (this.#mixed.dies!.withStores === true) await this.#servers.close();
    if (this.#gone) return;
    this.#armed = this.#dead = false;
    await this.open();
    await this.#group.host.recovered;
  }

  #say(rank: number, event: { type: string; [key: string]: unknown }): Promise<unknown> {
    return this.#group.host.submit(`rank/${rank}/topology`, event as never);
  }

  #reaches(rank: number, operation: string, state: string): Promise<void> {
    const id = `rank/${rank}/scaling/${operation}`;
    const there = () =>
      JSON.stringify(this.#group.host.system.instances.get(id)?.state.snapshot.value ?? "")
        .includes(state);
    return new Promise((resolve) => {
      const look = () => {
        if (!there()) return;
        off();
        resolve();
      };
      const off = this.#group.host.subscribe(look);
      look();
    });
  }
}

/** Everybody is asked to scale, and comes to an end or stays in doubt. */
export async function scale(originals: Originals, mixed: Mixed): Promise<Ending> {
  const { ours, from, to } = mixed;
  const servers = new OwnStores("127.0.0.1");
  const theirs = new Map<number, Original>();
  const others = Array.from({ length: from }, (_, r) => r).filter((r) => !ours.includes(r));
  const start = async (rank: number, controlPort: number): Promise<number> => {
    const fault = mixed.theirs?.[rank];
    const original = originals.rank({
      rank,
      from,
      to,
      controlPort,
      ...(fault === undefined ? {} : { fault }),
    });
    theirs.set(rank, original);
    return await original.ready();
  };
  const controlPort = ours.includes(0) ? await servers.serve("control") : await start(0, 0);
  await Promise.all(others.filter((rank) => rank !== 0).map((rank) => start(rank, controlPort)));
  // New engines belong to whoever leads.
  const joining = Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
  const engines = new MemoryEngines(from, ours.includes(0) ? others : [...others, ...joining]);
  for (const [call, fault] of Object.entries(mixed.engines ?? {})) engines.faults.set(call, fault);
  const front = new Ours(mixed, engines, servers, controlPort);
  try {
    await front.open();
    const told = async (operation: string): Promise<Ending> => {
      const outcomes = Promise.all(
        [...theirs].map(async ([rank, original]) => [rank, await original.scale()] as const),
      );
      await front.scale(operation);
      const theirEnds = Object.fromEntries(await outcomes);
      await front.settle();
      const ended = [...front.ended.values()];
      return {
        ours: Object.fromEntries(ours.map((rank) => [rank, front.outcome(rank)])),
        theirs: theirEnds,
        texts: ended.flatMap((o) => o.cause === null ? [] : [o.cause.text]),
        restart: [...front.ended].filter(([, o]) => o.engineToRestart).map(([rank]) => rank),
      };
    };
    const first = await told("mixed");
    if (mixed.again !== true) return first;
    front.mend();
    return { ...first, again: await told("again") };
  } finally {
    for (const original of theirs.values()) original.close();
    await front.close();
    await engines.close();
    await servers.close();
  }
}
