/** Ranks on an existing Ray cluster, over Ray's own HTTP: nodes and what is free, guarded and leased jobs. */
export * from "./api.ts";
export * from "./error.ts";
export { GUARD_EXIT } from "./guard.ts";
export type { RayAddress } from "./http.ts";
export { RayLauncher, type RayLauncherOptions, type RayOrder } from "./launcher.ts";
export type { OwnClaim } from "./resources.ts";
export * from "./fleet.ts";
export { type RankCaller, RayScalingDriver, type RayScalingOptions } from "./scaling.ts";
