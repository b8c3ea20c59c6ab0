import type { PackStrategy } from "../config.ts";
import type { Refusal } from "../refusal.ts";
import type { NodeSnapshot, Resources } from "./snapshot.ts";

/** What is to be placed, and where it could go. */
export interface PlacementRequest {
  readonly nodes: readonly NodeSnapshot[];
  /** The platform's resource key, such as `GPU`. */
  readonly deviceKey: string;
  readonly strategy: PackStrategy;
  /** D: how many ranks. */
  readonly size: number;
  /** L: how many of them on the master node; with `strict` also the share of every other node. */
  readonly localSize: number;
  /** W: devices of one rank. */
  readonly worldSize: number;
  readonly masterIp: string;
  readonly all2allBackend?: string;
}

/** Devices of one node that a rank takes. */
export interface Share {
  readonly node: string;
  readonly ip: string;
  readonly devices: number;
}

/** Where one rank runs. */
export interface PlacedRank {
  readonly rank: number;
  /** Its position among the ranks of its (first) node. */
  readonly localRank: number;
  /** One share, or several whole nodes with `span`. The engine runs on the first. */
  readonly on: readonly Share[];
}

/** What happened to one node, for people. */
export interface NodeReport {
  readonly node: string;
  readonly ip: string;
  readonly master: boolean;
  readonly total: number;
  /** Whole devices that were free in the snapshot. */
  readonly free: number;
  readonly taken: number;
  readonly ranks: readonly number[];
  /** Why it got these ranks, or why it was passed over. */
  readonly why: string;
}

/** Every rank with its place, and every node with its reason. */
export interface Placement {
  readonly strategy: PackStrategy;
  readonly deviceKey: string;
  readonly worldSize: number;
  /** By rank: 0, 1, 2, ... without a gap. */
  readonly ranks: readonly PlacedRank[];
  readonly nodes: readonly NodeReport[];
}

/** A change to the request or to the cluster. */
export type Change =
  | { readonly kind: "strategy"; readonly to: PackStrategy }
  | { readonly kind: "local-size"; readonly to: number }
  | { readonly kind: "devices"; readonly node: string; readonly ip: string; readonly more: number }
  | { readonly kind: "nodes"; readonly more: number; readonly devices: number }
  | { readonly kind: "size"; readonly to: number };

/** Changes that together make a placement possible; nearly always one. */
export type Remedy = readonly Change[];

export interface PlacementRefusal extends Refusal {
  readonly nodes: readonly NodeReport[];
  /** Each makes the placement possible; the smallest first. */
  readonly remedies: readonly Remedy[];
}

export type PlacementAnswer =
  | { readonly ok: true; readonly plan: Placement }
  | { readonly ok: false; readonly refusals: readonly PlacementRefusal[] };

/** A Ray placement group. */
export interface PlacementGroup {
  readonly name: string;
  readonly strategy: "STRICT_PACK" | "PACK";
  readonly bundles: readonly Resources[];
}

/** So little of `node:<ip>` is asked for that it only pins, and never runs out. */
const PIN = 0.001;

/**
 * The placement group of a rank: a bundle per device and one for the engine, each pinned to its node.
 * (The original leaves additions and the engine of a spanning rank unpinned, section 9, 7.)
 */
export function groupOf(placement: Placement, { rank, on }: PlacedRank): PlacementGroup {
  const spans = placement.strategy === "span";
  const pin = (ip: string): Resources => ({ [`node:${ip}`]: PIN });
  return {
    name: `dp_rank_${rank}`,
    strategy: spans ? "PACK" : "STRICT_PACK",
    bundles: [
      ...on.flatMap((share) =>
        Array.from({ length: share.devices }, () => ({
          [placement.deviceKey]: 1,
          ...pin(share.ip),
        }))
      ),
      { CPU: 1, ...(spans ? pin(on[0]!.ip) : {}) },
    ],
  };
}

/** What to do, as one sentence. */
export function remedyText(remedy: Remedy): string {
  const text = remedy.map(changeText).join(" and ");
  return `${text[0]?.toUpperCase() ?? ""}${text.slice(1)}.`;
}

function changeText(change: Change): string {
  switch (change.kind) {
    case "strategy":
      return `use the strategy ${change.to}`;
    case "local-size":
      return `give --data-parallel-size-local ${change.to}`;
    case "devices":
      return `free ${change.more} more ${change.more === 1 ? "device" : "devices"} on ${
        change.ip || change.node
      }`;
    case "nodes": {
      const each = `${change.devices} free ${change.devices === 1 ? "device" : "devices"}`;
      return change.more === 1
        ? `add a node with ${each}`
        : `add ${change.more} nodes with ${each} each`;
    }
    case "size":
      return `give --data-parallel-size ${change.to}`;
  }
}
