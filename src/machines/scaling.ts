/**
 * One rank's part in one scaling operation (wire spec, 7.5 and 7.7), wire-compatible with the original's and safe where every
 * old rank is Muster's.
 *
 * preparing --commit--> voted --decided--> committed --> completed
 *
 * - *preparing*: rank 0 publishes an epoch, the others join it, engines get ready. Any rank may still give up alone: it publishes
 *   the error, and nobody can commit without its vote.
 * - *voted*: its `commit_ready` is handed to the store, so the rank is in doubt. It no longer gives up by itself; it proposes an outcome
 *   under the write-once key `<epoch>/decision` and goes by what the key holds. Where some old rank may not go by the key, it proposes to
 *   abort only when an error is published already.
 * - *committed*: pause, switch, record the finish. Rank 0 alone may still call it failed, until it hands `completed` to the store. An
 *   engine that cannot finish has its rank publish the error: without its finish key nothing is ever completed.
 * - A rank takes the new topology over when it knows that the operation completed, not when it has finished itself.
 */
import { setup } from "xstate";
import type { Chart } from "../kernel/mod.ts";
import { engineActions, restarts, storeActions, tellActions } from "./scaling/actions.ts";
import { scalingAssigns, scalingGuards } from "./scaling/assigns.ts";
import { committed } from "./scaling/committed.ts";
import { givingUp } from "./scaling/giving-up.ts";
import { preparing } from "./scaling/preparing.ts";
import { voted } from "./scaling/voted.ts";
import type {
  ScalingContext,
  ScalingEvent,
  ScalingInput,
  ScalingOutput,
} from "./scaling/context.ts";

export type * from "./scaling/context.ts";
export { DEFAULT_SCALING_LIMITS } from "./scaling/context.ts";

export const scaling: Chart<ScalingContext, ScalingEvent> = setup({
  types: {} as {
    context: ScalingContext;
    events: ScalingEvent;
    input: ScalingInput;
    output: ScalingOutput;
  },
  delays: {
    prepareDeadline: ({ context }: { context: ScalingContext }) => context.limits.prepareMs,
    voteDeadline: ({ context }: { context: ScalingContext }) => context.limits.voteMs,
    outcomeDeadline: ({ context }: { context: ScalingContext }) => context.limits.outcomeMs,
    retry: ({ context }: { context: ScalingContext }) => context.limits.retryMs,
  },
  guards: scalingGuards,
  actions: { ...storeActions, ...engineActions, ...tellActions, ...scalingAssigns },
}).createMachine({
  id: "scaling",
  context: ({ input }: { input: ScalingInput }) => ({
    ...input,
    epoch: "",
    bootstrap: null,
    earlier: "",
    joined: false,
    engineTouched: false,
    everyoneDecides: false,
    objection: null,
    error: null,
    requested: false,
    attempts: 0,
    engineToRestart: false,
    outcome: "completed",
    cause: null,
  }),
  initial: "preparing",
  output: ({ context }: { context: ScalingContext }): ScalingOutput => ({
    outcome: context.outcome,
    operation: context.operation,
    epoch: context.epoch,
    bootstrap: context.bootstrap,
    redundancy: context.redundancy,
    remains: context.remains,
    engineToRestart: restarts(context),
    cause: context.cause,
  }),
  states: {
    preparing,
    voted,
    committed,
    givingUp,
    completed: { type: "final", entry: ["stopGreeting", "sayEnded"] },
    failed: { type: "final", entry: ["stopGreeting", "sayEnded"] },
    stranded: { type: "final", entry: ["noteStranded", "stopGreeting", "sayEnded"] },
  },
});
