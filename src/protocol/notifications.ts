/**
 * What an engine says unasked, under a reserved call id (wire spec, 4.6): -1 for elastic scaling, -2 for fault
 * tolerance. They arrive like replies of utilities, always at client 0.
 */
import type { Json } from "./json.ts";
import { isRank } from "./ranks.ts";
import { type Decoded, decoded, Refused } from "./refusal.ts";
import { type UtilityOutput, utilityReply } from "./utilities.ts";

export const SCALING_CALL_ID = "-1";
export const FAULT_TOLERANCE_CALL_ID = "-2";

/** The scaling notifications; the last two only of older releases. */
export const SCALING_NOTIFICATIONS: readonly [
  "RECONFIGURE_FINISHED",
  "SHUTDOWN_COMPLETE",
  "NEW_CORE_ENGINES_INIT_READY",
  "NEW_CORE_ENGINES_WEIGHTS_INIT_READY",
] = [
  "RECONFIGURE_FINISHED",
  "SHUTDOWN_COMPLETE",
  "NEW_CORE_ENGINES_INIT_READY",
  "NEW_CORE_ENGINES_WEIGHTS_INIT_READY",
];
export type ScalingNotification = (typeof SCALING_NOTIFICATIONS)[number];

/** The statuses of fault tolerance, by their number on the wire. */
export const ENGINE_STATUSES: readonly ["healthy", "dead", "unhealthy"] = [
  "healthy",
  "dead",
  "unhealthy",
];
export type EngineStatus = (typeof ENGINE_STATUSES)[number];

/** A reply or a notification, told apart. */
export type UtilityEvent =
  | ({ readonly type: "reply" } & UtilityOutput)
  | {
    readonly type: "scaling-notification";
    readonly notification: ScalingNotification;
    /** The sender's configured rank at that moment. */
    readonly rank: number;
  }
  | {
    readonly type: "engine-status";
    readonly id: Json;
    readonly status: EngineStatus;
    /** The whole map. */
    readonly details: { readonly [key: string]: Json };
  };

/** Tells a reply from a notification; a notification that is not one of the wire's is refused. */
export function classifyUtilityOutput(output: UtilityOutput): Decoded<UtilityEvent> {
  if (output.callId === SCALING_CALL_ID) return scaling(output.result?.value ?? null);
  if (output.callId === FAULT_TOLERANCE_CALL_ID) return status(output.result?.value ?? null);
  return { ok: true, value: { type: "reply", ...output } };
}

/** What an engine sends as `utilityOutput` for a scaling notification. */
export const scalingNotification = (type: ScalingNotification, rank: number): UtilityOutput =>
  utilityReply.of(SCALING_CALL_ID, [type, rank]);

/** What an engine sends as `utilityOutput` for its status. */
export const engineStatus = (details: { readonly [key: string]: Json }): UtilityOutput =>
  utilityReply.of(FAULT_TOLERANCE_CALL_ID, details);

function scaling(value: Json): Decoded<UtilityEvent> {
  return decoded("scaling notification", () => {
    const [type, rank] = Array.isArray(value) ? value as readonly Json[] : [];
    const notification = SCALING_NOTIFICATIONS.find((known) => known === type);
    if (notification === undefined) {
      throw new Refused("wrong-value", "type", SCALING_NOTIFICATIONS.join(" or "), shown(type));
    }
    if (!isRank(rank)) throw new Refused("wrong-value", "dp_rank", "a rank", shown(rank));
    return { type: "scaling-notification", notification, rank };
  });
}

function status(value: Json): Decoded<UtilityEvent> {
  return decoded("engine status", () => {
    if (value === null || typeof value !== "object" || Array.isArray(value)) {
      throw new Refused("wrong-type", "", "a map", shown(value));
    }
    const details = value as { readonly [key: string]: Json };
    const said = details.status;
    const known = typeof said === "number"
      ? ENGINE_STATUSES[said]
      : ENGINE_STATUSES.find((name) => name === String(said).toLowerCase());
    if (known === undefined) {
      throw new Refused("wrong-value", "status", ENGINE_STATUSES.join(", "), shown(said));
    }
    return { type: "engine-status", id: details.id ?? null, status: known, details };
  });
}

const shown = (value: Json | undefined): string =>
  value === undefined ? "nothing" : JSON.stringify(value).slice(0, 80);
