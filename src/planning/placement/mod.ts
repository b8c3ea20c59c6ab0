/** Where ranks go: pure plans over a snapshot of a cluster's nodes, each with its reasons. */
export * from "./changes.ts";
export * from "./placement.ts";
export { planPlacement } from "./plan.ts";
export * from "./rollout.ts";
export * from "./scale.ts";
export { type NodeSnapshot, type Resources, sameHost } from "./snapshot.ts";
export * from "./upstream.ts";
