/** How the facts of a scaling operation change what a rank knows, and the questions that its transitions ask. */
import { assign } from "xstate";
import type { Bootstrap } from "../effects/scaling.ts";
import type {
  EpochView,
  ScalingCause,
  ScalingCode,
  ScalingContext,
  ScalingEvent,
} from "./context.ts";

type Args = { context: ScalingContext; event: ScalingEvent };
type Of<T extends ScalingEvent["type"]> = ScalingEvent & { type: T };

const viewOf = (event: ScalingEvent): EpochView | null =>
  (event as Of<"epochSeen"> | Of<"epochRead">).view;

const ended = (view: EpochView): boolean => view.error !== null || view.completed;

/** The first cause stays; what follows from it is not a cause. */
const first = (context: ScalingContext, cause: ScalingCause): ScalingCause =>
  context.cause ?? cause;

const LATE: Readonly<Record<"awaitingEpoch" | "prepare" | "vote" | "outcome", ScalingCause>> = {
  awaitingEpoch: {
    code: "prepare-late",
    text: "Timed out waiting for rank 0 to publish external Elastic EP bootstrap metadata.",
  },
  prepare: {
    code: "prepare-late",
    text: "Timed out waiting for external Elastic EP ranks to prepare.",
  },
  vote: { code: "vote-late", text: "Timed out waiting for external Elastic EP drains." },
  outcome: {
    code: "outcome-late",
    text: "Timed out waiting for all old ranks to finish external Elastic EP scaling.",
  },
};

export const scalingGuards: {
  readonly [name: string]: (args: Args) => boolean;
} = {
  leads: ({ context }) => context.leader,
  publishedNothing: ({ context }) => !context.joined,
  scalesUp: ({ context }) => context.target > context.oldSize,
  /** Removed engines are not prepared: they hear of it in the commit. */
  engineTakesPart: ({ context }) => context.remains || context.target > context.oldSize,
  commitsByItself: ({ context }) => context.autoCommit,
  remains: ({ context }) => context.remains,
  mayResume: ({ context }) => context.remains && !context.engineToRestart,
  everyoneDecides: ({ context }) => context.everyoneDecides,
  objects: ({ context }) => context.objection !== null,
  wasRequested: ({ context }) => context.requested,
  outOfAttempts: ({ context }) => context.attempts >= 3,
  losesControl: ({ event }) => (event as Of<"storeLost">).store === "control",
  epochUnknown: ({ context }) => context.epoch === "",
  earlierUnfinished: ({ event }) => {
    const view = viewOf(event);
    return view !== null && !ended(view);
  },
  decidedAbort: ({ event }) => (event as Of<"decided">).outcome === "abort",
  decidedCommit: ({ event }) => (event as Of<"decided">).outcome === "commit",
  cannotComplete: ({ context, event }) =>
    (event as Of<"decided">).outcome === "commit" && context.error !== null,
  isPaused: ({ event }) => (event as Of<"utilityReplied">).value === true,
  // Which epoch is meant: what rank 0 of the same operation published, or, where it names none, the first one that is new.
  epochIsForeign: ({ context, event }) => {
    const view = viewOf(event)!;
    return view.epoch === context.previous || view.bootstrap === null ||
      (context.shared && view.operation !== null && view.operation !== context.operation);
  },
  epochFailed: ({ context, event }) => {
    const view = viewOf(event)!;
    return view.error !== null && context.shared && view.operation === context.operation;
  },
  epochEnded: ({ event }) => ended(viewOf(event)!),
  epochHasOtherTarget: ({ context, event }) => {
    const view = viewOf(event)!;
    return view.prepared && view.bootstrap?.size !== context.target;
  },
  epochPrepared: ({ context, event }) => {
    const view = viewOf(event)!;
    return view.prepared && view.redundancy !== null && view.bootstrap?.size === context.target;
  },
};

// deno-lint-ignore no-explicit-any
type Assign = any;

const cause = (code: ScalingCode, text: (event: ScalingEvent) => string): Assign =>
  assign({
    cause: ({ context, event }: Args) => first(context, { code, text: text(event) }),
  });
const object = (code: ScalingCode, text: (event: ScalingEvent) => string): Assign =>
  assign({
    objection: ({ context, event }: Args) => context.objection ?? { code, text: text(event) },
  });
const late = (cause: ScalingCause): Assign =>
  assign({ cause: ({ context }: Args) => first(context, cause) });

const given = (event: ScalingEvent): string => (event as { text?: string }).text ?? "";

export const scalingAssigns: { readonly [name: string]: Assign } = {
  noteEarlier: assign({ earlier: ({ event }: Args) => viewOf(event)!.epoch }),
  /** An epoch that had ended before this rank looked is not the one that it waits for. */
  noteStale: assign({ previous: ({ event }: Args) => viewOf(event)!.epoch }),
  noteDraw: assign(({ context, event }: Args) => {
    const { epoch, masterPort, masterPorts } = event as Of<"drawn">;
    const { target: size, masterIp } = context;
    return { epoch, bootstrap: { size, masterIp, masterPort, masterPorts, storePort: 0 } };
  }),
  noteStore: assign(({ context, event }: Args) => ({
    bootstrap: {
      ...context.bootstrap as Bootstrap,
      storePort: (event as Of<"storeServing">).address.port,
    },
  })),
  noteEpoch: assign(({ event }: Args) => {
    const { epoch, bootstrap, redundancy } = viewOf(event)!;
    return { epoch, bootstrap, redundancy: redundancy ?? 0 };
  }),
  noteJoined: assign({ joined: true }),
  noteTouched: assign({ engineTouched: true }),
  noteDecides: assign({ everyoneDecides: true }),
  noteError: assign({ error: ({ event }: Args) => given(event) }),
  noteRequested: assign({ requested: true }),
  noteAttempt: assign({ attempts: ({ context }: Args) => context.attempts + 1 }),
  forgetAttempts: assign({ attempts: 0 }),
  noteEngineToRestart: assign({ engineToRestart: true }),
  noteFailed: assign({ outcome: "failed" }),
  noteStranded: assign({ outcome: "stranded" }),

  objectAbort: object("aborted", (e) => given(e) || "the operation was aborted"),
  objectError: object("failed-elsewhere", given),
  objectEngine: object("engine-lost", given),
  objectStore: object("store-lost", given),
  objectLate: object("vote-late", () => LATE.vote.text),

  blameAbort: cause("aborted", (e) => given(e) || "the operation was aborted"),
  blameActive: cause(
    "another-active",
    () => "Another external Elastic EP scaling operation is already active.",
  ),
  blameTarget: cause(
    "different-target",
    (e) =>
      `A different external Elastic EP scaling operation is already in progress for target dp size ${
        viewOf(e)?.bootstrap?.size ?? "unknown"
      }.`,
  ),
  blameEpoch: cause("failed-elsewhere", (e) => viewOf(e)?.error ?? ""),
  blameError: cause("failed-elsewhere", given),
  blameKnownError: assign({
    cause: ({ context }: Args) =>
      first(context, { code: "failed-elsewhere", text: context.error ?? "" }),
  }),
  blameDecision: assign({
    cause: ({ context }: Args) =>
      first(
        context,
        context.objection ?? { code: "aborted", text: "the ranks decided to abort" },
      ),
  }),
  blameStore: cause("store-failed", given),
  blameLostStore: cause("store-lost", given),
  blameHandshake: cause("handshake-failed", given),
  blameEngine: cause("engine-failed", (e) => (e as Of<"utilityFailed">).failure),
  blameSilentEngine: cause(
    "engine-late",
    (e) => `the engine did not answer ${(e as Of<"utilityLate">).method} in time`,
  ),
  blameUnknownEngine: cause(
    "engine-unknown",
    () => "after a restart nobody knows whether the engine was prepared",
  ),
  blameLostEngine: cause("engine-lost", given),
  blameEpochLate: late(LATE.awaitingEpoch),
  blamePrepareLate: late(LATE.prepare),
  blameOutcomeLate: late(LATE.outcome),
};
