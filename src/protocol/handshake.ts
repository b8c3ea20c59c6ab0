/**
 * The start-up conversation (wire spec, section 2): an engine says HELLO, the front-end answers INIT, the engine
 * says READY. Both sides of each message: a coordinator decodes HELLO and READY and encodes INIT, an engine does
 * the reverse.
 *
 * Every generation of the protocol is told by which members are there, so an absent member is absent in the
 * typed message too, and null means nil.
 */
import {
  asArray,
  asArrayOf,
  asFlag,
  asInt,
  asMap,
  asPort,
  asText,
  describe,
  member,
  orNull,
} from "./fields.ts";
import { decodeIdentity } from "./identity.ts";
import { type Encodable, encode } from "./msgpack.ts";
import { readAll, type Wire, type WireMap } from "./msgpack-reader.ts";
import type { WireRank } from "./ranks.ts";
import { type Decoded, decoded, Refused } from "./refusal.ts";

/** What an engine says first. */
export type Hello = {
  readonly type: "hello";
  readonly local: boolean;
  readonly headless: boolean;
};

/** What an engine says when it has loaded. */
export type Ready = {
  readonly type: "ready";
  readonly local: boolean;
  readonly headless: boolean;
  /** 0.12 and middle releases; null when the engine has none; absent in newest, which tells it in its first frame. */
  readonly numGpuBlocks?: number | null;
  /** 0.12 and middle releases: where the coordinator publishes statistics. */
  readonly dpStatsAddress?: string | null;
  /** Only with more than one rank, and not of dense models. Opaque. */
  readonly parallelConfigHash?: string | null;
  /** External elastic engines: the port of the coordination store, 0 for none. */
  readonly coordStorePort?: number;
  /** External elastic engines. */
  readonly numRedundantExperts?: number | null;
};

/** A well-formed message with a status that this conversation does not have. */
export type UnknownStatus = {
  readonly type: "unknown-status";
  readonly status: string;
  readonly local: boolean;
  readonly headless: boolean;
};

/** Everything that an engine can say on the handshake socket. */
export type EngineHandshake = Hello | Ready | UnknownStatus;

/**
 * Where an engine finds everybody. Named from the engine's side of the bus: `coordinatorInput` is the
 * coordinator's back XPUB, `coordinatorOutput` its back PULL.
 */
export type EngineAddresses = {
  /** One per API server; the position is the client index. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly coordinatorInput: string | null;
  readonly coordinatorOutput: string | null;
  readonly frontendStatsPublish: string | null;
};

/** Settings that the engine copies onto its own parallel configuration, by their names on the wire. */
export type ParallelConfig = { readonly [key: string]: number | string | readonly number[] };

/** The answer to HELLO. */
export type Init = {
  readonly addresses: EngineAddresses;
  /** Empty for dense models of middle and newest releases. */
  readonly parallelConfig: ParallelConfig;
  /** 0.11.1 to 0.13: present, and null when there is one rank. Newer: absent. */
  readonly parallelConfigHash?: string | null;
  /** The flat form of external elastic scale-up (7.6). */
  readonly numRedundantExperts?: number | null;
};

/** The wrapped form of the answer to a joining rank (7.6). */
export type ScaleUpInit = { readonly engineMetadata: Init; readonly numRedundantExperts: number };

/** What {@link parallelConfig} makes the wire's map from. */
export type ParallelConfigFacts = {
  readonly masterIp: string;
  readonly masterPort: number;
  /** Ports of the stateless groups, taken from the end by the engine. */
  readonly masterPortList: readonly number[];
  readonly size: number;
  /** Newer external scale-up only. */
  readonly elasticEpMaxDpSize?: number;
  /** Elastic EP only; a start-up with 0 fails in the engine. */
  readonly coordStorePort?: number;
};

/** The keys of 2.2 in the original's order; optional ones only when given. */
export function parallelConfig(facts: ParallelConfigFacts): ParallelConfig {
  return {
    data_parallel_master_ip: facts.masterIp,
    data_parallel_master_port: facts.masterPort,
    _data_parallel_master_port_list: facts.masterPortList,
    data_parallel_size: facts.size,
    ...(facts.elasticEpMaxDpSize === undefined
      ? {}
      : { elastic_ep_max_dp_size: facts.elasticEpMaxDpSize }),
    ...(facts.coordStorePort === undefined ? {} : { _coord_store_port: facts.coordStorePort }),
  };
}

// ---- The coordinator's side --------------------------------------------------------------------------------

/** The payload of HELLO or READY. Unknown members are ignored. */
export function decodeEngineHandshake(payload: Uint8Array): Decoded<EngineHandshake> {
  return decoded("handshake message", () => {
    const map = asMap(readAll(payload), "");
    const status = asText(map.get("status"), "status");
    const flags = {
      local: asFlag(map.get("local"), "local"),
      headless: asFlag(map.get("headless"), "headless"),
    };
    if (status === "HELLO") return { type: "hello", ...flags };
    if (status === "READY") return { type: "ready", ...flags, ...readyMembers(map) };
    return { type: "unknown-status", status, ...flags };
  });
}

/** A handshake message as the ROUTER delivers it: exactly `[identity][payload]`, no delimiter frame. */
export function decodeHandshakeFrames(
  frames: readonly Uint8Array[],
): Decoded<{ rank: WireRank; message: EngineHandshake }> {
  const [identity, payload] = frames;
  if (frames.length !== 2 || identity === undefined || payload === undefined) {
    return decoded("handshake message", () => {
      throw new Refused("wrong-frames", "", "two frames, identity and payload", `${frames.length}`);
    });
  }
  const rank = decodeIdentity(identity);
  if (!rank.ok) return rank;
  const message = decodeEngineHandshake(payload);
  return message.ok ? { ok: true, value: { rank: rank.value, message: message.value } } : message;
}

/** INIT, the answer to HELLO. Members that the typed message has not are absent. */
export function encodeInit(init: Init): Uint8Array {
  return encode(initMap(init));
}

/** The wrapped answer to a rank that joins (7.6). */
export function encodeScaleUpInit(init: ScaleUpInit): Uint8Array {
  return encode({
    engine_metadata: initMap(init.engineMetadata),
    num_redundant_experts: init.numRedundantExperts,
  });
}

// ---- The engine's side -------------------------------------------------------------------------------------

/** HELLO or READY, with exactly the members that the message has. */
export function encodeEngineHandshake(message: EngineHandshake): Uint8Array {
  const status = message.type === "unknown-status" ? message.status : message.type.toUpperCase();
  const flags = { status, local: message.local, headless: message.headless };
  if (message.type !== "ready") return encode(flags);
  return encode({
    ...flags,
    ...given("num_gpu_blocks", message.numGpuBlocks),
    ...given("dp_stats_address", message.dpStatsAddress),
    ...given("parallel_config_hash", message.parallelConfigHash),
    ...given("coord_store_port", message.coordStorePort),
    ...given("num_redundant_experts", message.numRedundantExperts),
  });
}

/** INIT as strictly as a real engine reads it: anything that would kill one is refused (2.2). */
export function decodeInit(payload: Uint8Array): Decoded<Init> {
  return decoded("INIT", () => initOf(asMap(readAll(payload), ""), ""));
}

/** The wrapped answer of 7.6. */
export function decodeScaleUpInit(payload: Uint8Array): Decoded<ScaleUpInit> {
  return decoded("scale-up INIT", () => {
    const map = asMap(readAll(payload), "");
    const at = "engine_metadata";
    return {
      engineMetadata: initOf(asMap(map.get(at), at), at),
      numRedundantExperts: asInt(map.get("num_redundant_experts"), "num_redundant_experts", 0),
    };
  });
}

// ---- Internals ---------------------------------------------------------------------------------------------

const given = (key: string, value: Encodable | undefined): { [key: string]: Encodable } =>
  value === undefined ? {} : { [key]: value };

type Read<T> = (value: Wire | undefined, at: string) => T;

const optional = <T>(map: WireMap, key: string, read: Read<T>): T | undefined =>
  map.has(key) ? read(map.get(key), key) : undefined;
const optionalOrNull = <T>(map: WireMap, key: string, read: Read<T>): T | null | undefined =>
  map.has(key) ? orNull(read, map.get(key), key) : undefined;
const asCount = (value: Wire | undefined, at: string): number => asInt(value, at, 0);

function readyMembers(map: WireMap): Omit<Ready, "type" | "local" | "headless"> {
  const numGpuBlocks = optionalOrNull(map, "num_gpu_blocks", asCount);
  const dpStatsAddress = optionalOrNull(map, "dp_stats_address", asText);
  const parallelConfigHash = optionalOrNull(map, "parallel_config_hash", asText);
  const coordStorePort = optional(map, "coord_store_port", asPort);
  const numRedundantExperts = optionalOrNull(map, "num_redundant_experts", asCount);
  return {
    ...(numGpuBlocks === undefined ? {} : { numGpuBlocks }),
    ...(dpStatsAddress === undefined ? {} : { dpStatsAddress }),
    ...(parallelConfigHash === undefined ? {} : { parallelConfigHash }),
    ...(coordStorePort === undefined ? {} : { coordStorePort }),
    ...(numRedundantExperts === undefined ? {} : { numRedundantExperts }),
  };
}

function initMap(init: Init): { [key: string]: Encodable } {
  const { addresses } = init;
  return {
    addresses: {
      inputs: addresses.inputs,
      outputs: addresses.outputs,
      coordinator_input: addresses.coordinatorInput,
      coordinator_output: addresses.coordinatorOutput,
      frontend_stats_publish_address: addresses.frontendStatsPublish,
    },
    parallel_config: init.parallelConfig,
    ...given("parallel_config_hash", init.parallelConfigHash),
    ...given("num_redundant_experts", init.numRedundantExperts),
  };
}

function initOf(map: WireMap, at: string): Init {
  const addressesAt = member(at, "addresses");
  const addresses = asMap(map.get("addresses"), addressesAt);
  const of = (key: string) => [addresses.get(key), member(addressesAt, key)] as const;
  const hash = map.get("parallel_config_hash");
  const redundant = map.get("num_redundant_experts");
  return {
    addresses: {
      inputs: asArrayOf(asText, ...of("inputs")),
      outputs: asArrayOf(asText, ...of("outputs")),
      coordinatorInput: orNull(asText, ...of("coordinator_input")),
      coordinatorOutput: orNull(asText, ...of("coordinator_output")),
      frontendStatsPublish: orNull(asText, ...of("frontend_stats_publish_address")),
    },
    parallelConfig: parallelConfigOf(
      asMap(map.get("parallel_config"), member(at, "parallel_config")),
      member(at, "parallel_config"),
    ),
    ...(hash === undefined
      ? {}
      : { parallelConfigHash: orNull(asText, hash, member(at, "parallel_config_hash")) }),
    ...(redundant === undefined ? {} : {
      numRedundantExperts: orNull(asInt, redundant, member(at, "num_redundant_experts")),
    }),
  };
}

function parallelConfigOf(map: WireMap, at: string): ParallelConfig {
  const entries: [string, number | string | number[]][] = [];
  for (const [key, value] of map) {
    if (typeof key !== "string") {
      throw new Refused("wrong-type", at, "keys that are text", describe(key));
    }
    const path = member(at, key);
    if (typeof value === "string") entries.push([key, value]);
    else if (Array.isArray(value)) {
      entries.push([key, asArrayOf(asInt, asArray(value, path), path)]);
    } else if (typeof value === "number" || typeof value === "bigint") {
      entries.push([key, asInt(value, path)]);
    } else {
      throw new Refused("wrong-type", path, "an integer, text or an array", describe(value));
    }
  }
  return Object.fromEntries(entries);
}
