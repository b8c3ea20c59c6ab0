/** Scaling for people: how an operation stands, who is waited for, what its end means. Read from the system's own state. */
import { rankOf, type System } from "../kernel/mod.ts";
import type { OperationContext, RankFailure } from "../machines/operation.ts";
import type { EndedOperation } from "../machines/operations.ts";
import type { ScalingCause } from "../machines/scaling.ts";

export type OperationPhase =
  | "preparing"
  | "committing"
  | "aborting"
  | "settling"
  | "inDoubt"
  | "completed"
  | "failed";

/** One rank's part, while it runs. */
export interface ParticipantStatus {
  readonly rank: number;
  /** The state of its machine, from the outside in: `committed.settling.switching.pausing.asked`. */
  readonly state: string;
  /** It has voted and does not know the outcome. */
  readonly inDoubt: boolean;
  readonly epoch: string | null;
  readonly cause: ScalingCause | null;
}

/** The record of an operation, at any time. */
export interface OperationRecord {
  readonly operation: string;
  readonly phase: OperationPhase;
  readonly oldSize: number | null;
  readonly target: number;
  /** In how many ranks the cluster serves now; null when nobody can say. */
  readonly effectiveSize: number | null;
  readonly epoch: string | null;
  readonly participants: readonly ParticipantStatus[];
  readonly waitingFor: readonly number[];
  /** Of those, whose engines gave no sign of life when they were asked: the others may only be waiting for them. */
  readonly silentEngines: readonly number[];
  readonly firstError: RankFailure | null;
  /** Errors that came after the first and follow from it. */
  readonly laterErrors: readonly RankFailure[];
  /** Ranks that cannot say how it ends, and what would settle it. */
  readonly doubts: readonly { readonly rank: number; readonly settledBy: string }[];
  readonly enginesToRestart: readonly number[];
  /** Ranks that left the group and can be deleted. */
  readonly safeToDelete: readonly number[];
}

export interface ScalingStatus {
  readonly size: number;
  /** The ranks whose front-ends are here, where there are others; null where all are. */
  readonly fronts: readonly number[] | null;
  /** All of them have left the group. */
  readonly retired: boolean;
  readonly running: OperationRecord | null;
  readonly last: OperationRecord | null;
  /** Why the cluster does not serve; null while it does. */
  readonly broken: string | null;
  /** Engines that have to start anew, with all others, before the cluster scales again. */
  readonly unusable: readonly number[];
  /** Why they are not started anew by themselves. */
  readonly held: string | null;
}

/** The operation that runs, or else the last one that ended; null when there was none. */
export function currentOperation(system: System): string | null {
  const context = operationsOf(system);
  return context?.running?.operation ?? context?.ended.at(-1)?.operation ?? null;
}

/** In which phase an operation is, which is cheap to ask after every step. */
export function operationPhase(system: System, operation: string): OperationPhase | undefined {
  const running = system.instances.get(`operation/${operation}`);
  if (running !== undefined) return phaseOf(running.state.snapshot.value);
  return operationsOf(system)?.ended.find((e) => e.operation === operation)?.outcome;
}

/** How an operation stands; undefined when it is unknown (never asked for, or long ago). */
export function operationRecord(system: System, operation: string): OperationRecord | undefined {
  const running = system.instances.get(`operation/${operation}`);
  if (running !== undefined) {
    const { value, context } = running.state.snapshot as unknown as {
      value: unknown;
      context: OperationContext;
    };
    const participants = participantsOf(system, operation);
    return {
      operation,
      phase: phaseOf(value),
      oldSize: context.oldSize,
      target: context.target,
      effectiveSize: context.told ? null : context.oldSize,
      epoch: participants.find((p) => p.epoch !== null)?.epoch ?? null,
      participants,
      waitingFor: context.waiting,
      silentEngines: (operationsOf(system)?.silent ?? [])
        .filter((rank) => context.waiting.includes(rank)),
      firstError: context.firstError,
      laterErrors: context.laterErrors,
      doubts: context.doubts,
      enginesToRestart: context.enginesToRestart,
      safeToDelete: [],
    };
  }
  const ended = operationsOf(system)?.ended.find((e) => e.operation === operation);
  return ended === undefined ? undefined : endedRecord(ended);
}

/** The size, the operation that runs, and the last one that ended. */
export function scalingStatus(system: System): ScalingStatus | undefined {
  const context = operationsOf(system);
  if (context === undefined) return undefined;
  const { running, ended, size, broken, unusable, held, fronts = null } = context;
  const last = ended.at(-1);
  return {
    size,
    fronts,
    retired: fronts !== null && fronts.every((rank) => rank >= size),
    running: running === null ? null : operationRecord(system, running.operation) ?? null,
    last: last === undefined ? null : endedRecord(last),
    broken,
    unusable,
    held,
  };
}

interface OperationsView {
  readonly size: number;
  readonly fronts?: readonly number[];
  readonly running: { readonly operation: string } | null;
  readonly silent: readonly number[];
  readonly ended: readonly EndedOperation[];
  readonly broken: string | null;
  readonly unusable: readonly number[];
  readonly held: string | null;
}

const operationsOf = (system: System): OperationsView | undefined =>
  system.instances.get("operations")?.state.snapshot.context as OperationsView | undefined;

function participantsOf(system: System, operation: string): ParticipantStatus[] {
  const list: ParticipantStatus[] = [];
  for (const { id, chart, state } of system.instances) {
    const rank = rankOf(id);
    if (chart !== "scaling" || rank === undefined || !id.endsWith(`/${operation}`)) continue;
    const { epoch, cause } = state.snapshot.context as {
      epoch: string;
      cause: ScalingCause | null;
    };
    list.push({
      rank,
      state: pathOf(state.snapshot.value),
      inDoubt: state.snapshot.hasTag("inDoubt"),
      epoch: epoch === "" ? null : epoch,
      cause,
    });
  }
  return list.sort((a, b) => a.rank - b.rank);
}

const endedRecord = (output: EndedOperation): OperationRecord => ({
  operation: output.operation,
  phase: output.outcome,
  oldSize: null,
  target: output.target,
  effectiveSize: output.effectiveSize,
  epoch: null,
  participants: [],
  waitingFor: output.unanswered,
  silentEngines: output.silent,
  firstError: output.firstError,
  laterErrors: output.laterErrors,
  doubts: [],
  enginesToRestart: output.enginesToRestart,
  safeToDelete: output.safeToDelete,
});

function phaseOf(value: unknown): OperationPhase {
  const path = pathOf(value).split(".");
  return (path[0] === "running" ? path[1] : path[0]) as OperationPhase;
}

function pathOf(value: unknown): string {
  if (typeof value === "string") return value;
  return Object.entries(value as Record<string, unknown>)
    .map(([key, inner]) => `${key}.${pathOf(inner)}`).join(" and ");
}
