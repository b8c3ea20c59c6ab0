/**
 * The DP coordinator (wire spec, section 5): when may engines begin, and which wave of requests is it?
 *
 * A *wave* counts how often all engines of a mixture-of-experts model have come to rest together. Engines that rest must
 * be woken together, because their experts are spread over all of them. Statistics are not in here: they are superseded by
 * the next ones and decide nothing, so a table beside the system keeps them.
 *
 * Two generations of one rule: with `evidence` (newest) a wake-up is passed on, and only what engines say moves the
 * state; with `optimistic` (0.12 to middle) the wake-up itself does. In the original that latches when paused engines
 * discard it, and so does evidence that is older than a pause; the reminder below ends both.
 */
import { assign, setup } from "xstate";
import { type Chart, effect, hold, type Output, tell } from "../kernel/mod.ts";
import type { CoordinatorSockets } from "./configuration.ts";
import type {
  CoordinatorReady,
  CoordinatorSocket,
  PublishWave,
  StartWave,
} from "./effects/waves.ts";

export interface WavesInput {
  readonly sockets: CoordinatorSockets;
  /** How many engines must subscribe before the first READY; then the number of rows of statistics. */
  readonly engines: number;
  /** Are waves coordinated at all, or only statistics relayed (dense models)? */
  readonly coordinates: boolean;
  /** Columns of a published row; 3 by default, which newest front-ends expect and older ones cannot read. */
  readonly loadColumns?: 2 | 3;
  readonly rule: "evidence" | "optimistic";
  /** How long a wave runs until the engines are reminded of it. */
  readonly remindMs: number;
}

export interface WavesContext extends WavesInput {
  readonly subscribed: number;
  readonly wave: number;
  /** Something was heard from engines, so that a wave far from ours is implausible. */
  readonly heard: boolean;
  /** A wake-up that came before every engine had subscribed. */
  readonly early: { readonly exclude: number | null } | null;
}

export type WavesEvent =
  | { type: "bound"; socket: string; endpoints: Readonly<Record<string, string>> }
  | { type: "bindFailed"; socket: string; text: string }
  | { type: "subscribed" }
  | { type: "unsubscribed" }
  /** A front-end has come: it should know where we are. */
  | { type: "frontSubscribed" }
  | { type: "frontUnsubscribed" }
  /** A front-end sends a first request to an engine while it believes that engines rest. */
  | { type: "wake"; exclude: number | null; wave: number }
  /** The cluster has another size now. */
  | { type: "scaled"; size: number }
  /** All engines start anew: so many have to subscribe before any may go on. */
  | { type: "regrouped"; size: number }
  | { type: "waveComplete"; wave: number; engine: number }
  | { type: "startWave"; wave: number; engine: number }
  | { type: "strangers"; kind: string; count: number; sample: string }
  | { type: "resumed" };

/** A wave that is further ahead than this is no wave: adopting it would make every later one look stale. */
const PLAUSIBLE_JUMP = 1024;

const told = (event: WavesEvent): number => (event as { wave: number }).wave;

const socketOf = (context: WavesContext): Output =>
  hold<CoordinatorSocket>("coordinator", {
    type: "socket.coordinator",
    ...context.sockets,
    rows: context.engines,
    ordered: context.coordinates,
    columns: context.loadColumns ?? 3,
  });

export const waves: Chart<WavesContext, WavesEvent> = setup({
  types: {} as { context: WavesContext; events: WavesEvent; input: WavesInput },
  delays: { reminder: ({ context }) => context.remindMs },
  guards: {
    lastSubscription: ({ context }) => context.subscribed >= context.engines,
    lastSubscriptionAfterCall: ({ context }) =>
      context.subscribed >= context.engines && context.early !== null,
    coordinates: ({ context }) => context.coordinates,
    coordinatesByEvidence: ({ context }) => context.coordinates && context.rule === "evidence",
    begins: ({ context, event }) => plausible(context, event) && told(event) >= context.wave,
    overtakes: ({ context, event }) => plausible(context, event) && told(event) > context.wave,
    completes: ({ context, event }) => plausible(context, event) && told(event) >= context.wave,
  },
  actions: {
    bind: ({ context }) => socketOf(context),
    noteBound: assign(({ context, event }) => {
      const { endpoints } = event as WavesEvent & { type: "bound" };
      return { sockets: { ...context.sockets, ...endpoints } };
    }),
    holdBound: ({ context }) => socketOf(context),
    sayBound: ({ event }) => {
      const { socket, endpoints } = event as WavesEvent & { type: "bound" };
      return tell("startup", { type: "bound", socket, endpoints });
    },
    sayBindFailed: ({ event }) => {
      const { socket, text } = event as WavesEvent & { type: "bindFailed" };
      return tell("startup", { type: "bindFailed", socket, text });
    },
    countSubscription: assign({ subscribed: ({ context }) => context.subscribed + 1 }),
    sayReady: () => effect<CoordinatorReady>({ type: "waves.ready" }),
    keepEarlyWake: assign({
      early: ({ context, event }) => {
        const { exclude } = event as WavesEvent & { type: "wake" };
        return { exclude: context.early === null ? exclude : null };
      },
    }),
    startEarly: ({ context }) =>
      context.early === null ? undefined : effect<StartWave>({
        type: "waves.start",
        wave: context.wave,
        exclude: context.early.exclude,
      }),
    forgetEarlyWake: assign({ early: null }),
    /** Whoever believes in an older wave has not reached the engine that it names. */
    startCurrent: ({ context, event }) => {
      const { exclude, wave } = event as WavesEvent & { type: "wake" };
      return effect<StartWave>({
        type: "waves.start",
        wave: context.wave,
        exclude: wave < context.wave ? null : exclude,
      });
    },
    /** The original leaves out the engine that told it; but that one may have been paused and resumed since. */
    startTold: ({ event }) =>
      effect<StartWave>({ type: "waves.start", wave: told(event), exclude: null }),
    startAgain: ({ context }) =>
      effect<StartWave>({ type: "waves.start", wave: context.wave, exclude: null }),
    adopt: assign({ wave: ({ event }) => told(event), heard: true }),
    advance: assign({ wave: ({ event }) => told(event) + 1, heard: true }),
    publish: ({ context }, { running }: { running: boolean }) =>
      effect<PublishWave>({ type: "waves.publish", wave: context.wave, running }),
    // The wave stays: it never runs back, and engines that begin adopt it.
    regather: assign(({ event }) => ({
      engines: (event as WavesEvent & { type: "regrouped" }).size,
      subscribed: 0,
      early: null,
    })),
    resize: assign({ engines: ({ event }) => (event as WavesEvent & { type: "scaled" }).size }),
  },
}).createMachine({
  id: "waves",
  context: ({ input }) => ({ ...input, subscribed: 0, wave: 0, heard: false, early: null }),
  initial: "binding",
  on: {
    // Repeats are harmless, and wave logic need not be on.
    scaled: { actions: ["resize", "holdBound"] },
    strangers: {},
    unsubscribed: {},
    frontUnsubscribed: {},
    bindFailed: { actions: "sayBindFailed" },
  },
  states: {
    binding: {
      entry: "bind",
      on: {
        bound: { target: "gathering", actions: ["noteBound", "holdBound", "sayBound"] },
        resumed: {},
      },
    },
    /** No engine may go on before all of the first ones have subscribed. */
    gathering: {
      on: {
        bound: {},
        resumed: {},
        subscribed: { actions: "countSubscription" },
        frontSubscribed: {},
        wake: [{ guard: "coordinates", actions: "keepEarlyWake" }, {}],
        startWave: {},
        waveComplete: {},
        regrouped: { actions: ["regather", "holdBound"] },
      },
      always: [
        // Whoever called early must not be forgotten when the engines discard it: it is reminded of, like every call.
        { guard: "lastSubscriptionAfterCall", target: "serving.paused.called" },
        { guard: "lastSubscription", target: "serving" },
      ],
    },
    serving: {
      entry: ["sayReady", "startEarly", "forgetEarlyWake"],
      initial: "paused",
      on: {
        bound: {},
        // A late one waits for READY too; those that run ignore it.
        subscribed: { actions: "sayReady" },
        regrouped: { target: "gathering", actions: ["regather", "holdBound"] },
      },
      states: {
        paused: {
          initial: "resting",
          states: {
            resting: {},
            // Passed on a wake-up, and no engine has said yet that it runs. The one that was left out may have been paused, or have
            // served its request already, while the others wait for it.
            called: {
              meta: { timers: { reminder: "restart" } },
              after: { reminder: { target: "resting", actions: "startAgain" } },
            },
          },
          on: {
            wake: [
              { guard: "coordinatesByEvidence", target: ".called", actions: "startCurrent" },
              {
                guard: "coordinates",
                target: "running",
                actions: ["startCurrent", { type: "publish", params: { running: true } }],
              },
              {},
            ],
            startWave: [
              {
                guard: "begins",
                target: "running",
                actions: ["adopt", "startTold", { type: "publish", params: { running: true } }],
              },
              {},
            ],
            waveComplete: [
              {
                guard: "completes",
                target: ".resting",
                actions: ["advance", { type: "publish", params: { running: false } }],
              },
              {},
            ],
            frontSubscribed: { actions: { type: "publish", params: { running: false } } },
            resumed: { actions: { type: "publish", params: { running: false } } },
          },
        },
        running: {
          // Engines that were paused have discarded what woke them. Reminded, those that run hear nothing new, and those
          // that rest join; so nothing believes for ever in a wave that nobody runs.
          meta: { timers: { reminder: "restart" } },
          after: { reminder: { target: "running", reenter: true, actions: "startAgain" } },
          on: {
            wake: {},
            startWave: [
              {
                guard: "overtakes",
                actions: ["adopt", "startTold", { type: "publish", params: { running: true } }],
              },
              {},
            ],
            waveComplete: [
              {
                guard: "completes",
                target: "paused",
                actions: ["advance", { type: "publish", params: { running: false } }],
              },
              {},
            ],
            // An engine that was away may have missed the wake-up; to those that run it says nothing new.
            subscribed: { actions: ["sayReady", "startAgain"] },
            frontSubscribed: { actions: { type: "publish", params: { running: true } } },
            resumed: { actions: { type: "publish", params: { running: true } } },
          },
        },
      },
    },
  },
});

function plausible(context: WavesContext, event: WavesEvent): boolean {
  const wave = told(event);
  if (!context.coordinates || !Number.isSafeInteger(wave) || wave < 0) return false;
  return !context.heard || wave - context.wave <= PLAUSIBLE_JUMP;
}
