/**
 * The status of a cluster as people want to know it: a fold over the steps of a run.
 *
 * Nothing here decides anything, and everything can be computed again from the journal.
 */
import { type Json, type Note, rankOf, type StepResult } from "../kernel/mod.ts";
import {
  type Endpoints,
  type Failure,
  ids,
  type ProcessContext,
  type RunConfiguration,
  type StartupContext,
} from "../machines/mod.ts";
import { type FailureRecord, recordOf } from "./failure-record.ts";
import { countRanks } from "./rank-counts.ts";
import { refusalText } from "./refusal-text.ts";

export type RankState =
  | "awaited"
  | "connected"
  | "ready"
  /** It was ready, its coordinator came back, and it has not answered that one yet. */
  | "adopting"
  | "late"
  | "lost"
  /** Its process was told to end, and has. */
  | "stopped"
  | "restarted"
  /** All engines start anew: it was told to end. */
  | "restarting"
  /** An operation that scales down commits, or has. */
  | "leaving"
  | "left"
  /** A new rank's process runs and has not joined yet, or it ended before. */
  | "joining";

export interface RankStatus {
  readonly rank: number;
  readonly local: boolean;
  readonly state: RankState;
  /** Wall-clock milliseconds. */
  readonly since: number;
  /** When it said HELLO and READY in its present life. */
  readonly connectedAt: number | null;
  readonly readyAt: number | null;
  readonly blocks: number | null;
  /** The launch that runs it, where it is ours. */
  readonly launch: string | null;
  readonly pid: number | null;
  /** Times that a new life of it said HELLO before READY. */
  readonly takeovers: number;
  /** What it said wrong: how often, and why the last of it was refused, with what to do about it. */
  readonly refused:
    | { readonly reason: string; readonly count: number; readonly last: string }
    | null;
}

export interface ProcessStatus {
  readonly launch: string;
  readonly ranks: readonly number[];
  readonly state: string;
  readonly since: number;
  readonly pid: number | null;
  readonly exit: { readonly code: number | null; readonly signal: string | null } | null;
  /** When it last wrote something, as far as its output is watched (wall-clock milliseconds). */
  readonly progressAt: number | null;
  /** Its last lines, once it has ended. */
  readonly tail: readonly string[];
}

export type ClusterPhase =
  | "binding"
  | "forming"
  /** It had formed up, and all engines start anew. */
  | "regrouping"
  | "formed"
  | "failed"
  | "stopping"
  | "stopped";

export interface ClusterStatus {
  readonly phase: ClusterPhase;
  readonly since: number;
  /** When the run was configured. */
  readonly startedAt: number;
  /** Data-parallel size: what was configured, or what the last scaling led to. */
  readonly size: number;
  /** Ranks that have said HELLO in their present life and serve or load, those that are ready included. */
  readonly connected: number;
  /** Ranks that are ready now; one that leaves is not. */
  readonly ready: number;
  /** How many ranks were ready when it formed up. */
  readonly formedUp: number;
  readonly blocks: { readonly sum: number; readonly min: number; readonly max: number } | null;
  /** Bound sockets: name to part to endpoint. */
  readonly endpoints: Endpoints;
  readonly ranks: readonly RankStatus[];
  readonly processes: readonly ProcessStatus[];
  readonly strangers: readonly {
    readonly kind: string;
    readonly count: number;
    readonly sample: string;
  }[];
  readonly failure: FailureRecord | null;
  /** Events that no machine took, by kind, event and machine's place: never silent. */
  readonly notes: readonly {
    readonly kind: Note["kind"];
    readonly what: string;
    readonly count: number;
  }[];
  /** Inputs so far. */
  readonly seq: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface Saved {
  configuration: RunConfiguration | null;
  phase: ClusterPhase;
  since: number;
  startedAt: number;
  seq: number;
  ranks: Mutable<RankStatus>[];
  processes: Mutable<ProcessStatus>[];
  strangers: { kind: string; count: number; sample: string }[];
  notes: { kind: Note["kind"]; what: string; count: number }[];
  startup: StartupContext | null;
  failure: FailureRecord | null;
  size: number;
  greeted: [number, number][];
  resized: boolean;
}

/** Folds steps into a status. */
export class StatusFold {
  #configuration: RunConfiguration | undefined;
  #phase: ClusterPhase = "binding";
  #since = 0;
  #startedAt = 0;
  #seq = 0;
  #ranks = new Map<number, Mutable<RankStatus>>();
  #processes = new Map<string, Mutable<ProcessStatus>>();
  #strangers = new Map<string, { kind: string; count: number; sample: string }>();
  #notes = new Map<string, { kind: Note["kind"]; what: string; count: number }>();
  #startup: StartupContext | undefined;
  #failure: FailureRecord | null = null;
  #size = 0;
  /** Ranks that have not answered since the last restart. */
  #adopting = 0;
  /** What new ranks told when they were greeted, by rank. */
  #greeted = new Map<number, number>();
  /** Ranks joined or left after the start-up, so that its sum of blocks is of the past. */
  #resized = false;

  /** Takes the next step. */
  apply(step: Omit<StepResult, "system">): void {
    const { input } = step;
    this.#seq = input.seq;
    if (input.event.type === "configured") this.#configure(input.event as never, input.at);
    if (input.event.type === "strangers") this.#stranger(input.event as never);
    for (const note of step.notes) this.#note(note);
    for (const { instance, chart, event, before, after } of step.transitions) {
      if (after === undefined) {
        if (chart === "joiner") this.#dismissed(instance, input.at);
        continue;
      }
      const value = after.snapshot.value as unknown;
      if (chart === "operations") {
        const { size } = after.snapshot.context as { size: number };
        if (size !== this.#size) this.#resized = true;
        this.#size = size;
      } else if (chart === "scale-up-handshake" && event.type === "ready") {
        this.#greets(event as never);
      } else if (chart === "engine" || chart === "joiner") {
        this.#engine(instance, value, before?.snapshot.value, event, input.at);
      } else if (chart === "process") {
        this.#process(instance, value, after.snapshot.context, event, input.at);
      } else if (chart === "startup") {
        this.#heard(event);
        this.#startupMoved(value, after.snapshot.context as StartupContext, step, input.at);
      }
    }
  }

  /** The status now. A copy: later steps do not change it. */
  status(): ClusterStatus {
    const ranks = [...this.#ranks.values()];
    const { ready } = countRanks(ranks);
    return {
      phase: this.#phase,
      since: this.#since,
      startedAt: this.#startedAt,
      size: this.#size,
      connected: ready + ranks.filter((r) => r.state === "connected").length,
      ready,
      formedUp: this.#startup?.ready ?? 0,
      blocks: this.#resized ? blocksOf(ranks) : this.#startup?.blocks ?? null,
      endpoints: this.#startup?.bound ?? {},
      ranks: ranks.map((r) => ({ ...r })).sort((a, b) => a.rank - b.rank),
      processes: [...this.#processes.values()].map((p) => ({ ...p })),
      strangers: [...this.#strangers.values()],
      failure: this.#failure,
      notes: [...this.#notes.values()],
      seq: this.#seq,
    };
  }

  /** Whether a failure was recorded. */
  get failed(): boolean {
    return this.#failure !== null;
  }

  /** A copy that goes its own way: what a cached moment of a run keeps. */
  clone(): StatusFold {
    const copy = new StatusFold();
    copy.load(JSON.parse(JSON.stringify(this.save())));
    return copy;
  }

  /** Changes when the meaning of {@link save} does. */
  readonly version = 3;

  /** All that was folded, as JSON. */
  save(): Json {
    return {
      configuration: this.#configuration ?? null,
      phase: this.#phase,
      since: this.#since,
      startedAt: this.#startedAt,
      seq: this.#seq,
      ranks: [...this.#ranks.values()],
      processes: [...this.#processes.values()],
      strangers: [...this.#strangers.values()],
      notes: [...this.#notes.values()],
      startup: this.#startup ?? null,
      failure: this.#failure,
      size: this.#size,
      greeted: [...this.#greeted],
      resized: this.#resized,
    } as unknown as Json;
  }

  /** Goes on from what was saved. */
  load(saved: Json): void {
    const s = saved as unknown as Saved;
    this.#configuration = s.configuration ?? undefined;
    this.#phase = s.phase;
    this.#since = s.since;
    this.#startedAt = s.startedAt;
    this.#seq = s.seq;
    this.#ranks = new Map(s.ranks.map((r) => [r.rank, r]));
    this.#processes = new Map(s.processes.map((p) => [p.launch, p]));
    this.#strangers = new Map(s.strangers.map((x) => [x.kind, x]));
    this.#notes = new Map(s.notes.map((n) => [`${n.kind} ${n.what}`, n]));
    this.#startup = s.startup ?? undefined;
    this.#failure = s.failure;
    this.#size = s.size;
    this.#greeted = new Map(s.greeted);
    this.#resized = s.resized;
    this.#adopting = s.ranks.filter((r) => r.state === "adopting").length;
  }

  /** What changes rarely, without copying ranks. */
  brief(): {
    readonly phase: ClusterPhase;
    readonly failure: FailureRecord | null;
    readonly serves: boolean;
  } {
    const serves = this.#phase === "formed" && this.#adopting === 0;
    return { phase: this.#phase, failure: this.#failure, serves };
  }

  process(launch: string): ProcessStatus | undefined {
    return this.#processes.get(launch);
  }

  get configuration(): RunConfiguration | undefined {
    return this.#configuration;
  }

  #configure(configuration: RunConfiguration, at: number): void {
    this.#configuration = configuration;
    this.#startedAt = this.#since = at;
    this.#size = configuration.size;
    for (const { rank, local } of configuration.ranks) {
      const launch = configuration.launches.find((l) => l.ranks.includes(rank))?.id ?? null;
      this.#ranks.set(rank, newRank(rank, local, launch, at));
    }
  }

  #engine(
    instance: string,
    value: unknown,
    before: unknown,
    event: { type: string; [k: string]: unknown },
    at: number,
  ): void {
    const rank = rankOf(instance)!;
    let status = this.#ranks.get(rank);
    if (status === undefined) {
      // A rank that joins: its process was started before it was heard of.
      const process = [...this.#processes.values()]
        .find((p) => p.ranks.includes(rank) && p.exit === null);
      status = newRank(rank, process !== undefined, process?.launch ?? null, at);
      status.pid = process?.pid ?? null;
      status.blocks = this.#greeted.get(rank) ?? null;
      this.#ranks.set(rank, status);
    } else if (value === "joining" && before === undefined) {
      // A rank of this number has left before.
      Object.assign(status, newRank(rank, status.local, null, at));
      this.#greeted.delete(rank);
    } else if (value === "ready" && before === undefined) {
      // It joined, and its process is somebody else's.
      status.blocks = this.#greeted.get(rank) ?? status.blocks;
      this.#greeted.delete(rank);
    }
    if (value === "connected" && event.type === "hello") {
      status.connectedAt = at;
      status.blocks = null;
    }
    if (value === "ready" && before !== "ready" && before !== "adopting") status.readyAt = at;
    if (value !== before) {
      if (value === "adopting") this.#adopting++;
      if (before === "adopting") this.#adopting--;
      status.state = value as RankState;
      status.since = at;
    }
    if (event.type === "ready" && value === "ready") {
      status.blocks = (event["blocks"] as number | null) ?? status.blocks;
    }
    if (event.type === "firstFrame") {
      status.blocks = (event["blocks"] as number | null) ?? status.blocks;
    }
  }

  /** The READY of a scale-up says what others say at the start. */
  #greets({ rank, blocks }: { rank: number; blocks?: number }): void {
    if (blocks === undefined) return;
    this.#greeted.set(rank, blocks);
    const status = this.#ranks.get(rank);
    if (status?.state === "joining") status.blocks = blocks;
  }

  /** A new rank whose operation ended: it did not come in, or its engine is watched from now on. */
  #dismissed(instance: string, at: number): void {
    const status = this.#ranks.get(rankOf(instance)!);
    if (status === undefined) return;
    status.state = "left";
    status.since = at;
  }

  #process(
    instance: string,
    value: unknown,
    context: ProcessContext,
    event: { type: string; [k: string]: unknown },
    at: number,
  ): void {
    const launch = instance.slice(ids.process("").length);
    const state = typeof value === "string" ? value : Object.keys(value as object)[0]!;
    const known = this.#processes.get(launch);
    const status: Mutable<ProcessStatus> = known ?? {
      launch,
      ranks: context.ranks,
      state,
      since: at,
      pid: null,
      exit: null,
      progressAt: null,
      tail: [],
    };
    if (known === undefined) this.#processes.set(launch, status);
    if (status.state !== state) {
      status.state = state;
      status.since = at;
    }
    if (event.type === "spawned") {
      status.pid = event["pid"] as number;
      status.exit = null;
      status.progressAt = null;
      for (const rank of status.ranks) {
        const of = this.#ranks.get(rank);
        if (of === undefined) continue;
        of.pid = status.pid;
        of.launch = launch;
      }
    }
    if (event.type === "progressed") status.progressAt = at;
    if (event.type === "exited") {
      status.exit = { code: context.code, signal: context.signal };
      status.tail = (event["tail"] as string[] | undefined) ?? [];
    }
  }

  #heard(event: { type: string; [k: string]: unknown }): void {
    const rank = rankOf(String(event["from"] ?? ""));
    const status = rank === undefined ? undefined : this.#ranks.get(rank);
    if (status === undefined) return;
    if (event.type === "rankTakenOver") status.takeovers++;
    if (event.type === "rankRefused") {
      status.refused = {
        reason: String(event["reason"]),
        count: (status.refused?.count ?? 0) + 1,
        last: refusalText(event, this.#configuration!.mode),
      };
    }
  }

  #startupMoved(
    value: unknown,
    context: StartupContext,
    step: Omit<StepResult, "system">,
    at: number,
  ): void {
    this.#startup = context;
    const top = typeof value === "string" ? value : Object.keys(value as object)[0]!;
    const phase =
      (top === "starting" ? (value as { starting: string }).starting : top) as ClusterPhase;
    if (phase !== this.#phase) {
      this.#phase = phase;
      this.#since = at;
    }
    if (context.failure !== null && this.#failure === null) {
      this.#failure = this.#record(context.failure, step, at);
    }
  }

  #record(failure: Failure, step: Omit<StepResult, "system">, at: number): FailureRecord {
    return recordOf(failure, {
      status: this.status(),
      configuration: this.#configuration!,
      seq: step.input.seq,
      at,
    });
  }

  #stranger(event: { kind: string; count: number; sample: string }): void {
    const known = this.#strangers.get(event.kind);
    this.#strangers.set(event.kind, {
      kind: event.kind,
      count: (known?.count ?? 0) + event.count,
      sample: event.sample,
    });
  }

  #note({ kind, what }: Note): void {
    const key = `${kind} ${what}`;
    const known = this.#notes.get(key);
    if (known === undefined) this.#notes.set(key, { kind, what, count: 1 });
    else known.count++;
  }
}

const newRank = (
  rank: number,
  local: boolean,
  launch: string | null,
  at: number,
): Mutable<RankStatus> => ({
  rank,
  local,
  state: "awaited",
  since: at,
  connectedAt: null,
  readyAt: null,
  blocks: null,
  launch,
  pid: null,
  takeovers: 0,
  refused: null,
});

/** The blocks of all ranks that are ready, as far as they have told them. */
function blocksOf(ranks: readonly RankStatus[]): ClusterStatus["blocks"] {
  const told = ranks.filter((r) => r.state === "ready").flatMap((r) => r.blocks ?? []);
  if (told.length === 0) return null;
  return {
    sum: told.reduce((sum, n) => sum + n, 0),
    min: Math.min(...told),
    max: Math.max(...told),
  };
}

/** Whether a cluster serves: it has formed up, and after a restart of its coordinator every rank has answered that one. */
export const serves = ({ phase, ranks }: Pick<ClusterStatus, "phase" | "ranks">): boolean =>
  phase === "formed" && !ranks.some((r) => r.state === "adopting");

/** Used by tests and pages that have all steps at hand. */
export function statusOf(steps: Iterable<Omit<StepResult, "system">>): ClusterStatus {
  const fold = new StatusFold();
  for (const step of steps) fold.apply(step);
  return fold.status();
}
