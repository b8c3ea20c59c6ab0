import type {
  NodeReport,
  PlacedRank,
  Placement,
  PlacementAnswer,
  PlacementRefusal,
} from "./placement.ts";
import { ranksText, refused, report } from "./plan.ts";
import { type Candidate, candidates, type NodeSnapshot, sameHost } from "./snapshot.ts";

/**
 * Adds ranks to a running cluster (section 8.2, without the defects of section 9).
 *
 * Every addition is pinned to the node it was planned for; its local rank is its position among *this* deployment's
 * ranks there, whoever else uses the node; a node without the device key, without a resource entry or gone is passed
 * over; a shortfall is a refusal and not a shorter answer.
 *
 * @param nodes what is free now, while the ranks of `placement` hold their devices.
 */
export function addRanks(
  placement: Placement,
  nodes: readonly NodeSnapshot[],
  masterIp: string,
  newSize: number,
): PlacementAnswer {
  const old = placement.ranks.length;
  if (newSize < old) return sizeRefused(newSize, `adding ranks cannot make ${old} fewer.`);
  const { deviceKey, worldSize } = placement;
  const perNode = placement.ranks[0]?.on[0]?.devices ?? worldSize;
  const nodesPerRank = worldSize / perNode;
  const ranks = [...placement.ranks];
  const onNode = new Map<string, number>();
  for (const { on } of ranks) onNode.set(on[0]!.node, (onNode.get(on[0]!.node) ?? 0) + 1);
  const found = candidates(nodes, deviceKey, masterIp);
  const taken = new Map<string, number>();
  const usable = found.flatMap((node) => {
    const times = Math.floor(node.free / perNode);
    return Array<Candidate>(nodesPerRank === 1 ? times : Math.min(times, 1)).fill(node);
  });
  while (ranks.length < newSize && usable.length >= nodesPerRank) {
    const on = usable.splice(0, nodesPerRank);
    const first = on[0]!.id;
    const localRank = onNode.get(first) ?? 0;
    onNode.set(first, localRank + 1);
    ranks.push({
      rank: ranks.length,
      localRank,
      on: on.map((n) => ({ node: n.id, ip: n.ip, devices: perNode })),
    });
    for (const n of on) taken.set(n.id, (taken.get(n.id) ?? 0) + perNode);
  }
  const added = ranks.slice(old);
  const reports = found.map((n) => reportAddition(n, added, perNode, deviceKey, taken));
  if (ranks.length === newSize) return { ok: true, plan: { ...placement, ranks, nodes: reports } };
  return shortfall(placement, newSize, added.length, reports, perNode, nodesPerRank);
}

function reportAddition(
  node: Candidate,
  added: readonly PlacedRank[],
  perNode: number,
  deviceKey: string,
  taken: ReadonlyMap<string, number>,
): NodeReport {
  const ranks = added.filter((r) => r.on.some((s) => s.node === node.id)).map((r) => r.rank);
  const why = ranks.length ? `takes ${ranksText(ranks.length)} more` : node.unusable ??
    (node.total === 0
      ? `it has no ${deviceKey}`
      : node.free < perNode
      ? `a rank needs ${perNode}, and ${node.free} of ${node.total} are free`
      : "not needed: every rank had its place");
  return report(node, ranks, taken.get(node.id) ?? 0, why);
}

function shortfall(
  placement: Placement,
  newSize: number,
  fit: number,
  nodes: readonly NodeReport[],
  perNode: number,
  nodesPerRank: number,
): PlacementAnswer {
  const old = placement.ranks.length;
  const missing = newSize - old - fit;
  const own = claims(placement);
  const nearest = nodes
    .map((n) => ({ n, more: missing * perNode - ((n.free - n.taken) % perNode) }))
    .filter(({ n, more }) => more <= n.total - n.free - (own.get(n.node) ?? 0))
    .sort((a, b) => a.more - b.more)[0];
  return refused({
    code: "devices-missing",
    flag: "--data-parallel-size",
    value: String(newSize),
    message: `${fit} of the ${newSize - old} additional ranks of ${placement.worldSize} ` +
      `${placement.deviceKey} find a place.`,
    nodes,
    remedies: [
      ...(nearest && nodesPerRank === 1
        ? [[{
          kind: "devices" as const,
          node: nearest.n.node,
          ip: nearest.n.ip,
          more: nearest.more,
        }]]
        : []),
      ...(nodesPerRank === 1
        ? [[{ kind: "nodes" as const, more: 1, devices: missing * perNode }]]
        : []),
      ...(fit > 0 ? [[{ kind: "size" as const, to: old + fit }]] : []),
    ],
  });
}

/**
 * Takes the highest ranks away. Which group and which actor goes with a rank is looked up by rank, never by the
 * order in which things were created (section 9, 10).
 */
export function removeRanks(placement: Placement, newSize: number): PlacementAnswer {
  const old = placement.ranks.length;
  if (newSize < 1) return sizeRefused(newSize, "at least one rank stays.");
  if (newSize > old) return sizeRefused(newSize, `removing ranks cannot make ${old} more.`);
  const nodes = placement.nodes.map((node) => {
    const leaving = placement.ranks.slice(newSize).flatMap((r) => r.on)
      .filter((s) => s.node === node.node)
      .reduce((sum, s) => sum + s.devices, 0);
    return {
      ...node,
      taken: Math.max(0, node.taken - leaving),
      ranks: node.ranks.filter((r) => r < newSize),
    };
  });
  return { ok: true, plan: { ...placement, ranks: placement.ranks.slice(0, newSize), nodes } };
}

const sizeRefused = (newSize: number, message: string): PlacementAnswer => ({
  ok: false,
  refusals: [
    {
      code: "size-wrong",
      flag: "--data-parallel-size",
      value: String(newSize),
      message,
      fix: "Give another size.",
      nodes: [],
      remedies: [],
    } satisfies PlacementRefusal,
  ],
});

/** Does a rank run on the master node (section 8.3)? */
export const onMaster = (rank: PlacedRank, masterIp: string): boolean =>
  rank.on.some((share) => sameHost(share.ip, masterIp));

/** Devices that a placement holds, by node id. */
export function claims(placement: Placement): Map<string, number> {
  const held = new Map<string, number>();
  for (const { on } of placement.ranks) {
    for (const { node, devices } of on) held.set(node, (held.get(node) ?? 0) + devices);
  }
  return held;
}
