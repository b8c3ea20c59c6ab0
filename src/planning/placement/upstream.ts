import type { PlacementGroup } from "./placement.ts";
import type { Resources } from "./snapshot.ts";

/**
 * The original planner, answer for answer (section 8, executed), its defects included: for `compat: "upstream"` and
 * for showing where the default differs. Errors carry Python's class and text.
 */
export interface UpstreamRequest {
  /** Node ids with what is free, in Ray's order. */
  readonly nodes: readonly (readonly [id: string, available: Resources])[];
  readonly deviceKey: string;
  readonly strategy: string;
  readonly size: number;
  readonly localSize: number;
  readonly worldSize: number;
  readonly masterIp: string;
  readonly all2allBackend: string;
}

export interface UpstreamError {
  readonly type: "AssertionError" | "ValueError" | "KeyError" | "IndexError";
  readonly message: string;
}

export interface UpstreamAnswer {
  /** Groups that were really created, also when an error followed: those leak (section 9, 2). */
  readonly groups: readonly PlacementGroup[];
  readonly localRanks: readonly number[];
  readonly error: UpstreamError | null;
}

class Raised extends Error {
  readonly type: UpstreamError["type"];
  constructor(type: UpstreamError["type"], message: string) {
    super(message);
    this.type = type;
  }
}
function assertPy(truth: boolean, message: string): void {
  if (!truth) throw new Raised("AssertionError", message);
}

/** `create_dp_placement_groups` of the original (section 8.1). */
export function createUpstream(request: UpstreamRequest): UpstreamAnswer {
  return answer((groups, localRanks) => create(request, groups, localRanks));
}

function answer(
  body: (groups: PlacementGroup[], localRanks: number[]) => void,
): UpstreamAnswer {
  const groups: PlacementGroup[] = [];
  const localRanks: number[] = [];
  try {
    body(groups, localRanks);
    return { groups, localRanks, error: null };
  } catch (error) {
    if (!(error instanceof Raised)) throw error;
    return { groups, localRanks, error: { type: error.type, message: error.message } };
  }
}

function create(r: UpstreamRequest, groups: PlacementGroup[], localRanks: number[]): void {
  const { deviceKey: key, strategy, size, localSize, worldSize, masterIp } = r;
  const isMaster = ([, resources]: readonly [string, Resources]) =>
    Object.hasOwn(resources, `node:${masterIp}`);
  const nodes = [...r.nodes.filter(isMaster), ...r.nodes.filter((n) => !isMaster(n))];
  assertPy(nodes.length > 0, "No nodes with resources found in Ray cluster.");
  assertPy(isMaster(nodes[0]!), `The DP master node (ip: ${masterIp}) is missing or dead`);
  const counts = nodes.flatMap(([, res]) => Object.hasOwn(res, key) ? [Math.trunc(res[key]!)] : []);
  assertPy(counts.length > 0, `No ${key} found in Ray cluster.`);
  const most = Math.max(...counts);
  checkStrategy(r, counts, most);
  let collected: Resources[] = [];
  for (const [, resources] of nodes) {
    const ip = nodeIp(resources);
    const devices = Math.trunc(resources[key] ?? 0);
    const capacity = strategy === "span" && devices !== 0 ? 1 : Math.floor(devices / worldSize);
    let take = capacity;
    if (ip === masterIp) {
      if (capacity < localSize) {
        throw new Raised(
          "ValueError",
          `Not enough resources to allocate ${localSize} DP ranks on DP master node ${masterIp}, ` +
            `possible to fit ${capacity} DP ranks.`,
        );
      }
      take = localSize;
    } else if (strategy === "strict") {
      if (capacity < localSize) continue;
      take = localSize;
    }
    const bundle = { [key]: 1, [`node:${ip}`]: 0.001 };
    for (let i = 0; i < take; i++) {
      if (strategy === "span") {
        collected.push(...Array.from({ length: devices }, () => bundle));
        assertPy(collected.length <= worldSize, "More bundles collected than the world size");
        if (collected.length < worldSize) continue;
      } else {
        collected = Array.from({ length: worldSize }, () => bundle);
      }
      groups.push({
        name: `dp_rank_${groups.length}`,
        strategy: strategy === "span" ? "PACK" : "STRICT_PACK",
        bundles: [...collected, { CPU: 1 }],
      });
      collected = [];
      localRanks.push(i);
      if (groups.length === size) break;
    }
  }
  if (groups.length < size) {
    throw new Raised(
      "ValueError",
      `Not enough resources to allocate ${size} placement groups, only created ${groups.length} ` +
        `placement groups. Available resources: ${pythonDict(r.nodes)}`,
    );
  }
  assertPy(
    groups.length === size,
    `Created ${groups.length} DP placement groups, expected ${size}`,
  );
}

function checkStrategy(r: UpstreamRequest, counts: readonly number[], most: number): void {
  const { strategy, size, localSize, worldSize } = r;
  if (!["strict", "fill", "span"].includes(strategy)) {
    throw new Raised(
      "ValueError",
      `${strategy} is not supported. Make sure to set \`VLLM_RAY_DP_PACK_STRATEGY\` ` +
        "to one of ('strict', 'fill', 'span')",
    );
  }
  if (
    strategy === "fill" &&
    ["deepep_high_throughput", "deepep_low_latency"].includes(r.all2allBackend)
  ) {
    throw new Raised(
      "ValueError",
      "DeepEP kernels require EP ranks [0,7] (same for [8,15], ...) to be on the same node, " +
        "but VLLM_RAY_DP_PACK_STRATEGY=fill does not guarantee that. " +
        "Please use VLLM_RAY_DP_PACK_STRATEGY=strict instead.",
    );
  }
  if (strategy !== "span") return;
  assertPy(
    worldSize > most,
    `World size ${worldSize} is smaller than the maximum number of devices per node ${most}. ` +
      "Make sure to set `VLLM_RAY_DP_PACK_STRATEGY` to `strict` or `fill`",
  );
  assertPy(counts.every((n) => n === most), "Nodes are not homogenous");
  assertPy(worldSize % most === 0, `world_size (${worldSize}) is not a multiple of ${most}`);
  assertPy(
    counts.length * most >= worldSize * size,
    `Not enough total available nodes (${counts.length}) and devices per node (${most}) ` +
      `to satisfy required world size ${worldSize} and data parallel size ${size}`,
  );
  assertPy(localSize === 1, `data-parallel-size-local ${localSize} should be 1`);
}

/** The second field of the one `node:` key: an IPv6 address is cut at its first colon. */
function nodeIp(resources: Resources): string {
  const keys = Object.keys(resources)
    .filter((k) => k.startsWith("node:") && k !== "node:__internal_head__");
  assertPy(keys.length === 1, "Zero or multiple node IP keys found in node resources");
  return keys[0]!.split(":")[1]!;
}

export interface UpstreamAddRequest {
  readonly nodes: readonly { readonly node_id: string; readonly node_ip: string }[];
  readonly available: Readonly<Record<string, Resources>>;
  readonly total: Readonly<Record<string, Resources>>;
  readonly deviceKey: string;
  readonly oldSize: number;
  readonly newSize: number;
  readonly worldSize: number;
  readonly masterIp: string;
}

/** `add_dp_placement_groups` of the original (section 8.2). */
export function addUpstream(request: UpstreamAddRequest): UpstreamAnswer {
  return answer((groups, localRanks) => add(request, groups, localRanks));
}

function add(r: UpstreamAddRequest, groups: PlacementGroup[], localRanks: number[]): void {
  const wanted = r.newSize - r.oldSize;
  if (wanted <= 0) return;
  const isMaster = (n: { node_ip: string }) => n.node_ip === r.masterIp;
  const nodes = [...r.nodes.filter(isMaster), ...r.nodes.filter((n) => !isMaster(n))];
  if (nodes.length === 0) throw new Raised("IndexError", "list index out of range");
  assertPy(isMaster(nodes[0]!), "The first node must be the head node");
  assertPy(nodes.length === 1 || !isMaster(nodes[1]!), "There can only be one head node");
  for (const node of nodes) {
    if (groups.length >= wanted) return;
    const free = Math.trunc(item(item(r.available, node.node_id), r.deviceKey));
    const all = Math.trunc(item(item(r.total, node.node_id), r.deviceKey));
    const used = Math.floor(Math.max(0, all - free) / r.worldSize);
    const capacity = Math.floor(free / r.worldSize);
    for (let i = 0; i < capacity && groups.length < wanted; i++) {
      const bundle = {
        [r.deviceKey]: 1,
        ...(isMaster(node) ? { [`node:${r.masterIp}`]: 0.001 } : {}),
      };
      groups.push({
        name: `dp_rank_${r.oldSize + groups.length}`,
        strategy: "STRICT_PACK",
        bundles: [...Array.from({ length: r.worldSize }, () => bundle), { CPU: 1 }],
      });
      localRanks.push(used + i);
    }
  }
}

function item<T>(map: Readonly<Record<string, T>>, key: string): T {
  if (!Object.hasOwn(map, key)) throw new Raised("KeyError", `'${key}'`);
  return map[key]!;
}

/** A dict of dicts of floats, as Python prints it. */
const pythonDict = (nodes: UpstreamRequest["nodes"]): string => {
  const float = (n: number) => Number.isInteger(n) ? n.toFixed(1) : String(n);
  const inner = (res: Resources) =>
    `{${Object.entries(res).map(([k, v]) => `'${k}': ${float(v)}`).join(", ")}}`;
  return `{${nodes.map(([id, res]) => `'${id}': ${inner(res)}`).join(", ")}}`;
};
