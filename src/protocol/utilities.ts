/**
 * Utility calls (wire spec, 4.4): what a front-end may ask of an engine, and the engine's reply. Arguments and
 * results are JSON values (see `json.ts`), so that effects and events hold them.
 */
import { asArray, asId, asInt, asText, orNull } from "./fields.ts";
import { type Json, jsonToWire, wireToJson } from "./json.ts";
import { type Encodable, encode } from "./msgpack.ts";
import { readAll, type Wire } from "./msgpack-reader.ts";
import { reconfigureMap, type ReconfigureRequest } from "./reconfigure.ts";
import { type Decoded, decoded, Refused } from "./refusal.ts";

/** A method with its arguments, before it has an id. */
export type Utility = { readonly method: string; readonly args: readonly Json[] };

/** A call on the wire. `callId` is a 64-bit integer as decimal text; -1 and -2 are reserved for notifications. */
export type UtilityCall = Utility & { readonly clientIndex: number; readonly callId: string };

/** How `pause_scheduler` treats what is running. */
export type PauseMode = "abort" | "wait" | "keep";

const utility = (method: string, ...args: Json[]): Utility => ({ method, args });

/** The methods that the control plane uses, with their arguments in the wire's order. */
export const utilities: {
  readonly pauseScheduler: (mode: PauseMode, clearCache?: boolean) => Utility;
  readonly resumeScheduler: () => Utility;
  readonly isSchedulerPaused: () => Utility;
  readonly reinitializeDistributed: (request: ReconfigureRequest) => Utility;
  readonly commitPreparedElasticEp: () => Utility;
  /** Older releases: relays a notification of new engines to an old one (6.2). */
  readonly handleNotification: (type: string) => Utility;
  readonly sleep: (level: number, mode: PauseMode) => Utility;
  readonly wakeUp: (tags: readonly string[] | null) => Utility;
  readonly isSleeping: () => Utility;
} = {
  pauseScheduler: (mode, clearCache = false) => utility("pause_scheduler", mode, clearCache),
  resumeScheduler: () => utility("resume_scheduler"),
  isSchedulerPaused: () => utility("is_scheduler_paused"),
  reinitializeDistributed: (request) =>
    utility("reinitialize_distributed", reconfigureMap(request)),
  commitPreparedElasticEp: () => utility("commit_prepared_elastic_ep"),
  handleNotification: (type) => utility("eep_handle_engine_core_notification", type),
  sleep: (level, mode) => utility("sleep", level, mode),
  wakeUp: (tags) => utility("wake_up", tags),
  isSleeping: () => utility("is_sleeping"),
};

/** The main frame of a UTILITY request. */
export function encodeUtilityCall(call: UtilityCall): Uint8Array {
  return encode([call.clientIndex, BigInt(call.callId), call.method, call.args.map(jsonToWire)]);
}

/** The engine's side of {@link encodeUtilityCall}. */
export function decodeUtilityCall(main: Uint8Array): Decoded<UtilityCall> {
  return decoded("UTILITY", () => {
    const [clientIndex, callId, method, args, ...rest] = asArray(readAll(main), "");
    if (rest.length > 0) {
      throw new Refused("wrong-value", "", "four elements", `${4 + rest.length}`);
    }
    return {
      clientIndex: asInt(clientIndex, "client_index", 0),
      callId: asId(callId, "call_id"),
      method: asText(method, "method"),
      args: asArray(args, "args").map(wireToJson),
    };
  });
}

/** The reply to a call, or a notification under a reserved id (`notifications.ts`). */
export type UtilityOutput = {
  readonly callId: string;
  /** Why the call failed, null when it did not. */
  readonly failure: string | null;
  /** The value; the type is null unless the engine runs with insecure serialization. */
  readonly result: { readonly type: Json; readonly value: Json } | null;
};

/** The replies that an engine can give. */
export const utilityReply: {
  readonly of: (callId: string, value: Json) => UtilityOutput;
  /** In the original's words. */
  readonly failed: (callId: string, method: string, error: string) => UtilityOutput;
  readonly shuttingDown: (callId: string) => UtilityOutput;
} = {
  of: (callId, value) => ({ callId, failure: null, result: { type: null, value } }),
  failed: (callId, method, error) => ({
    callId,
    failure: `Call to ${method} method failed: ${error}`,
    result: null,
  }),
  shuttingDown: (callId) => ({ callId, failure: "Server shutting down", result: null }),
};

/** Element 4 of engine outputs, as a value to encode. */
export function utilityOutputWire(output: UtilityOutput): Encodable {
  return [
    BigInt(output.callId),
    output.failure,
    output.result === null
      ? null
      : [jsonToWire(output.result.type), jsonToWire(output.result.value)],
  ];
}

/** Element 4 of engine outputs; throws `Refused`, for use inside `decoded`. */
export function utilityOutputOf(value: Wire | undefined, at: string): UtilityOutput {
  const [callId, failure, result] = asArray(value, at);
  return {
    callId: asId(callId, `${at}.call_id`),
    failure: orNull(asText, failure, `${at}.failure_message`),
    result: orNull(
      (value, at) => {
        const [type, content] = asArray(value, at);
        return { type: wireToJson(type ?? null), value: wireToJson(content ?? null) };
      },
      result,
      `${at}.result`,
    ),
  };
}
