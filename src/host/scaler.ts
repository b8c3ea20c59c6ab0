/**
 * Scaling as programs ask for it: `scale` answers with an operation that can be awaited, observed and aborted. It speaks to
 * the instance `operations` of a host, and keeps nothing of its own: after a restart the same operation is found by its id.
 */
import { randomUUID } from "node:crypto";
import type { Applied, KernelEvent, System } from "../kernel/mod.ts";
import type { AnswerOperation } from "../machines/effects/scaling.ts";
import {
  currentOperation,
  type OperationPhase,
  operationPhase,
  type OperationRecord,
  operationRecord,
  type ScalingStatus,
  scalingStatus,
} from "../view/scaling.ts";

/** What the scaler needs of a host. */
export interface ScalingHost {
  /** Told when no step will come any more. */
  onEnd?(listener: (why: Error) => void): () => void;
  readonly system: System;
  // deno-lint-ignore no-explicit-any
  submit(to: string, event: KernelEvent): Promise<Applied<any, any>>;
  // deno-lint-ignore no-explicit-any
  subscribe(listener: (result: Applied<any, any>) => void): () => void;
}

export interface ScaleOptions {
  /** Ends the operation: ranks that have not voted give up, the others go by the decision. */
  readonly signal?: AbortSignal;
  /** For the whole operation (default 10 minutes). */
  readonly deadlineMs?: number;
  /** The caller's name for it: asking again with it finds it. Drawn by default. */
  readonly operation?: string;
  /** Which ranks are to leave. External load balancing lets the highest go and no others. */
  readonly retire?: readonly number[];
}

/** A scaling request was not accepted: `running` is the operation in its way, if there is one. */
export class ScalingRefused extends Error {
  readonly code: "scaling-refused" | "scaling-conflict";
  readonly running: OperationRecord | null;
  constructor(text: string, running: OperationRecord | null) {
    super(text);
    this.name = "ScalingRefused";
    this.code = running === null ? "scaling-refused" : "scaling-conflict";
    this.running = running;
  }
}

/** An operation did not complete. `record` says why, and what has to be done about it. */
export class ScalingFailed extends Error {
  readonly code: "scaling-failed" | "scaling-in-doubt";
  readonly record: OperationRecord;
  constructor(record: OperationRecord) {
    super(sentenceOf(record));
    this.name = "ScalingFailed";
    this.code = record.phase === "inDoubt" ? "scaling-in-doubt" : "scaling-failed";
    this.record = record;
  }
}

const asSentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

const ranks = (n: number): string => `${n} rank${n === 1 ? "" : "s"}`;

function sentenceOf(record: OperationRecord): string {
  const { firstError, enginesToRestart, target, phase, doubts, waitingFor } = record;
  const who = firstError?.rank == null ? "" : `rank ${firstError.rank}: `;
  const why = firstError === null ? "" : ` ${asSentence(`${who}${firstError.text}`)}`;
  const restart = enginesToRestart.length === 0
    ? ""
    : ` Restart the engines of ranks ${enginesToRestart.join(", ")}.`;
  const waits = waitingFor.length === 0 ? "" : ` It waits for ranks ${waitingFor.join(", ")}.`;
  const silent = record.silentEngines.length === 0 ? "" : ` ${silentText(record.silentEngines)}`;
  const settle = doubts.map((d) => ` Rank ${d.rank} would learn it from ${d.settledBy}.`).join("");
  return phase === "inDoubt"
    ? `Nobody can say whether the cluster serves in ${
      ranks(target)
    }.${why}${waits}${silent}${settle}${restart}`
    : `Scaling to ${ranks(target)} failed.${why}${silent}${restart}`;
}

const silentText = (silent: readonly number[]): string =>
  silent.length === 1
    ? `The engine of rank ${silent[0]} does not answer at all: look at it first.`
    : `The engines of ranks ${silent.join(", ")} do not answer at all: look at them first.`;

/** An operation as its caller holds it. */
export class Operation {
  readonly id: string;
  readonly target: number;
  readonly #scaler: Scaler;

  constructor(scaler: Scaler, id: string, target: number) {
    this.#scaler = scaler;
    this.id = id;
    this.target = target;
  }

  /** How it stands now. */
  record(): OperationRecord {
    return this.#scaler.record(this.id) ?? unaccepted(this.id, this.target, this.#scaler.size);
  }

  /**
   * Resolves when it has completed: every old rank switched, and says so.
   *
   * @throws ScalingFailed when it failed or when nobody can say; in doubt it may still end: await it again. HostError when the coordinator
   *   ended before it did: the operation goes on with the next one on the same journal
   */
  completed(): Promise<OperationRecord> {
    return this.#scaler.until(() => {
      const phase = this.#scaler.phase(this.id);
      if (phase === undefined || phase === "completed") return this.record();
      if (phase === "failed" || phase === "inDoubt") throw new ScalingFailed(this.record());
      return undefined;
    });
  }

  /** Asks it to end. How it ends is what {@link completed} says: after a vote the ranks' decision counts. */
  async abort(text = "aborted by the caller"): Promise<void> {
    await this.#scaler.abort(this.id, text);
  }

  /** Calls `listener` with the record at every change. Returns how to stop. */
  onChange(listener: (record: OperationRecord) => void): () => void {
    let last = "";
    return this.#scaler.onStep(() => {
      const record = this.record();
      const text = JSON.stringify(record);
      if (text === last) return;
      last = text;
      listener(record);
    });
  }
}

const unaccepted = (operation: string, target: number, size: number): OperationRecord => ({
  operation,
  phase: "completed",
  oldSize: size,
  target,
  effectiveSize: size,
  epoch: null,
  participants: [],
  waitingFor: [],
  silentEngines: [],
  firstError: null,
  laterErrors: [],
  doubts: [],
  enginesToRestart: [],
  safeToDelete: [],
});

const DEADLINE_MS = 600_000;

export class Scaler {
  readonly #host: ScalingHost;

  constructor(host: ScalingHost) {
    this.#host = host;
  }

  /** The data-parallel size that serves. */
  get size(): number {
    return this.status().size;
  }

  status(): ScalingStatus {
    const status = scalingStatus(this.#host.system);
    if (status === undefined) throw new ScalingRefused("this coordinator does not scale", null);
    return status;
  }

  /** The operation that runs, or else the last one that ended; null when there was none. Cheap to ask after every step. */
  get current(): string | null {
    return currentOperation(this.#host.system);
  }

  phase(operation: string): OperationPhase | undefined {
    return operationPhase(this.#host.system, operation);
  }

  record(operation: string): OperationRecord | undefined {
    return operationRecord(this.#host.system, operation);
  }

  /** An operation that was asked for before. */
  find(operation: string): Operation | undefined {
    const record = this.record(operation);
    return record === undefined ? undefined : new Operation(this, operation, record.target);
  }

  /**
   * Scales to `target` ranks. The same target as a running operation's is that operation; the size that serves is reached at once.
   *
   * @throws ScalingRefused with the reason, or with the operation that runs
   */
  async scale(target: number, options: ScaleOptions = {}): Promise<Operation> {
    const { signal, deadlineMs = DEADLINE_MS, retire } = options;
    const operation = options.operation ?? randomUUID();
    signal?.throwIfAborted();
    const step = await this.#host.submit("operations", {
      type: "scaleAsked",
      operation,
      target,
      deadlineMs,
      ...(retire === undefined ? {} : { retire }),
      ...(options.operation === undefined ? { unnamed: true } : {}),
    });
    const answer = answerIn(step, operation);
    if (answer === undefined) throw new ScalingRefused("this coordinator does not scale", null);
    if (answer.outcome === "refused") {
      throw new ScalingRefused(answer.text ?? "refused", this.status().running);
    }
    const id = answer.outcome === "joined" ? answer.text! : operation;
    const asked = new Operation(this, id, target);
    if (signal !== undefined) this.#tie(asked, signal);
    return asked;
  }

  /**
   * Starts all engines of the group anew: what is left when an operation ended with engines that cannot abandon a reconfiguration, or
   * when nobody knows in which topology they serve. It ends the requests that they run.
   *
   * Resolves when it has begun, with what is left to do by hand, if anything. @throws ScalingRefused with the reason
   */
  async restartEngines(): Promise<string | null> {
    const request = randomUUID();
    const step = await this.#host.submit("operations", { type: "restartAsked", request });
    const answer = answerIn(step, request);
    if (answer === undefined) throw new ScalingRefused("this coordinator does not scale", null);
    if (answer.outcome === "refused") {
      throw new ScalingRefused(answer.text ?? "refused", this.status().running);
    }
    return answer.text;
  }

  async abort(operation: string, text: string): Promise<void> {
    await this.#host.submit("operations", { type: "abortAsked", operation, text });
  }

  onStep(listener: () => void): () => void {
    return this.#host.subscribe(listener);
  }

  /** Looks after every step until there is an answer. */
  until<T>(look: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const attempt = (): boolean => {
        try {
          const found = look();
          if (found === undefined) return false;
          resolve(found);
        } catch (error) {
          reject(error);
        }
        return true;
      };
      if (attempt()) return;
      const settle = () => {
        stop();
        forget();
      };
      const stop = this.#host.subscribe(() => {
        if (attempt()) settle();
      });
      const forget = this.#host.onEnd?.((why) => {
        if (!attempt()) reject(why);
        queueMicrotask(settle);
      }) ?? (() => {});
    });
  }

  #tie(operation: Operation, signal: AbortSignal): void {
    const abort = () => void operation.abort(String(signal.reason ?? "aborted"));
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    operation.completed().catch(() => {}).finally(() => signal.removeEventListener("abort", abort));
  }
}

function answerIn(step: Applied, operation: string): AnswerOperation | undefined {
  for (const stamped of step.effects) {
    if (stamped.kind !== "message" || stamped.effect.type !== "operation.answer") continue;
    const answer = stamped.effect as AnswerOperation;
    if (answer.operation === operation) return answer;
  }
  return undefined;
}
