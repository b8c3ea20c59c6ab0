/** Checks a model: explores every interleaving within bounds and says what was found, and what that does not say. */
import { Composition } from "./composition.ts";
import { collisions } from "./fingerprint-table.ts";
import { type Growth, growthOf } from "./growth.ts";
import { type Lasso, liveness } from "./liveness.ts";
import type { Bounds, Model } from "./model.ts";
import type { Claim } from "./judge.ts";
import {
  LayoutOutgrown,
  type Progress,
  Search,
  type SearchOptions,
  type StopReason,
} from "./search.ts";
import { notSaid } from "./not-said.ts";
import { Orbits } from "./symmetry.ts";
import { type Trace, traceOf } from "./trace.ts";

export interface CheckOptions {
  /** `breadth-first` (default) gives shortest counterexamples. */
  readonly order?: "breadth-first" | "depth-first";
  /** Bounds beside the model's own. */
  readonly bounds?: Pick<Bounds, "states" | "depth">;
  /** Go on after the first violation, to find the first of every property (default false). */
  readonly all?: boolean;
  /** Whether to use the model's symmetry (default: if it has one and no `eventually` or `leadsTo`). */
  readonly symmetry?: boolean;
  /** Told some times a second. What it returns ends the search there: the verdict is about what was explored until then. */
  readonly onProgress?: (progress: Progress) => void | StopReason;
  /**
   * Keep a fingerprint of 64 bits of each state instead of the state itself (default false). Takes less memory; the verdict says how
   * many states may be expected to have been taken for others. Breadth-first only, without symmetry; `eventually` is not judged.
   */
  readonly fingerprints?: boolean;
  /** Look up every successor, also those that are known to have been seen (default false): a test of the search itself. */
  readonly plain?: boolean;
}

/** A property that does not hold, and a run that shows it. */
export interface Violation {
  readonly property: string;
  readonly kind: "always" | "sometimes" | "eventually" | "leadsTo" | "rest";
  /** The run, shortest when the search was breadth-first. None for a witness that is nowhere. */
  readonly trace?: Trace;
}

/** A reachable state that a `sometimes` asks for, and how it is reached. */
export interface Witness {
  readonly property: string;
  readonly trace: Trace;
}

export interface Verdict {
  readonly model: string;
  /** `ok`: everything was explored and every property holds. `inconclusive`: nothing was found, but a bound was met. */
  readonly outcome: "ok" | "violated" | "inconclusive";
  readonly violations: readonly Violation[];
  readonly witnesses: readonly Witness[];
  /** Properties about which nothing can be said because of a bound. */
  readonly inconclusive: readonly string[];
  readonly properties: number;
  readonly order: "breadth-first" | "depth-first";
  readonly symmetric: boolean;
  readonly bounds: { readonly states?: number; readonly depth?: number; readonly within: boolean };
  readonly stoppedBy: "violation" | "states" | "depth" | "within" | StopReason | undefined;
  /** Distinct states, or orbits of states when symmetry is used. */
  readonly states: number;
  /** Steps taken: states counted once for each way that leads to them. */
  readonly generated: number;
  /** Steps that changed nothing and were left out. */
  readonly stutters: number;
  readonly depth: number;
  /** States that were found, but not left. */
  readonly frontier: number;
  readonly seconds: number;
  /** Bytes of the search's own tables. */
  readonly bytes: number;
  /** Bits of a packed state. */
  readonly bits: number;
  /** Whether states were told apart by fingerprints, so that different ones may have been taken for one. */
  readonly fingerprints: boolean;
  /** How many pairs of different states may be expected to have been taken for one. None where states are stored exactly. */
  readonly collisions: number;
  /** Where guards or actions threw. The chart's state stays then, as in production. */
  readonly threw: readonly Thrown[];
  /** When a bound was met: the parts of the states that took most values. */
  readonly growth: readonly Growth[];
  /** What a reader must not take from this verdict, a sentence each. */
  readonly notSaid: readonly string[];
}

/** A guard or an action that threw. */
export interface Thrown {
  readonly chart: string;
  readonly event: string;
  readonly error: string;
}

/** An `eventually` or `leadsTo` was to be checked with symmetry, which would be unsound. */
export class UnsoundSymmetryError extends Error {
  readonly code = "unsound-symmetry";
}

/** Fingerprints were asked for together with something that needs the states themselves. */
export class UnsuitedFingerprintsError extends Error {
  readonly code = "unsuited-fingerprints";
}

/**
 * Explores a model.
 *
 * @throws UnsoundSymmetryError when symmetry is asked for together with `eventually` or `leadsTo`.
 * @throws UnsuitedFingerprintsError when fingerprints are asked for together with depth-first search or with symmetry.
 * @throws ModelError when the model does something that it does not define.
 */
export function check(model: Model, options: CheckOptions = {}): Verdict {
  return new Checking(model, options).run();
}

/**
 * Explores a model as {@link check} does, and lets other things happen in between: a page stays alive, a signal is heard.
 *
 * @param options.signal ends the search where it is: the verdict is about what was explored until then, and `stoppedBy` says `interrupted`.
 */
export function checkAsync(
  model: Model,
  options: CheckOptions & { readonly signal?: AbortSignal } = {},
): Promise<Verdict> {
  return new Checking(model, options).runAsync(options.signal);
}

/** A check in the making, for those who want to look at the states afterwards. */
export class Checking {
  readonly model: Model;
  readonly space: Composition;
  search: Search;
  readonly options: CheckOptions;
  readonly #begin: () => Search;
  readonly #symmetric: boolean;
  #inTurns = false;
  #signal: AbortSignal | undefined;

  constructor(model: Model, options: CheckOptions = {}) {
    this.model = model;
    this.options = options;
    this.space = new Composition(model);
    const { always = {}, sometimes = {}, eventually = {}, leadsTo = {}, rest } = model.properties;
    const temporal = Object.keys(eventually).length + Object.keys(leadsTo).length > 0;
    const { fingerprints = false } = options;
    this.#symmetric = options.symmetry ??
      (model.symmetric !== undefined && !temporal && !fingerprints);
    if (fingerprints && (this.#symmetric || options.order === "depth-first")) {
      throw new UnsuitedFingerprintsError(
        `model ${model.name}: fingerprints go with breadth-first search without symmetry; leave one of the two out`,
      );
    }
    if (this.#symmetric && temporal) {
      throw new UnsoundSymmetryError(
        `model ${model.name}: eventually and leadsTo cannot be checked with symmetry, because a cycle among orbits need not be a cycle of the model; check them without`,
      );
    }
    if (this.#symmetric && model.symmetric === undefined) {
      throw new UnsoundSymmetryError(`model ${model.name} does not say what is symmetric in it`);
    }
    const claims: Claim[] = [
      ...Object.entries(always).map(([name, holds]): Claim => ({
        ...this.space.predicate(name, holds),
        kind: "always",
      })),
      ...Object.entries(sometimes).map(([name, holds]): Claim => ({
        ...this.space.predicate(name, holds),
        kind: "sometimes",
      })),
    ];
    const { within, ...bounds } = { ...model.bounds, ...options.bounds };
    const searching: { -readonly [K in keyof SearchOptions]: SearchOptions[K] } = { ...bounds };
    if (options.order !== undefined) searching.order = options.order;
    if (options.all !== undefined) searching.all = options.all;
    if (fingerprints) searching.fingerprints = true;
    if (options.plain !== undefined) searching.plain = options.plain;
    searching.onProgress = (progress) => {
      const answer = options.onProgress?.(progress);
      if (this.#signal?.aborted === true) return "interrupted";
      return answer ?? (this.#inTurns ? "pause" : undefined);
    };
    if (within !== undefined) searching.within = this.space.predicate("within", within);
    if (rest !== undefined) searching.rest = this.space.predicate("rest", rest);
    if (this.#symmetric) searching.orbit = new Orbits(this.space, model.symmetric!).isNew;
    this.#begin = () => new Search(this.space, claims, searching);
    this.search = this.#begin();
  }

  run(): Verdict {
    this.#inTurns = false;
    this.#advance();
    return this.#verdict();
  }

  /** As {@link run}, in turns with whatever else happens in this thread, until a signal ends it. */
  async runAsync(signal?: AbortSignal): Promise<Verdict> {
    this.#inTurns = true;
    this.#signal = signal;
    do {
      await new Promise((resume) => setTimeout(resume));
      this.#advance();
    } while (this.search.paused);
    return this.#verdict();
  }

  #verdict(): Verdict {
    const { model, search } = this;
    const { sometimes = {}, eventually = {}, leadsTo = {} } = model.properties;
    const violations: Violation[] = search.violations.map(({ claim, state }) => ({
      property: claim,
      kind: claim === "rest" && model.properties.always?.["rest"] === undefined ? "rest" : "always",
      trace: traceOf(this.space, search.path(state)),
    }));
    const complete = search.frontier === 0 &&
      (violations.length === 0 || this.options.all === true);
    const inconclusive: string[] = [];
    const witnessed = new Set(search.witnesses.map((w) => w.claim));
    for (const name of Object.keys(sometimes)) {
      if (witnessed.has(name)) continue;
      if (complete) violations.push({ property: name, kind: "sometimes" });
      else inconclusive.push(name);
    }
    const temporal = [
      ...Object.entries(eventually).map(([name, goal]) => ({
        name,
        kind: "eventually" as const,
        from: undefined,
        goal,
      })),
      ...Object.entries(leadsTo).map(([name, [from, goal]]) => ({
        name,
        kind: "leadsTo" as const,
        from,
        goal,
      })),
    ];
    const ended = search.stoppedBy === "interrupted" || search.stoppedBy === "memory";
    const judged = this.options.fingerprints !== true && !ended &&
      (this.options.all === true || violations.length === 0);
    if (judged) {
      for (const { name, kind, from, goal } of temporal) {
        const lasso = liveness(
          search,
          from === undefined ? undefined : this.space.predicate(name, from),
          this.space.predicate(name, goal),
        );
        if (lasso !== undefined) {
          violations.push({ property: name, kind, trace: this.#lassoTrace(lasso) });
        } else if (!complete) inconclusive.push(name);
      }
    } else inconclusive.push(...temporal.map((t) => t.name));
    const { within, ...bounds } = { ...model.bounds, ...this.options.bounds };
    const verdict: Omit<Verdict, "notSaid"> = {
      model: model.name,
      outcome: violations.length > 0
        ? "violated"
        : search.frontier > 0 || inconclusive.length > 0
        ? "inconclusive"
        : "ok",
      violations,
      witnesses: search.witnesses.map(({ claim, state }) => ({
        property: claim,
        trace: traceOf(this.space, search.path(state)),
      })),
      inconclusive,
      properties: Object.keys(model.properties.always ?? {}).length +
        Object.keys(sometimes).length +
        temporal.length + (model.properties.rest === undefined ? 0 : 1),
      order: this.options.order ?? "breadth-first",
      symmetric: this.#symmetric,
      bounds: { ...bounds, within: within !== undefined },
      stoppedBy: search.stoppedBy ?? (complete ? undefined : "violation"),
      states: search.table.count,
      generated: search.generated,
      stutters: search.stutters,
      depth: search.depth,
      frontier: search.frontier,
      seconds: search.seconds,
      bytes: search.bytes,
      bits: 32 * search.expander.layout.words,
      fingerprints: this.options.fingerprints === true,
      threw: thrownIn(this.space),
      growth: ["interrupted", "memory", "states"].includes(search.stoppedBy ?? "")
        ? growthOf(this.space)
        : [],
      collisions: this.options.fingerprints === true ? collisions(search.table.count) : 0,
    };
    return { ...verdict, notSaid: notSaid(verdict) };
  }

  /** What was learned of the model stays when a search has to begin again, so that it does so a few times, early. */
  #advance(): void {
    for (;;) {
      try {
        this.search.run();
        return;
      } catch (error) {
        if (!(error instanceof LayoutOutgrown)) throw error;
        this.search = this.#begin();
      }
    }
  }

  #lassoTrace({ choices, loop }: Lasso): Trace {
    return traceOf(this.space, choices, loop);
  }
}

/** Each error of each chart once for each type of event. */
function thrownIn({ behaviours }: Composition): Thrown[] {
  const found = new Map<string, Thrown>();
  for (const { id, log } of behaviours) {
    for (const { event, step } of log) {
      if (step.kind !== "failed") continue;
      const thrown = { chart: id, event: event.type, error: step.error ?? "" };
      found.set(JSON.stringify(thrown), thrown);
    }
  }
  return [...found.values()];
}
