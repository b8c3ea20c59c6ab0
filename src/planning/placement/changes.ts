import type { PackStrategy } from "../config.ts";
import type { Change, PlacementRequest, Remedy } from "./placement.ts";
import { candidates } from "./snapshot.ts";

/** More nodes than this are not tried one by one for the fewest devices to free. */
const MOST_NODES_TRIED = 256;

/** More alternatives than this help nobody. */
const MOST_REMEDIES = 5;

type Works = (request: PlacementRequest) => boolean;

/**
 * What makes a refused placement possible, smallest first: what costs nothing (another strategy, another share of the
 * master), then devices to free on one node, nodes to add, and a smaller size; when none of these is enough by itself,
 * one that costs nothing together with one that does.
 *
 * @param works answers whether a changed request can be placed; every remedy in the answer was tried with it.
 */
export function remediesFor(request: PlacementRequest, works: Works): Remedy[] {
  const free = [...strategies(request), ...localSizes(request)];
  const costly = (r: PlacementRequest) => [
    ...fewestDevices(r, works),
    ...nodesToAdd(r, works),
    ...sizes(r, works),
  ];
  const single: Remedy[] = [...free, ...costly(request)].map((change) => [change]);
  const good = single.filter((remedy) => works(remedied(request, remedy)));
  if (good.length) return good.slice(0, MOST_REMEDIES);
  return free
    .flatMap((first) => costly(changed(request, first)).map((second): Remedy => [first, second]))
    .filter((remedy) => works(remedied(request, remedy)))
    .slice(0, MOST_REMEDIES);
}

/** The request after a remedy. */
export const remedied = (request: PlacementRequest, remedy: Remedy): PlacementRequest =>
  remedy.reduce(changed, request);

function changed(request: PlacementRequest, change: Change): PlacementRequest {
  switch (change.kind) {
    case "strategy":
      return { ...request, strategy: change.to };
    case "local-size":
      return { ...request, localSize: change.to };
    case "size":
      return { ...request, size: change.to };
    case "devices":
      return {
        ...request,
        nodes: request.nodes.map((node) =>
          node.id === change.node
            ? { ...node, ...more(node, request.deviceKey, change.more) }
            : node
        ),
      };
    case "nodes":
      return {
        ...request,
        nodes: [
          ...request.nodes,
          ...Array.from({ length: change.more }, (_, i) => ({
            id: `added-${i}`,
            ip: `added-${i}`,
            available: { [request.deviceKey]: change.devices },
          })),
        ],
      };
  }
}

function more(
  node: PlacementRequest["nodes"][number],
  key: string,
  amount: number,
): Partial<PlacementRequest["nodes"][number]> {
  const available = { ...node.available, [key]: (node.available?.[key] ?? 0) + amount };
  const total = node.total && {
    ...node.total,
    [key]: Math.max(node.total[key] ?? 0, available[key]!),
  };
  return { available, ...(total ? { total } : {}) };
}

const strategies = ({ strategy }: PlacementRequest): Change[] =>
  (["strict", "fill", "span"] as PackStrategy[])
    .filter((to) => to !== strategy)
    .map((to) => ({ kind: "strategy", to }));

/** The nearest share of the master that could work: what fits on it, or one per node with span. */
function localSizes(request: PlacementRequest): Change[] {
  const master = candidates(request.nodes, request.deviceKey, request.masterIp)[0];
  const fits = Math.min(Math.floor((master?.free ?? 0) / request.worldSize), request.size);
  const tries = new Set([...Array(Math.min(fits, 64) + 1).keys(), 1, request.size]);
  tries.delete(request.localSize);
  const near = [...tries].sort((a, b) =>
    Math.abs(a - request.localSize) - Math.abs(b - request.localSize) || b - a
  );
  return near.map((to) => ({ kind: "local-size", to }));
}

/** The node on which the fewest devices, freed, are enough. Nothing is asked of a node that it does not have. */
function fewestDevices(
  request: PlacementRequest,
  works: Works,
): Change[] {
  if (request.strategy === "span") return [];
  const most = request.size * request.worldSize;
  let best: (Change & { kind: "devices" }) | undefined;
  const nodes = candidates(request.nodes, request.deviceKey, request.masterIp);
  for (const { id, ip, unusable, free, total } of nodes.slice(0, MOST_NODES_TRIED)) {
    if (unusable) continue;
    const attempt = (more: number) =>
      works(changed(request, { kind: "devices", node: id, ip, more }));
    const limit = Math.min(best ? best.more - 1 : most, total - free);
    if (limit < 1 || !attempt(limit)) continue;
    let [low, high] = [1, limit];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (attempt(middle)) high = middle;
      else low = middle + 1;
    }
    best = { kind: "devices", node: id, ip, more: high };
  }
  return best ? [best] : [];
}

/** The fewest nodes like the largest one (or as large as a rank) that are enough. */
function nodesToAdd(
  request: PlacementRequest,
  works: Works,
): Change[] {
  const nodes = candidates(request.nodes, request.deviceKey, request.masterIp);
  const largest = Math.max(0, ...nodes.map((n) => request.strategy === "span" ? n.free : n.total));
  const devices = request.strategy === "span" ? largest : Math.max(largest, request.worldSize);
  if (devices === 0) return [];
  const most = request.size * Math.ceil(request.worldSize / devices);
  const change = (more: number): Change => ({ kind: "nodes", more, devices });
  if (!works(changed(request, change(most)))) return [];
  let [low, high] = [1, most];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (works(changed(request, change(middle)))) high = middle;
    else low = middle + 1;
  }
  return [change(high)];
}

/** The largest size that can be placed as it is. */
function sizes(
  request: PlacementRequest,
  works: Works,
): Change[] {
  let [low, high] = [Math.max(0, request.localSize - 1), request.size - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (works({ ...request, size: middle })) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? [{ kind: "size", to: low }] : [];
}
