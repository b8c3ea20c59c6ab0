/**
 * `ReconfigureDistributedRequest` (wire spec, 7.4): what an engine is asked to become. As an argument of the
 * utility `reinitialize_distributed`, and as the bootstrap record of an external scaling operation.
 */
import { asArrayOf, asInt, asMap, asPort, asText } from "./fields.ts";
import { type Json, jsonToWire } from "./json.ts";
import { encode } from "./msgpack.ts";
import { readAll } from "./msgpack-reader.ts";
import { type Decoded, decoded } from "./refusal.ts";

/** The engine keeps the rank that it has. */
export const KEEP_CURRENT_RANK = -1;
/** The engine leaves. */
export const SHUTDOWN_CURRENT_RANK = -2;

/**
 * The target topology. Three generations are told by their members: 0.10 to 0.12 have the first five, later ones
 * also the port list and the store's port, newest also the operation id.
 */
export type ReconfigureRequest = {
  readonly newDataParallelSize: number;
  /** {@link KEEP_CURRENT_RANK}, {@link SHUTDOWN_CURRENT_RANK}, or the new rank. */
  readonly newDataParallelRank: number;
  readonly newDataParallelRankLocal: number;
  readonly newDataParallelMasterIp: string;
  readonly newDataParallelMasterPort: number;
  readonly newDataParallelMasterPortList?: readonly number[];
  readonly coordStorePort?: number;
  readonly operationId?: string;
};

/** The request as the wire's map, in the wire's order. */
export function reconfigureMap(
  request: ReconfigureRequest,
): { readonly [key: string]: number | string | readonly number[] } {
  const optional = {
    new_data_parallel_master_port_list: request.newDataParallelMasterPortList,
    coord_store_port: request.coordStorePort,
    operation_id: request.operationId,
  };
  return {
    new_data_parallel_size: request.newDataParallelSize,
    new_data_parallel_rank: request.newDataParallelRank,
    new_data_parallel_rank_local: request.newDataParallelRankLocal,
    new_data_parallel_master_ip: request.newDataParallelMasterIp,
    new_data_parallel_master_port: request.newDataParallelMasterPort,
    ...Object.fromEntries(Object.entries(optional).filter((entry) => entry[1] !== undefined)) as {
      [key: string]: number | string | readonly number[];
    },
  };
}

/** The bytes of the bootstrap record. */
export function encodeReconfigureRequest(request: ReconfigureRequest): Uint8Array {
  return encode(reconfigureMap(request));
}

/** The same from a value, as it is an argument of the utility. */
export const reconfigureRequestOf = (value: Json): Decoded<ReconfigureRequest> =>
  decodeReconfigureRequest(encode(jsonToWire(value)));

/** Reads any generation, as a map only; members of no generation are ignored. */
export function decodeReconfigureRequest(bytes: Uint8Array): Decoded<ReconfigureRequest> {
  return decoded("ReconfigureDistributedRequest", () => {
    const map = asMap(readAll(bytes), "");
    const int = (key: string, min: number) => asInt(map.get(key), key, min);
    const list = "new_data_parallel_master_port_list";
    return {
      newDataParallelSize: int("new_data_parallel_size", 1),
      newDataParallelRank: int("new_data_parallel_rank", SHUTDOWN_CURRENT_RANK),
      newDataParallelRankLocal: int("new_data_parallel_rank_local", SHUTDOWN_CURRENT_RANK),
      newDataParallelMasterIp: asText(
        map.get("new_data_parallel_master_ip"),
        "new_data_parallel_master_ip",
      ),
      newDataParallelMasterPort: asPort(
        map.get("new_data_parallel_master_port"),
        "new_data_parallel_master_port",
      ),
      ...(map.has(list)
        ? { newDataParallelMasterPortList: asArrayOf(asPort, map.get(list), list) }
        : {}),
      ...(map.has("coord_store_port")
        ? { coordStorePort: asPort(map.get("coord_store_port"), "coord_store_port") }
        : {}),
      ...(map.has("operation_id")
        ? { operationId: asText(map.get("operation_id"), "operation_id") }
        : {}),
    };
  });
}
