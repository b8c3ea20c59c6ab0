import { bareHost, ipv6Groups } from "../endpoint.ts";

/** Amounts by resource name, as Ray counts them. */
export type Resources = Readonly<Record<string, number>>;

/** One node at the moment of the snapshot, in Ray's shape. */
export interface NodeSnapshot {
  /** Ray's node id, or any other name that is unique. */
  readonly id: string;
  /** Its address, where it is known apart from the `node:` key. */
  readonly ip?: string;
  /** False: listed and gone. */
  readonly alive?: boolean;
  /** What is free. Ray leaves out what is used up. Null: nobody knows. */
  readonly available: Resources | null;
  /** What the node has in all. */
  readonly total?: Resources;
}

/** Every node has a resource named after its address. */
const ADDRESS_KEY = "node:";
/** The key that only the head of a Ray cluster has. */
const HEAD_KEY = "node:__internal_head__";
/** A resource of a placement group's own: `node:10.0.0.1_group_<id>`, `GPU_group_0_<id>`. */
const GROUP_KEY = /_group_/;
/** Sums of fractions leave dust (0.0010000000000000009): nearer than this to a whole number is that number. */
const DUST = 1e-6;

/** The addresses that a node's resource keys name; a node of a healthy cluster has exactly one. */
export const addressKeys = (resources: Resources): string[] =>
  Object.keys(resources)
    .filter((key) => key.startsWith(ADDRESS_KEY) && key !== HEAD_KEY && !GROUP_KEY.test(key))
    .map((key) => key.slice(ADDRESS_KEY.length));

/** Whole devices in a resource map; a key that is not there is none. */
export const wholeDevices = (resources: Resources | null | undefined, key: string): number =>
  Math.max(0, Math.floor((resources?.[key] ?? 0) + DUST));

/** Are two addresses the same host, however they are written? */
export function sameHost(a: string, b: string): boolean {
  const one = ipv6Groups(a);
  const other = ipv6Groups(b);
  return one && other
    ? one.every((group, i) => group === other[i])
    : bareHost(a).toLowerCase() === bareHost(b).toLowerCase();
}

/** A node as the planner sees it. */
export interface Candidate {
  readonly id: string;
  readonly ip: string;
  readonly master: boolean;
  /** Whole devices that are free. */
  readonly free: number;
  readonly total: number;
  /** Why the node cannot be used at all; undefined when it can. */
  readonly unusable?: string;
}

/** The nodes as candidates, the master first, otherwise in the order of the snapshot. */
export function candidates(
  nodes: readonly NodeSnapshot[],
  deviceKey: string,
  masterIp: string,
): Candidate[] {
  const all = nodes.map((node) => candidate(node, deviceKey, masterIp));
  return [...all.filter((n) => n.master), ...all.filter((n) => !n.master)];
}

function candidate(node: NodeSnapshot, deviceKey: string, masterIp: string): Candidate {
  const keys = addressKeys({ ...node.total, ...node.available });
  const ip = node.ip ?? keys[0] ?? "";
  const unusable = node.alive === false
    ? "it is not alive"
    : ip === ""
    ? "it has no address (no node:<ip> resource)"
    : node.ip === undefined && keys.length > 1
    ? `it has ${keys.length} addresses (${keys.join(", ")})`
    : node.available === null
    ? "its free resources are not known"
    : undefined;
  return {
    id: node.id,
    ip,
    master: unusable === undefined && sameHost(ip, masterIp),
    free: unusable === undefined ? wholeDevices(node.available, deviceKey) : 0,
    total: wholeDevices(node.total ?? node.available, deviceKey),
    ...(unusable === undefined ? {} : { unusable }),
  };
}
