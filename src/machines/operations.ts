/**
 * Where scaling is asked for: one operation at a time. The same target again is the same operation; another one is refused with
 * the one that runs. How the last ones ended can be asked for by their ids.
 */
import { assign, setup } from "xstate";
import { type Chart, effect, type Output, start, stop, tell } from "../kernel/mod.ts";
import type { AnswerOperation } from "./effects/scaling.ts";
import type { EngineInput } from "./engine.ts";
import type { GroupCallInput, GroupCallOutcome } from "./group-call.ts";
import type { JoinerTemplate, OperationInput, OperationOutput } from "./operation.ts";
import { planRegroup, type RegroupPlan, type RegroupSettings } from "./regroup.ts";
import type { ScalingLimits } from "./scaling.ts";
import { checkRetiring, checkTarget, type Expertise } from "./scaling/validation.ts";
import type { TopologyInput } from "./topology.ts";

export interface OperationsInput extends Expertise {
  readonly size: number;
  readonly settleMs: number;
  /** How front-ends of new ranks begin, where this coordinator hosts them; null where others do. */
  readonly newcomer: Newcomer | null;
  readonly joiner: JoinerTemplate | null;
  readonly watchesEngines: boolean;
  /** Engines are asked for a sign of life when an operation does not end. */
  readonly asksEngines?: boolean;
  /** The ranks whose front-ends are here; all by default. Then an operation is this front-end's part of one. */
  readonly fronts?: readonly number[];
  /** Why nothing can be asked for yet, where there is a start-up; null where the ranks serve already. */
  readonly broken?: string | null;
  /** How all engines are started anew, where a start-up can do that. */
  readonly regroup?: RegroupSettings;
}

export interface Newcomer {
  /** Null: their front-ends are other processes, and what is known here is that they joined. */
  readonly limits: ScalingLimits | null;
  /** What is known of their engines, where these are watched. */
  readonly engine:
    | Pick<EngineInput, "mode" | "strict" | "heartbeatWithinMs" | "callable">
    | null;
}

export interface OperationsContext extends OperationsInput {
  readonly running: { readonly operation: string; readonly target: number } | null;
  /** Ranks whose engines gave no sign of life when the running operation did not end. */
  readonly silent: readonly number[];
  /** How operations ended, the newest last. */
  readonly ended: readonly EndedOperation[];
  /** Why the cluster does not serve; null while it does. */
  readonly broken: string | null;
  /** Engines that cannot scale before they are restarted, and why they are not; empty where nobody watches them. */
  readonly unusable: readonly number[];
  readonly held: string | null;
  /** How often all engines were started anew. */
  readonly regrouped: number;
}

/** How an operation ended, and whose engines had not answered while it was looked for its end. */
export interface EndedOperation extends OperationOutput {
  readonly silent: readonly number[];
}

export type OperationsEvent =
  | {
    type: "scaleAsked";
    /** Fresh for each caller; an id that was used is the operation of then. */
    operation: string;
    target: number;
    deadlineMs: number;
    /** Ranks that the caller wants to leave. */
    retire?: readonly number[];
    /** The name was drawn here, so that other front-ends do not know it. */
    unnamed?: boolean;
  }
  | { type: "abortAsked"; operation: string; text: string }
  /** Of the start-up. */
  | { type: "clusterServing"; redundant?: number }
  | { type: "clusterBroken"; text: string }
  /** An operator wants all engines started anew; `request` names the answer. */
  | { type: "restartAsked"; request: string }
  /** It was told to commit and has not ended: who it waits for. */
  | { type: "operationSettling"; from: string; waiting: readonly number[] }
  | { type: "operationInDoubt"; from: string; waiting: readonly number[] }
  | { type: "ended"; chart: string; from: string; output: OperationOutput | GroupCallOutcome };

/** How many ended operations are remembered. */
const REMEMBERED = 16;

type Args = { context: OperationsContext; event: OperationsEvent };
type Asked = OperationsEvent & { type: "scaleAsked" };
type Ended = OperationsEvent & { type: "ended" };

const instanceOf = (operation: string): string => `operation/${operation}`;

const refusalOf = (context: OperationsContext, { target, retire }: Asked): string | null => {
  if (context.broken !== null) return `the cluster does not serve: ${context.broken}`;
  if (context.unusable.length > 0) return unusableText(context);
  const check = checkTarget(context, context.size, target);
  if (!check.ok) return check.text;
  if (retire === undefined) return null;
  const leaving = checkRetiring(context.size, target, retire);
  return leaving.ok ? null : leaving.text;
};

function unusableText({ unusable, held }: OperationsContext): string {
  const [engines, they] = unusable.length === 1
    ? [`the engine of rank ${unusable[0]} holds`, "it"]
    : [`the engines of ranks ${unusable.join(", ")} hold`, "they"];
  return `${engines} a reconfiguration that ${they} cannot abandon: all engines have to start anew first` +
    (held === null ? "" : ` (not done by itself: ${held})`);
}

/** How all engines would start anew now. */
function regroupOf(context: OperationsContext): RegroupPlan {
  const { regroup, size, joiner, regrouped: times, broken, running } = context;
  if (regroup === undefined) return { ok: false, why: "engines are none of its concern" };
  if (broken !== null) return { ok: false, why: broken };
  if (running !== null) return { ok: false, why: `operation ${running.operation} is running` };
  return planRegroup(regroup, { size, joiner, times });
}

/** Why engines that the operation left unusable stay as they are; null where they are restarted. */
function holding(context: OperationsContext, event: OperationsEvent): string | null {
  const { regroup } = context;
  if (regroup === undefined) return null;
  const plan = regroupOf({ ...context, size: sizeAfter(context, event), running: null });
  if (!regroup.whole && !plan.ok) return plan.why;
  if (regroup.policy === "hold") return "the policy is to hold them";
  if (!plan.ok) return plan.why;
  return plan.byHand.length === 0
    ? null
    : `ranks ${plan.byHand.join(", ")} were started by somebody else`;
}

const outputOf = (event: OperationsEvent): OperationOutput =>
  (event as Ended).output as OperationOutput;

const earlier = (context: OperationsContext, event: OperationsEvent): OperationOutput | undefined =>
  context.ended.find((e) => e.operation === (event as Asked).operation);

/** Engines of the topology that serves now which cannot scale again as they are. */
function unusableAfter(context: OperationsContext, event: OperationsEvent): readonly number[] {
  if (context.regroup === undefined) return [];
  const size = sizeAfter(context, event);
  return outputOf(event).enginesToRestart.filter((rank) => rank < size);
}

const sizeAfter = (context: OperationsContext, event: OperationsEvent): number =>
  outputOf(event).effectiveSize ?? context.size;

const answer = (
  operation: string,
  outcome: AnswerOperation["outcome"],
  text: string | null,
): Output => effect<AnswerOperation>({ type: "operation.answer", operation, outcome, text });

const endOf = ({ operation, outcome, firstError }: OperationOutput): Output =>
  answer(operation, outcome, firstError?.text ?? null);

const groupOf = (operation: string): string => `group/signs-${operation}`;

const between = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);

export const operations: Chart<OperationsContext, OperationsEvent> = setup({
  types: {} as { context: OperationsContext; events: OperationsEvent; input: OperationsInput },
  guards: {
    isKnown: ({ context, event }: Args) => earlier(context, event) !== undefined,
    isSize: ({ context, event }: Args) => (event as Asked).target === context.size,
    isPossible: ({ context, event }: Args) => refusalOf(context, event as Asked) === null,
    isSameTarget: ({ context, event }: Args) => (event as Asked).target === context.running?.target,
    isRunning: ({ context, event }: Args) =>
      (event as Asked).operation === context.running?.operation,
    mayRegroup: ({ context }: Args) => regroupOf(context).ok,
    restarts: ({ context, event }: Args) =>
      (event as Ended).chart === "operation" &&
      unusableAfter(context, event).length > 0 && holding(context, event) === null,
    ofOperation: ({ event }: Args) => (event as Ended).chart === "operation",
    ofSigns: ({ context, event }: Args) =>
      context.running !== null && (event as Ended).from === groupOf(context.running.operation),
  },
  actions: {
    startOperation: ({ context, event }: Args) => {
      const { operation, target, deadlineMs, unnamed } = event as Asked;
      const { size: oldSize, settleMs, joiner, watchesEngines, fronts } = context;
      const input: OperationInput = {
        operation,
        oldSize,
        target,
        deadlineMs,
        settleMs,
        joiner,
        watchesEngines,
        ...(fronts === undefined ? {} : { fronts, shared: unnamed !== true }),
      };
      return start(instanceOf(operation), "operation", input as never);
    },
    answerAccepted: ({ event }: Args) => answer((event as Asked).operation, "accepted", null),
    answerJoined: ({ context, event }: Args) =>
      answer((event as Asked).operation, "joined", context.running!.operation),
    answerSame: ({ event }: Args) => answer((event as Asked).operation, "completed", null),
    answerRefused: ({ context, event }: Args) =>
      answer((event as Asked).operation, "refused", refusalOf(context, event as Asked)),
    answerRival: ({ context, event }: Args) => {
      const { operation, target } = context.running!;
      return answer(
        (event as Asked).operation,
        "refused",
        `operation ${operation} to data-parallel size ${target} is running`,
      );
    },
    answerKnown: ({ context, event }: Args) => endOf(earlier(context, event)!),
    answerInDoubt: ({ context, event }: Args) =>
      answer(
        context.running!.operation,
        "inDoubt",
        `waiting for ranks ${
          (event as OperationsEvent & { type: "operationInDoubt" }).waiting.join(", ")
        }`,
      ),
    answerEnd: ({ event }: Args) => endOf(outputOf(event)),
    /** Whose engine stands still can only be known by asking all of them: pausing and switching are collective. */
    askForSigns: ({ context, event }: Args): Output[] => {
      if (context.asksEngines !== true) return [];
      const { waiting } = event as OperationsEvent & { type: "operationSettling" };
      const id = `signs-${context.running!.operation}`;
      const input: GroupCallInput = {
        id,
        ranks: waiting,
        request: { method: "is_scheduler_paused" },
        deadlineMs: Math.ceil(context.settleMs / 2),
      };
      return [start(groupOf(context.running!.operation), "groupCall", input as never)];
    },
    noteSigns: assign({
      silent: ({ event }: Args) =>
        ((event as Ended).output as GroupCallOutcome).unanswered.filter((u) => u.late)
          .map((u) => u.rank).sort((a, b) => a - b),
    }),
    passAbort: ({ context, event }: Args) =>
      tell(instanceOf(context.running!.operation), {
        type: "abort",
        text: (event as OperationsEvent & { type: "abortAsked" }).text,
      }),
    /** Front-ends of new ranks begin in the topology that they joined; those of ranks that left are gone. */
    renewFrontEnds: ({ context, event }: Args): Output[] => {
      const { topology, target } = outputOf(event);
      if (context.newcomer === null || topology === null) return [];
      const { limits } = context.newcomer;
      const { bootstrap, epoch, redundancy } = topology;
      const input = (limits: ScalingLimits): TopologyInput => ({
        experts: context.experts,
        redundant: redundancy,
        maxSize: context.maxSize,
        size: target,
        leader: false,
        masterIp: bootstrap.masterIp,
        control: { host: bootstrap.masterIp, port: bootstrap.storePort },
        limits,
        handshake: null,
        epoch,
      });
      const engine: EngineInput | null = context.newcomer.engine === null ? null : {
        ...context.newcomer.engine,
        local: limits !== null,
        headless: false,
        launched: context.joiner !== null,
        connectMs: 0,
        readyMs: 0,
        heartbeatEveryMs: 0,
        joined: true,
        ...(limits === null ? {} : { scales: true }),
      };
      return [
        ...between(context.size, target).flatMap((rank) => [
          ...(limits === null
            ? []
            : [start(`rank/${rank}/topology`, "topology", input(limits) as never)]),
          // In place of the joiner that it was.
          ...(engine === null ? [] : [
            stop(`rank/${rank}/engine`),
            start(`rank/${rank}/engine`, "engine", engine as never),
          ]),
        ]),
        ...between(target, context.size).flatMap((rank) => [
          ...(engine === null ? [] : [tell(`rank/${rank}/engine`, { type: "dismissed" })]),
          ...(limits === null ? [] : [stop(`rank/${rank}/topology`)]),
        ]),
      ];
    },
    regroup: ({ context }: Args): Output[] => {
      const plan = regroupOf(context);
      if (!plan.ok) return [];
      return [tell("startup", { type: "regroup", size: context.size, next: plan.next as never })];
    },
    answerRestart: ({ context, event }: Args) => {
      const { request } = event as OperationsEvent & { type: "restartAsked" };
      const plan = regroupOf(context);
      if (!plan.ok) return answer(request, "refused", plan.why);
      const { byHand } = plan;
      return answer(
        request,
        "accepted",
        byHand.length === 0
          ? null
          : `start ranks ${byHand.join(", ")} anew yourself: nobody here started them`,
      );
    },
    noteRegroup: assign({ regrouped: ({ context }: Args) => context.regrouped + 1 }),
    noteServing: assign(({ context, event }: Args) => ({
      broken: null,
      unusable: [],
      held: null,
      redundant: (event as OperationsEvent & { type: "clusterServing" }).redundant ??
        context.redundant,
    })),
    noteBroken: assign({
      broken: ({ event }: Args) => (event as OperationsEvent & { type: "clusterBroken" }).text,
    }),
    noteRunning: assign({
      silent: [],
      running: ({ event }: Args) => {
        const { operation, target } = event as Asked;
        return { operation, target };
      },
    }),
    noteEnd: assign(({ context, event }: Args) => {
      const output = outputOf(event);
      const unusable = unusableAfter(context, event);
      return {
        running: null,
        size: sizeAfter(context, event),
        redundant: output.topology?.redundancy ?? context.redundant,
        unusable,
        held: unusable.length === 0 ? null : holding(context, event),
        ended: [...context.ended, { ...output, silent: context.silent }].slice(-REMEMBERED),
      };
    }),
  },
}).createMachine({
  id: "operations",
  context: ({ input }: { input: OperationsInput }) => ({
    ...input,
    running: null,
    silent: [],
    ended: [],
    broken: input.broken ?? null,
    unusable: [],
    held: null,
    regrouped: 0,
  }),
  initial: "idle",
  on: {
    clusterServing: { actions: "noteServing" },
    clusterBroken: { actions: "noteBroken" },
    restartAsked: { actions: "answerRestart" },
  },
  states: {
    idle: {
      on: {
        scaleAsked: [
          { guard: "isKnown", actions: "answerKnown" },
          { guard: "isSize", actions: "answerSame" },
          {
            guard: "isPossible",
            target: "running",
            actions: ["noteRunning", "answerAccepted", "startOperation"],
          },
          { actions: "answerRefused" },
        ],
        abortAsked: {},
        ended: {},
        restartAsked: [
          { guard: "mayRegroup", actions: ["answerRestart", "regroup", "noteRegroup"] },
          { actions: "answerRestart" },
        ],
      },
    },
    running: {
      on: {
        scaleAsked: [
          { guard: "isKnown", actions: "answerKnown" },
          { guard: "isSameTarget", actions: "answerJoined" },
          { actions: "answerRival" },
        ],
        abortAsked: [{ guard: "isRunning", actions: "passAbort" }, {}],
        operationSettling: { actions: "askForSigns" },
        operationInDoubt: { actions: "answerInDoubt" },
        ended: [{ guard: "ofSigns", actions: "noteSigns" }, {
          guard: "restarts",
          target: "idle",
          actions: ["answerEnd", "renewFrontEnds", "noteEnd", "regroup", "noteRegroup"],
        }, {
          guard: "ofOperation",
          target: "idle",
          actions: ["answerEnd", "renewFrontEnds", "noteEnd"],
        }, {}],
      },
    },
  },
});
