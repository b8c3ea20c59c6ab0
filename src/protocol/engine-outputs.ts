/**
 * What an engine sends on its output sockets (wire spec, 4.5): outputs of requests, statistics, replies of utilities,
 * wave events; and what it sends to the coordinator (client -1), in the same form.
 */
import { asArray, asArrayOf, asInt, asMap, asNumber, asText, describe, orNull } from "./fields.ts";
import { type Encodable, encode, Float } from "./msgpack.ts";
import { DATA_LIMITS, readAll, Reader, type Wire } from "./msgpack-reader.ts";
import { MAX_RANK } from "./ranks.ts";
import { type Decoded, decoded, Refused } from "./refusal.ts";
import { type UtilityOutput, utilityOutputOf, utilityOutputWire } from "./utilities.ts";

/** The part of the scheduler's statistics that the control plane reads. */
export type SchedulerStats = {
  readonly running: number;
  readonly waiting: number;
  readonly stepCounter: number;
  readonly currentWave: number;
  /** A fraction; 0 when the engine does not say. */
  readonly kvCacheUsage: number;
};

/** One message of an engine. */
export type EngineOutputs = {
  readonly type: "outputs";
  readonly engineIndex: number;
  /** How many outputs of requests it holds. They are passed on as bytes; see {@link decodeRequestOutputs}. */
  readonly outputCount: number;
  readonly schedulerStats: SchedulerStats | null;
  /** Monotonic seconds of the sender. */
  readonly timestamp: number;
  readonly utilityOutput: UtilityOutput | null;
  readonly finishedRequests: readonly string[] | null;
  /** The wave that ended; 0 is a value. */
  readonly waveComplete: number | null;
  readonly startWave: number | null;
  /** Frames behind the main one: tensors, passed on as they are. */
  readonly auxFrames: number;
};

/** The engine says that it is dying. */
export type EngineDead = { readonly type: "engine-dead" };

/** Why a request ended, by its number on the wire. */
export const FINISH_REASONS: readonly ["stop", "length", "abort", "error", "repetition"] = [
  "stop",
  "length",
  "abort",
  "error",
  "repetition",
];
export type FinishReason = (typeof FINISH_REASONS)[number];

/** The beginning of one request's output. */
export type RequestOutput = {
  readonly requestId: string;
  readonly newTokenIds: readonly number[];
  readonly finishReason: FinishReason | null;
};

/** The single raw frame of a dying engine, sent to every output socket. */
export const ENGINE_CORE_DEAD: Uint8Array = new TextEncoder().encode("ENGINE_CORE_DEAD");

/** A message on the front-end's PULL, or on the coordinator's. */
export function decodeEngineOutputs(
  frames: readonly Uint8Array[],
): Decoded<EngineOutputs | EngineDead> {
  return decoded("engine outputs", () => {
    const main = frames[0];
    if (main === undefined) throw new Refused("wrong-frames", "", "a main frame", "none");
    if (frames.length === 1 && isDead(main)) return { type: "engine-dead" };
    return outputsOf(main, frames.length - 1);
  });
}

/** The outputs of requests in a main frame, for simulated front-ends. */
export function decodeRequestOutputs(main: Uint8Array): Decoded<readonly RequestOutput[]> {
  return decoded("request outputs", () => {
    const [, outputs] = asArray(readAll(main, DATA_LIMITS), "");
    return (outputs === undefined ? [] : asArray(outputs, "outputs")).map((value, i) => {
      const at = `outputs[${i}]`;
      const [requestId, tokens, , , , reason] = asArray(value, at);
      const index = orNull(asInt, reason, `${at}.finish_reason`);
      return {
        requestId: asText(requestId, `${at}.request_id`),
        newTokenIds: asArrayOf(asInt, tokens ?? [], `${at}.new_token_ids`),
        finishReason: index === null ? null : FINISH_REASONS[index] ?? "error",
      };
    });
  });
}

/** What {@link encodeEngineOutputs} fills with defaults. */
export type OutputsToSend = Partial<Omit<EngineOutputs, "type" | "outputCount" | "auxFrames">> & {
  readonly engineIndex: number;
  readonly outputs?: readonly RequestOutput[];
};

/** The main frame of an engine's message; all eight elements, as the original's encoder writes them. */
export function encodeEngineOutputs(message: OutputsToSend): Uint8Array {
  const { utilityOutput, schedulerStats } = message;
  return encode([
    message.engineIndex,
    (message.outputs ?? []).map(requestOutputWire),
    schedulerStats === undefined || schedulerStats === null ? null : statsWire(schedulerStats),
    new Float(message.timestamp ?? 0),
    utilityOutput === undefined || utilityOutput === null ? null : utilityOutputWire(utilityOutput),
    message.finishedRequests ?? null,
    message.waveComplete ?? null,
    message.startWave ?? null,
  ]);
}

// ---- Internals ---------------------------------------------------------------------------------------------

const isDead = (frame: Uint8Array): boolean =>
  frame.length === ENGINE_CORE_DEAD.length &&
  ENGINE_CORE_DEAD.every((byte, i) => byte === frame[i]);

/** Shorter arrays have defaults, longer ones are read as far as they are known, as the original's decoder does. */
function outputsOf(main: Uint8Array, auxFrames: number): EngineOutputs {
  const reader = new Reader(main, DATA_LIMITS);
  const length = reader.arrayLength();
  if (length === undefined) {
    throw new Refused("wrong-type", "", "an array", describe(readAll(main, DATA_LIMITS)));
  }
  const members: Wire[] = [];
  let outputCount = 0;
  let schedulerStats: SchedulerStats | null = null;
  for (let i = 0; i < length; i++) {
    if (i === 1) outputCount = skipArray(reader);
    else if (i === 2) schedulerStats = statsFrom(reader);
    else if (i < 8) members[i] = reader.value();
    else reader.skip();
  }
  reader.end();
  const count = (value: Wire | undefined, at: string) => asInt(value, at, 0);
  return {
    type: "outputs",
    engineIndex: asInt(members[0] ?? 0, "engine_index", 0, MAX_RANK),
    outputCount,
    schedulerStats,
    timestamp: asNumber(members[3] ?? 0, "timestamp"),
    utilityOutput: orNull(utilityOutputOf, members[4], "utility_output"),
    finishedRequests: orNull((v, at) => asArrayOf(asText, v, at), members[5], "finished_requests"),
    waveComplete: orNull(count, members[6], "wave_complete"),
    startWave: orNull(count, members[7], "start_wave"),
    auxFrames,
  };
}

function skipArray(reader: Reader): number {
  const length = reader.arrayLength();
  if (length === undefined) {
    const value = reader.value();
    throw new Refused("wrong-type", "outputs", "an array", describe(value));
  }
  for (let i = 0; i < length; i++) reader.skip();
  return length;
}

const STATS_KEYS = [
  "num_running_reqs",
  "num_waiting_reqs",
  "step_counter",
  "current_wave",
  "kv_cache_usage",
];
const STATS_KEY_BYTES = STATS_KEYS.map((key) => new TextEncoder().encode(key));

/** Of the many statistics only five matter here, and there are ten thousand messages a second: the rest is not decoded. */
function statsFrom(reader: Reader): SchedulerStats | null {
  const at = "scheduler_stats";
  const picked = reader.pick(STATS_KEY_BYTES);
  if (picked === undefined) return orNull(asMap, reader.value(), at) as null;
  const count = (i: number) => asInt(picked[i] ?? 0, `${at}.${STATS_KEYS[i]}`, 0);
  return {
    running: count(0),
    waiting: count(1),
    stepCounter: count(2),
    currentWave: count(3),
    kvCacheUsage: asNumber(picked[4] ?? 0, `${at}.${STATS_KEYS[4]}`),
  };
}

/** The newest release's map, in its order, with its defaults for what the control plane does not read. */
function statsWire(stats: SchedulerStats): { [key: string]: Encodable } {
  return {
    num_running_reqs: stats.running,
    num_waiting_reqs: stats.waiting,
    step_counter: stats.stepCounter,
    current_wave: stats.currentWave,
    kv_cache_usage: new Float(stats.kvCacheUsage),
    encoder_cache_usage: new Float(0),
    prefix_cache_stats: {
      reset: false,
      requests: 0,
      queries: 0,
      hits: 0,
      preempted_requests: 0,
      preempted_queries: 0,
      preempted_hits: 0,
    },
    connector_prefix_cache_stats: null,
    kv_cache_eviction_events: [],
    spec_decoding_stats: null,
    kv_connector_stats: null,
    waiting_lora_adapters: {},
    running_lora_adapters: {},
    cudagraph_stats: null,
    perf_stats: null,
  };
}

function requestOutputWire(output: RequestOutput): Encodable {
  const reason = output.finishReason === null ? null : FINISH_REASONS.indexOf(output.finishReason);
  return [output.requestId, output.newTokenIds, null, null, null, reason];
}
