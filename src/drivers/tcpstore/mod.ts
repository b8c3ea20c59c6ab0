/**
 * PyTorch's TCPStore in TypeScript: a server that torch's clients believe, and a client for torch's servers. Both run
 * alone, without the rest of Muster.
 * @module
 */
export { TcpStoreClient, type TcpStoreClientOptions } from "./client.ts";
export type { ConnectOptions } from "./connect.ts";
export { TcpStoreError, type TcpStoreErrorCode, type TcpStoreErrorDetail } from "./errors.ts";
export { type KeyChange, KeyObservation, type ObserveOptions, POLL_PAUSES_MS } from "./observe.ts";
export {
  type HostedStore,
  type HostedStoreInfo,
  type HostedStoreOptions,
  hostStore,
} from "./hosted.ts";
export { PrefixStore } from "./prefix.ts";
export {
  SERVER_LIMITS,
  type StoreCloseCode,
  type StoreServerLimits,
  type StoreServerOptions,
  type StoreServerStats,
  type StoreStranger,
} from "./server-options.ts";
export { TcpStoreServer } from "./server.ts";
export type { CallOptions, Store, StoreValue, WriteOptions } from "./store.ts";
