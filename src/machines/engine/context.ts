/** What one engine rank is told and remembers, and the words for it. */
import type { Mode } from "../../planning/mod.ts";

export interface EngineInput {
  readonly local: boolean;
  readonly headless: boolean;
  readonly mode: Mode;
  /** Its process is ours, so its end is seen. */
  readonly launched: boolean;
  readonly strict: boolean;
  readonly connectMs: number;
  readonly readyMs: number;
  /** While it serves; 0: not at all. */
  readonly heartbeatEveryMs: number;
  readonly heartbeatWithinMs: number;
  /** A bus of this front-end leads to it: it can be asked whether it lives. */
  readonly callable: boolean;
  /** It has formed up already, in the handshake of a scale-up. */
  readonly joined?: boolean;
  /** Its front-end scales, and is told when the engine is lost. */
  readonly scales?: boolean;
  /** Another front-end hosts the store by which the ranks scale: this one learns from its engine where. */
  readonly learnsStore?: boolean;
}

export interface EngineContext extends EngineInput {
  /** Its process was seen to end. */
  readonly gone: boolean;
  /** Blocks of its KV cache as far as it has told, in its first frame or in READY. */
  readonly blocks: number | null;
}

export type EngineEvent =
  | { type: "hello"; local: boolean; headless: boolean }
  | {
    type: "ready";
    local: boolean;
    headless: boolean;
    blocks: number | null;
    statsAddress: string | null;
    hash: string | null;
    /** External elastic engines: the port of the coordination store, 0 for none, and their redundant experts. */
    storePort?: number;
    redundant?: number;
  }
  /** Its first frame on the bus: newest releases tell there what others tell in READY (wire spec, 4.2). */
  | { type: "firstFrame"; blocks: number | null; storePort?: number }
  /** The coordinator came back after a crash. */
  | { type: "resumed" }
  /** A message of this rank that cannot be read, or has a status that there is not. */
  | { type: "malformed"; reason: string; status?: string }
  /** It serves, and has given no sign of life for so long. */
  | { type: "unresponsive"; afterMs: number; why: string | null }
  /** How it answered when it was to be adopted. Releases that do not know the utility say so, which is as good a sign as any. */
  | { type: "utilityReplied" }
  | { type: "utilityFailed"; failure: string; unasked?: true }
  | { type: "utilityLate"; why?: string | null }
  | { type: "utilityUnknown" }
  /** The process of the engine itself is gone, while the one that we started still lives. */
  | { type: "engineGone"; code: null; signal: null }
  /** Its process ended; `restarting`: it will be started again. */
  | {
    type: "exited";
    code: number | null;
    signal: string | null;
    /** It is started again by itself. */
    restarting?: boolean;
    /** It was told to end. */
    asked?: boolean;
  }
  /** It is about to leave the group, so its end is expected; or it stays after all. */
  | { type: "leave" }
  | { type: "stay" }
  /** The group goes on without it, and its part of the front-end has ended: nobody has to hear of its end. */
  | { type: "dismissed" }
  /** All engines of the group start anew: it ends, or has ended, and says HELLO again. */
  | { type: "restart"; connectMs: number; readyMs: number };

/** Why a message of a known rank was refused. */
export type RefusalReason =
  | "wrong-locality"
  | "must-not-be-headless"
  | "must-be-headless"
  | "unexpected"
  | "malformed";

/** In which phase of its life a rank is, for people. */
export type Phase = "connect" | "load" | "serve" | "adopt";

/** What a message of a rank says of itself. */
export interface Spoken {
  readonly type: string;
  readonly local?: boolean;
  readonly headless?: boolean;
  readonly reason?: string;
  readonly status?: string;
}

/** What is wrong with how a rank declares itself; null for nothing. */
export const declaration = (context: EngineContext, event: Spoken): RefusalReason | null => {
  if (event.local !== context.local) return "wrong-locality";
  if (context.local || event.headless === context.headless) return null;
  return context.headless ? "must-be-headless" : "must-not-be-headless";
};

/** How an engine that served was lost, in words. */
export function endOf(event: EngineEvent): string {
  switch (event.type) {
    case "unresponsive":
      return `the engine gave no sign of life for ${event.afterMs} ms`;
    case "utilityFailed":
    case "utilityLate":
      return "the engine did not answer a coordinator that came back";
    case "hello":
      return "the engine started anew and has left its group";
    default: {
      const { code, signal } = event as EngineEvent & { type: "exited" };
      return `the engine ended with ${signal ?? `code ${code ?? "unknown"}`}`;
    }
  }
}
