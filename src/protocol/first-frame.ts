/**
 * The first frame that an engine sends on every input socket (wire spec, 4.2): empty in old releases, a map in
 * newer ones. Until it has arrived, a ROUTER cannot address the engine.
 */
import { asInt, asMap, asNumber, asPort, asText, orNull } from "./fields.ts";
import { type Json, jsonToWire, wireToJson } from "./json.ts";
import { type Encodable, encode, Float } from "./msgpack.ts";
import { readAll, type Wire } from "./msgpack-reader.ts";
import { type Decoded, decoded, Refused } from "./refusal.ts";

/** What a newer engine tells. Members differ by release; what is absent on the wire is absent here. */
export type EngineFacts = {
  readonly maxModelLen?: number | null;
  readonly numGpuBlocks?: number | null;
  readonly blockSize?: number | null;
  readonly dpStatsAddress?: string | null;
  readonly dtype?: Json;
  readonly vllmVersion?: Json;
  readonly worldSize?: number | null;
  readonly dataParallelSize?: number | null;
  readonly tensorParallelSize?: Json;
  readonly pipelineParallelSize?: Json;
  readonly decodeContextParallelSize?: Json;
  readonly dataParallelRank?: number | null;
  readonly maxNumSeqs?: Json;
  readonly maxNumBatchedTokens?: Json;
  readonly instanceId?: Json;
  readonly supportsLora?: Json;
  readonly maxLoras?: Json;
  readonly mambaBlockSize?: Json;
  readonly kvCacheSizeTokens?: number | null;
  readonly kvCacheMaxConcurrency?: number | null;
  readonly kvEventsConfig?: Json;
  readonly weightTransferBackend?: Json;
  readonly enableSleepMode?: Json;
  readonly supportsDraftWeightUpdates?: Json;
  /** External elastic engines: 0 means none. */
  readonly coordStorePort?: number | null;
  readonly coordinatorInputAddress?: string | null;
  readonly coordinatorOutputAddress?: string | null;
};

/** The first frame: without facts in old releases. */
export type FirstFrame = { readonly type: "first-frame"; readonly facts: EngineFacts | null };

type Read = (value: Wire | undefined, at: string) => Json;
const count: Read = (value, at) => asInt(value, at, 0);
/** For people only: any value will do. */
const shown: Read = (value) => wireToJson(value ?? null);

/** The wire's members in their order. Those that decide something have a type, the others are shown as they are. */
const MEMBERS: readonly (readonly [string, keyof EngineFacts, Read])[] = [
  ["max_model_len", "maxModelLen", count],
  ["num_gpu_blocks", "numGpuBlocks", count],
  ["block_size", "blockSize", count],
  ["dp_stats_address", "dpStatsAddress", asText],
  ["dtype", "dtype", shown],
  ["vllm_version", "vllmVersion", shown],
  ["world_size", "worldSize", count],
  ["data_parallel_size", "dataParallelSize", count],
  ["tensor_parallel_size", "tensorParallelSize", shown],
  ["pipeline_parallel_size", "pipelineParallelSize", shown],
  ["decode_context_parallel_size", "decodeContextParallelSize", shown],
  ["data_parallel_rank", "dataParallelRank", count],
  ["max_num_seqs", "maxNumSeqs", shown],
  ["max_num_batched_tokens", "maxNumBatchedTokens", shown],
  ["instance_id", "instanceId", shown],
  ["supports_lora", "supportsLora", shown],
  ["max_loras", "maxLoras", shown],
  ["mamba_block_size", "mambaBlockSize", shown],
  ["kv_cache_size_tokens", "kvCacheSizeTokens", count],
  ["kv_cache_max_concurrency", "kvCacheMaxConcurrency", asNumber],
  ["kv_events_config", "kvEventsConfig", shown],
  ["weight_transfer_backend", "weightTransferBackend", shown],
  ["enable_sleep_mode", "enableSleepMode", shown],
  ["supports_draft_weight_updates", "supportsDraftWeightUpdates", shown],
  ["coord_store_port", "coordStorePort", asPort],
  ["coordinator_input_address", "coordinatorInputAddress", asText],
  ["coordinator_output_address", "coordinatorOutputAddress", asText],
];

/** The payload frame of an engine's first message. */
export function decodeFirstFrame(payload: Uint8Array): Decoded<FirstFrame> {
  if (payload.length === 0) return { ok: true, value: { type: "first-frame", facts: null } };
  return decoded("first frame", () => {
    const map = asMap(readAll(payload), "");
    const entries = MEMBERS.filter(([wire]) => map.has(wire))
      .map(([wire, name, read]) => [name, orNull(read, map.get(wire), wire)]);
    return { type: "first-frame", facts: Object.fromEntries(entries) as EngineFacts };
  });
}

/** The first frame's payload, with the members that the facts have. */
export function encodeFirstFrame(frame: FirstFrame): Uint8Array {
  if (frame.facts === null) return new Uint8Array(0);
  const map: { [key: string]: Encodable } = {};
  for (const [wire, name] of MEMBERS) {
    const value = frame.facts[name];
    if (value === undefined) continue;
    map[wire] = name === "kvCacheMaxConcurrency" && typeof value === "number"
      ? new Float(value)
      : jsonToWire(value);
  }
  return encode(map);
}

/** What a front-end knows of all its engines together (4.2). */
export type FoldedFacts = {
  /** The smallest. */
  readonly maxModelLen: number | null;
  /** The sum, as the original keeps it. */
  readonly numGpuBlocks: number | null;
  readonly blockSize: number | null;
  readonly kvCacheSizeTokens: number | null;
  readonly kvCacheMaxConcurrency: number | null;
  readonly dpStatsAddress: string | null;
  readonly coordStorePort: number | null;
  readonly coordinatorInputAddress: string | null;
  readonly coordinatorOutputAddress: string | null;
};

/**
 * Folds the facts of several engines in the order of their arrival. Refuses engines that name different
 * addresses or coordination ports, where the original fails an assertion.
 */
export function foldEngineFacts(all: readonly EngineFacts[]): Decoded<FoldedFacts> {
  return decoded("first frames", () => {
    const values = <K extends keyof EngineFacts>(key: K) =>
      all.map((facts) => facts[key]).filter((value) => value !== undefined && value !== null);
    const first = <K extends keyof EngineFacts>(key: K) => values(key)[0] ?? null;
    const agreed = <K extends keyof EngineFacts>(key: K) => {
      const named = values(key).filter((value) => value !== 0);
      const other = named.find((value) => value !== named[0]);
      if (other === undefined) return named[0] ?? null;
      throw new Refused("wrong-value", key, `what the first engine said, ${named[0]}`, `${other}`);
    };
    const numbers = (key: keyof EngineFacts) => values(key) as number[];
    const lengths = numbers("maxModelLen");
    const blocks = numbers("numGpuBlocks");
    return {
      maxModelLen: lengths.length === 0 ? null : Math.min(...lengths),
      numGpuBlocks: blocks.length === 0 ? null : blocks.reduce((sum, n) => sum + n, 0),
      blockSize: numbers("blockSize").at(-1) ?? null,
      kvCacheSizeTokens: first("kvCacheSizeTokens") as number | null,
      kvCacheMaxConcurrency: first("kvCacheMaxConcurrency") as number | null,
      dpStatsAddress: agreed("dpStatsAddress") as string | null,
      coordStorePort: agreed("coordStorePort") as number | null,
      coordinatorInputAddress: agreed("coordinatorInputAddress") as string | null,
      coordinatorOutputAddress: agreed("coordinatorOutputAddress") as string | null,
    };
  });
}
