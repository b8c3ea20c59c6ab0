/**
 * A utility of every rank at once (wire spec, 4.4): pause and resume are collective, so they are sent to all together, and
 * no reply comes before every rank was asked. They are idempotent, so what a restart finds unanswered is asked again.
 */
import { assign, setup } from "xstate";
import { type Chart, effect, type Output, rankOf, start } from "../kernel/mod.ts";
import type { CallEngine, EngineRequest } from "./effects/scaling.ts";

// ---- one rank ---------------------------------------------------------------------------------------------------

export interface UtilityInput {
  readonly request: EngineRequest;
  readonly deadlineMs: number;
}

/** What became of one rank's call. */
export type UtilityOutcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly late: boolean; readonly text: string };

export interface UtilityContext extends UtilityInput {
  readonly outcome: UtilityOutcome | null;
}

export type UtilityEvent =
  | { type: "utilityReplied"; value: unknown }
  | { type: "utilityFailed"; failure: string }
  | { type: "utilityLate" }
  /** A restart cannot know whether it was asked. */
  | { type: "utilityUnknown" };

export const utility: Chart<UtilityContext, UtilityEvent> = setup({
  types: {} as { context: UtilityContext; events: UtilityEvent; input: UtilityInput },
  actions: {
    ask: ({ context }) =>
      effect<CallEngine>({
        type: "engine.call",
        request: context.request,
        deadlineMs: context.deadlineMs,
      }),
    note: assign({
      outcome: ({ context, event }): UtilityOutcome => {
        if (event.type === "utilityReplied") return { ok: true, value: event.value };
        const late = event.type === "utilityLate";
        const text = event.type === "utilityFailed"
          ? event.failure
          : `no answer within ${context.deadlineMs} ms`;
        return { ok: false, late, text };
      },
    }),
  },
}).createMachine({
  id: "utility",
  context: ({ input }) => ({ ...input, outcome: null }),
  output: ({ context }) => context.outcome,
  initial: "asking",
  states: {
    asking: {
      entry: "ask",
      on: {
        utilityReplied: { target: "answered", actions: "note" },
        utilityFailed: { target: "answered", actions: "note" },
        utilityLate: { target: "answered", actions: "note" },
        utilityUnknown: { target: "asking", reenter: true },
      },
    },
    answered: { type: "final" },
  },
});

// ---- all ranks --------------------------------------------------------------------------------------------------

export interface GroupCallInput extends UtilityInput {
  readonly id: string;
  readonly ranks: readonly number[];
}

/** A rank that did not do what was asked. */
export interface Unanswered {
  readonly rank: number;
  readonly late: boolean;
  readonly text: string;
}

export interface GroupCallOutcome {
  readonly answered: number;
  readonly unanswered: readonly Unanswered[];
}

export interface GroupCallContext extends GroupCallInput, GroupCallOutcome {}

export type GroupCallEvent = { type: "ended"; from: string; output: UtilityOutcome };

export const groupCall: Chart<GroupCallContext, GroupCallEvent> = setup({
  types: {} as { context: GroupCallContext; events: GroupCallEvent; input: GroupCallInput },
  guards: {
    everyoneEnded: ({ context }) =>
      context.answered + context.unanswered.length === context.ranks.length,
  },
  actions: {
    askEveryone: ({ context }): Output[] =>
      context.ranks.map((rank) =>
        start(`rank/${rank}/utility/${context.id}`, "utility", {
          request: context.request,
          deadlineMs: context.deadlineMs,
        } as never)
      ),
    count: assign(({ context, event }) => {
      const { from, output } = event;
      if (output.ok) return { answered: context.answered + 1 };
      const { late, text } = output;
      return { unanswered: [...context.unanswered, { rank: rankOf(from)!, late, text }] };
    }),
  },
}).createMachine({
  id: "groupCall",
  context: ({ input }) => ({ ...input, answered: 0, unanswered: [] }),
  output: ({ context }) => ({ answered: context.answered, unanswered: context.unanswered }),
  initial: "waiting",
  states: {
    waiting: {
      entry: "askEveryone",
      on: { ended: { actions: "count" } },
      always: { guard: "everyoneEnded", target: "ended" },
    },
    ended: { type: "final" },
  },
});

// ---- where calls are asked for ----------------------------------------------------------------------------------

export type CallsEvent =
  | { type: "callAll" } & GroupCallInput
  | { type: "ended"; from: string; output: GroupCallOutcome };

/** Starts a group call for whoever asks; how it ended is in the event `ended` that comes back. */
export const calls: Chart<Record<never, never>, CallsEvent> = setup({
  types: {} as { events: CallsEvent },
  actions: {
    startCall: ({ event }) => {
      const { id, ranks, request, deadlineMs } = event as CallsEvent & { type: "callAll" };
      return start(`group/${id}`, "groupCall", { id, ranks, request, deadlineMs } as never);
    },
  },
}).createMachine({
  id: "calls",
  initial: "open",
  states: { open: { on: { callAll: { actions: "startCall" }, ended: {} } } },
});
