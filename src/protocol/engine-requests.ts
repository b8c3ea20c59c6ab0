/**
 * What an engine receives on its input socket (wire spec, 4.3): `[type][main][aux...]`, behind the identity frame
 * on the front-end's ROUTER.
 */
import { asArrayOf, asInt, asText } from "./fields.ts";
import { type Encodable, encode, Float } from "./msgpack.ts";
import { DATA_LIMITS, readAll, Reader } from "./msgpack-reader.ts";
import { type Decoded, decoded, Refused } from "./refusal.ts";
import { decodeUtilityCall, encodeUtilityCall, type UtilityCall } from "./utilities.ts";

/** The type bytes of the wire. 4 and 5 are internal to an engine: a 4 from outside kills it. */
export const REQUEST_TYPE: {
  readonly add: 0;
  readonly abort: 1;
  readonly startDpWave: 2;
  readonly utility: 3;
} = { add: 0, abort: 1, startDpWave: 2, utility: 3 };

/** A request as an engine reads it. ADD is opaque but for {@link addFacts}. */
export type EngineRequest =
  | { readonly type: "add"; readonly auxFrames: number }
  | { readonly type: "abort"; readonly requestIds: readonly string[] }
  | ({ readonly type: "utility" } & UtilityCall);

/** ABORT, as frames behind the identity. */
export function encodeAbort(requestIds: readonly string[]): Uint8Array[] {
  return [Uint8Array.of(REQUEST_TYPE.abort), encode(requestIds)];
}

/** UTILITY, as frames behind the identity. */
export function encodeUtilityRequest(call: UtilityCall): Uint8Array[] {
  return [Uint8Array.of(REQUEST_TYPE.utility), encodeUtilityCall(call)];
}

/** ADD, as frames behind the identity: the main frame and its tensors are passed on as they are. */
export function encodeAdd(main: Uint8Array, aux: readonly Uint8Array[] = []): Uint8Array[] {
  return [Uint8Array.of(REQUEST_TYPE.add), main, ...aux];
}

/** A request on the engine's side. The type that a real engine dies of is refused. */
export function decodeEngineRequest(frames: readonly Uint8Array[]): Decoded<EngineRequest> {
  const [type, main] = frames;
  if (type === undefined || main === undefined) {
    return decoded("request", () => {
      throw new Refused("wrong-frames", "", "a type and a main frame", `${frames.length}`);
    });
  }
  if (type.length === 1 && type[0] === REQUEST_TYPE.utility) {
    const call = decodeUtilityCall(main);
    return call.ok ? { ok: true, value: { type: "utility", ...call.value } } : call;
  }
  return decoded("request", () => {
    if (type.length === 1 && type[0] === REQUEST_TYPE.add) {
      return { type: "add", auxFrames: frames.length - 2 };
    }
    if (type.length === 1 && type[0] === REQUEST_TYPE.abort) {
      return { type: "abort", requestIds: asArrayOf(asText, readAll(main, DATA_LIMITS), "") };
    }
    const got = type.length === 1 ? `${type[0]}` : `${type.length} bytes`;
    throw new Refused("wrong-value", "type", "0 (ADD), 1 (ABORT) or 3 (UTILITY)", got);
  });
}

/** What an ADD says about the wave protocol. */
export type AddFacts = {
  readonly requestId: string;
  readonly clientIndex: number;
  readonly currentWave: number;
};

/**
 * Reads what the wave protocol needs of an ADD. Positions 0, 11 and 12 are the same in 0.12 and newest; absent
 * trailing members have their default, 0.
 */
export function addFacts(main: Uint8Array): Decoded<AddFacts> {
  return decoded("ADD", () => {
    const reader = new Reader(main, DATA_LIMITS);
    const length = reader.arrayLength();
    if (length === undefined) throw new Refused("wrong-type", "", "an array", "another value");
    const members: { [index: number]: number | string } = {};
    for (let i = 0; i < length; i++) {
      if (i === 0) members[i] = asText(reader.value(), "request_id");
      else if (i === 11) members[i] = asInt(reader.value(), "client_index", 0);
      else if (i === 12) members[i] = asInt(reader.value(), "current_wave", 0);
      else reader.skip();
    }
    reader.end();
    return {
      requestId: asText(members[0], "request_id"),
      clientIndex: (members[11] ?? 0) as number,
      currentWave: (members[12] ?? 0) as number,
    };
  });
}

/** A request of our own, for tests and simulated front-ends; in the newest order (4.3). */
export type OwnRequest = AddFacts & {
  readonly promptTokenIds: readonly number[];
  /** Seconds. */
  readonly arrivalTime: number;
  readonly dataParallelRank: number | null;
};

/** The main frame of an ADD that we originate ourselves. */
export function encodeOwnRequest(request: OwnRequest): Uint8Array {
  const members: Encodable[] = [
    request.requestId,
    request.promptTokenIds,
    null, // mm_features
    null, // sampling_params
    null, // pooling_params
    new Float(request.arrivalTime),
    null, // lora_request
    null, // cache_salt
    request.dataParallelRank,
    null, // prompt_embeds
    null, // prompt_is_token_ids
    request.clientIndex,
    request.currentWave,
    0, // priority
  ];
  return encode(members);
}
