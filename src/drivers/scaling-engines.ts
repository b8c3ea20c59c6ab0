/** What scaling asks of engines and of this machine: utilities with a deadline, notifications, epochs and ports. */
import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers";
import { rankOf } from "../kernel/mod.ts";
import type {
  AnswerOperation,
  CallEngine,
  DrawEpoch,
  EngineRequest,
} from "../machines/effects/scaling.ts";
import { requestOf } from "../machines/scaling/store-view.ts";
import {
  type Json,
  KEEP_CURRENT_RANK,
  SHUTDOWN_CURRENT_RANK,
  utilities,
  type Utility,
} from "../protocol/mod.ts";
import type { Driver, DriverPort, Order } from "./driver.ts";
import { freePorts } from "./ports.ts";

/** How an engine answered a utility. */
export type EngineAnswer =
  | { readonly ok: true; readonly value: Json }
  /** `unasked`: it is not the engine that says so, there is no way to it. */
  | { readonly ok: false; readonly failure: string; readonly unasked?: true };

/** Whoever can speak to engines: the engine bus, or engines in memory. */
export interface EngineCaller {
  /** Resolves with the engine's answer, never when there is none; `call` is an effect id, the same in every life. */
  call(rank: number, utility: Utility, call: string): Promise<EngineAnswer>;
  /** Nobody waits for this call any more. Answers why it has not left; null when it has. */
  forget?(rank: number, call: string): Promise<string | null>;
  /** Scaling notifications of every rank, from now on. */
  onNotification(
    listener: (rank: number, notification: "RECONFIGURE_FINISHED" | "SHUTDOWN_COMPLETE") => void,
  ): void;
}

/** A request as the utility that engines know. */
export function utilityOf(request: EngineRequest): Utility {
  switch (request.method) {
    case "reinitialize_distributed":
      return utilities.reinitializeDistributed(
        requestOf(request.bootstrap, request.leave ? SHUTDOWN_CURRENT_RANK : KEEP_CURRENT_RANK),
      );
    case "pause_scheduler":
      return utilities.pauseScheduler(request.mode);
    case "is_scheduler_paused":
      return utilities.isSchedulerPaused();
    case "commit_prepared_elastic_ep":
      return utilities.commitPreparedElasticEp();
    case "resume_scheduler":
      return utilities.resumeScheduler();
  }
}

/** Carries utility calls out on whatever speaks to engines. */
export class EngineCallDriver implements Driver<CallEngine, never> {
  readonly name = "engine-calls";
  readonly effects = ["engine.call"] as const;
  readonly resources = [] as const;
  readonly #engines: EngineCaller;
  #port: DriverPort | undefined;
  #deadlines = new Set<ReturnType<typeof setTimeout>>();

  constructor(engines: EngineCaller) {
    this.#engines = engines;
  }

  start(port: DriverPort): void {
    this.#port = port;
    this.#engines.onNotification((rank, notification) => {
      const event = {
        type: "notified",
        notification: notification === "RECONFIGURE_FINISHED"
          ? "reconfigureFinished"
          : "shutdownComplete",
      };
      // An engine replies before it notifies, and which operation a notification is about follows from that order:
      // the reply, which comes as a promise, has its turn first.
      setImmediate(() => port.input(`rank/${rank}/topology`, event));
    });
  }

  channel({ from }: Order<CallEngine>): string {
    return `engine ${rankOf(from)}`;
  }

  perform({ id, from, effect }: Order<CallEngine>): void {
    const { method } = effect.request;
    let open = true;
    const conclude = (event: { type: string; [key: string]: unknown }) => {
      if (!open) return;
      open = false;
      clearTimeout(deadline);
      this.#deadlines.delete(deadline);
      this.#port!.outcome(id, from, event);
    };
    const rank = rankOf(from) ?? 0;
    const deadline = setTimeout(() => {
      void (this.#engines.forget?.(rank, id) ?? Promise.resolve(null)).then((why) =>
        conclude({ type: "utilityLate", method, why })
      );
    }, effect.deadlineMs);
    this.#deadlines.add(deadline);
    this.#engines.call(rank, utilityOf(effect.request), id).then(
      (answer) => {
        if (answer.ok) conclude({ type: "utilityReplied", method, value: answer.value });
        else {
          const { failure, unasked } = answer;
          const event = { type: "utilityFailed", method, failure };
          conclude(unasked === true ? { ...event, unasked } : event);
        }
      },
      (error: Error) => conclude({ type: "utilityFailed", method, failure: error.message }),
    );
  }

  /** A utility of an earlier life: the machine knows what to ask the engine or the store. */
  ask({ id, from, effect }: Order<CallEngine>): void {
    this.#port!.outcome(id, from, { type: "utilityUnknown", method: effect.request.method });
  }

  close(): Promise<void> {
    for (const deadline of this.#deadlines) clearTimeout(deadline);
    this.#deadlines.clear();
    return Promise.resolve();
  }
}

/** Draws epochs and free ports, and passes answers on. */
export class ScalingDrawDriver implements Driver<DrawEpoch | AnswerOperation, never> {
  readonly name = "scaling-draw";
  readonly effects = ["scaling.draw", "operation.answer"] as const;
  readonly resources = [] as const;
  readonly #answered: (answer: AnswerOperation) => void;
  #port: DriverPort | undefined;

  /** @param answered told every answer once it is safely in the journal. */
  constructor(answered: (answer: AnswerOperation) => void = () => {}) {
    this.#answered = answered;
  }

  start(port: DriverPort): void {
    this.#port = port;
  }

  perform({ id, from, effect }: Order<DrawEpoch | AnswerOperation>): void {
    if (effect.type === "operation.answer") return this.#answered(effect);
    void freePorts(5, effect.host).then((ports) =>
      this.#port!.outcome(id, from, {
        type: "drawn",
        epoch: randomUUID().replaceAll("-", ""),
        // As the original: the last one is the master port.
        masterPort: ports[4]!,
        masterPorts: ports.slice(0, 4),
      })
    );
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
