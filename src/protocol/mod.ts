/**
 * Bytes to typed messages and back: what vLLM engines, front-ends and coordinators say to each other.
 * Pure, without a clock, and it runs in a browser. Decoders answer `Decoded<T>`; they never throw.
 */
export { type Decoded, type Refusal, type RefusalCode } from "./refusal.ts";
export * from "./ranks.ts";
export * from "./identity.ts";
export * from "./hex.ts";
export {
  type Encodable,
  encode,
  Entries,
  Ext,
  Float,
  MAX_DEPTH,
  UnencodableError,
} from "./msgpack.ts";
export {
  CONTROL_LIMITS,
  DATA_LIMITS,
  type Limits,
  type Wire,
  type WireMap,
} from "./msgpack-reader.ts";
export * from "./handshake.ts";
export * from "./first-frame.ts";
export { type Json, jsonToWire, wireToJson } from "./json.ts";
export {
  decodeUtilityCall,
  encodeUtilityCall,
  type PauseMode,
  utilities,
  type Utility,
  type UtilityCall,
  type UtilityOutput,
  utilityReply,
} from "./utilities.ts";
export * from "./engine-requests.ts";
export * from "./engine-outputs.ts";
export * from "./notifications.ts";
export * from "./coordinator-bus.ts";
export * from "./reconfigure.ts";
export * from "./scaling-store.ts";
