/**
 * The engine's side of scaling as a pure reducer (wire spec, 4.4, 4.6 and 7.8): what an engine without a GPU answers to utilities, and
 * when it speaks by itself. What engines do together (they pause, form the new group, switch, resume) is a *meeting*: the engine
 * says that it is there, and hears when everybody is.
 */
import type { Bootstrap } from "../machines/effects/scaling.ts";

/** What engines do together, and which ranks have to be there. */
export interface Meeting {
  readonly what: "pause" | "form" | "reshuffle" | "switch" | "resume";
  /** Ranks 0..size-1. */
  readonly size: number;
}

export interface ScalingEngine {
  readonly rank: number;
  readonly size: number;
  readonly paused: boolean;
  /** The call of a pause that waits for the others. */
  readonly pausing: string | null;
  readonly resuming: string | null;
  readonly reconfiguration: Reconfiguration | null;
  readonly meetings: readonly Meeting[];
  /** A new rank that has not switched yet. */
  readonly joining: boolean;
  readonly gone: boolean;
}

export interface Reconfiguration {
  readonly bootstrap: Bootstrap;
  /** `forming`: joins the new group; `ready`: at its commit point; `requested`: told to commit; `switching`: reshuffled. */
  readonly stage: "forming" | "ready" | "requested" | "switching" | "leaving";
}

export type EngineInput =
  | {
    readonly type: "utility";
    readonly call: string;
    readonly method: string;
    readonly args: readonly unknown[];
  }
  | { readonly type: "met"; readonly what: Meeting["what"] };

export type EngineOutput =
  | { readonly type: "reply"; readonly call: string; readonly value: string | boolean | null }
  | { readonly type: "failure"; readonly call: string; readonly text: string }
  | { readonly type: "notify"; readonly notification: "RECONFIGURE_FINISHED" | "SHUTDOWN_COMPLETE" }
  /** Sets `eep_ready/<rank>` in the store of the reconfiguration. */
  | { readonly type: "ready"; readonly bootstrap: Bootstrap }
  /** New ranks only: READY of the scale-up handshake. */
  | { readonly type: "handshakeReady" }
  | { readonly type: "exit"; readonly code: number };

type Step = readonly [engine: ScalingEngine, outputs: readonly EngineOutput[]];

const NONE: readonly EngineOutput[] = [];

/** An engine that serves. */
export const servingEngine = (rank: number, size: number): ScalingEngine => ({
  rank,
  size,
  paused: false,
  pausing: null,
  resuming: null,
  reconfiguration: null,
  meetings: [],
  joining: false,
  gone: false,
});

/** An engine that joins a group that scales up: it has shaken hands and forms the new group. */
export const joiningEngine = (rank: number, bootstrap: Bootstrap): ScalingEngine => ({
  ...servingEngine(rank, bootstrap.size),
  paused: true,
  joining: true,
  reconfiguration: { bootstrap, stage: "forming" },
  meetings: [{ what: "form", size: bootstrap.size }],
});

/** What an engine does with an input. */
export function stepEngine(engine: ScalingEngine, input: EngineInput): Step {
  if (engine.gone) return [engine, NONE];
  return input.type === "met" ? met(engine, input.what) : utility(engine, input);
}

const fails = (engine: ScalingEngine, call: string, method: string, text: string): Step => [
  engine,
  [{ type: "failure", call, text: `Call to ${method} method failed: ${text}` }],
];
const replies = (engine: ScalingEngine, call: string, value: string | boolean | null): Step => [
  engine,
  [{ type: "reply", call, value }],
];
const meet = (engine: ScalingEngine, ...meetings: Meeting[]): ScalingEngine => ({
  ...engine,
  meetings: [...engine.meetings, ...meetings],
});

function utility(engine: ScalingEngine, input: EngineInput & { type: "utility" }): Step {
  const { call, method, args } = input;
  const { rank, size, reconfiguration } = engine;
  switch (method) {
    case "is_scheduler_paused":
      return replies(engine, call, engine.paused);
    case "pause_scheduler":
      if (engine.paused) return replies(engine, call, null);
      // Asked again while it waits: the later call is the one that is answered.
      if (engine.pausing !== null) return [{ ...engine, pausing: call }, NONE];
      return [meet({ ...engine, pausing: call }, { what: "pause", size }), NONE];
    case "resume_scheduler":
      if (engine.pausing !== null) {
        return fails(
          engine,
          call,
          method,
          "resume_scheduler called while pause is still in flight. Wait for the pause future to resolve before resuming.",
        );
      }
      if (engine.resuming !== null) return [{ ...engine, resuming: call }, NONE];
      if (!engine.paused) return replies(engine, call, null);
      return [meet({ ...engine, paused: false, resuming: call }, { what: "resume", size }), NONE];
    case "reinitialize_distributed": {
      if (reconfiguration !== null) {
        return fails(engine, call, method, "Elastic EP reconfiguration is already active");
      }
      const [{ bootstrap, leave }] = args as [{ bootstrap: Bootstrap; leave: boolean }];
      const next: ScalingEngine = {
        ...engine,
        reconfiguration: { bootstrap, stage: leave ? "leaving" : "forming" },
      };
      const meeting: Meeting = leave
        ? { what: "reshuffle", size }
        : { what: "form", size: bootstrap.size };
      return replies(meet(next, meeting), call, `eep_ready/${rank}`);
    }
    case "commit_prepared_elastic_ep": {
      if (reconfiguration?.stage !== "ready") {
        return fails(engine, call, method, "No prepared Elastic EP reconfiguration is ready");
      }
      const next: ScalingEngine = {
        ...engine,
        reconfiguration: { ...reconfiguration, stage: "requested" },
      };
      const down = reconfiguration.bootstrap.size < size;
      const meeting: Meeting = down
        ? { what: "reshuffle", size }
        : { what: "switch", size: reconfiguration.bootstrap.size };
      return replies(meet(next, meeting), call, null);
    }
    default:
      return fails(engine, call, method, `there is no method ${method}`);
  }
}

function met(engine: ScalingEngine, what: Meeting["what"]): Step {
  const { reconfiguration } = engine;
  const rest = { ...engine, meetings: engine.meetings.filter((m) => m.what !== what) };
  switch (what) {
    case "pause": {
      const next = { ...rest, paused: true, pausing: null };
      return engine.pausing === null ? [next, NONE] : replies(next, engine.pausing, null);
    }
    case "resume": {
      const next = { ...rest, resuming: null };
      return engine.resuming === null ? [next, NONE] : replies(next, engine.resuming, null);
    }
    case "form": {
      if (reconfiguration === null) return [rest, NONE];
      const { bootstrap } = reconfiguration;
      const next: ScalingEngine = { ...rest, reconfiguration: { bootstrap, stage: "ready" } };
      const ready: EngineOutput = { type: "ready", bootstrap };
      // A new rank has nothing to switch from: it waits for the others in the new group.
      return engine.joining
        ? [meet(next, { what: "switch", size: bootstrap.size }), [
          { type: "handshakeReady" },
          ready,
        ]]
        : [next, [ready]];
    }
    case "reshuffle": {
      if (reconfiguration === null) return [rest, NONE];
      if (reconfiguration.stage === "leaving") {
        return [{ ...rest, gone: true }, [
          { type: "notify", notification: "SHUTDOWN_COMPLETE" },
          { type: "exit", code: 0 },
        ]];
      }
      const { bootstrap } = reconfiguration;
      return [
        meet({ ...rest, reconfiguration: { bootstrap, stage: "switching" } }, {
          what: "switch",
          size: bootstrap.size,
        }),
        NONE,
      ];
    }
    case "switch": {
      if (reconfiguration === null) return [rest, NONE];
      const next = { ...rest, size: reconfiguration.bootstrap.size, reconfiguration: null };
      if (!engine.joining) {
        return [next, [{ type: "notify", notification: "RECONFIGURE_FINISHED" }]];
      }
      // It resumes itself, together with the others.
      return [
        meet({ ...next, joining: false, paused: false }, { what: "resume", size: next.size }),
        NONE,
      ];
    }
  }
}
