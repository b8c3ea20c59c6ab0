import type { RefusalCode } from "../refusal.ts";
import { remediesFor } from "./changes.ts";
import type {
  NodeReport,
  PlacedRank,
  Placement,
  PlacementAnswer,
  PlacementRefusal,
  PlacementRequest,
  Share,
} from "./placement.ts";
import { remedyText } from "./placement.ts";
import { type Candidate, candidates } from "./snapshot.ts";

const DEEP_EP = ["deepep_high_throughput", "deepep_low_latency"];

/**
 * Places the ranks of a new cluster (section 8.1, without the defects of section 9).
 *
 * - `strict`: the master takes L ranks, every other node L or none (with L = 0: the largest equal share that works);
 * - `fill`: the master takes L ranks, every other node as many as fit;
 * - `span`: a rank takes several whole nodes.
 *
 * Pure: a node that joins after the snapshot changes nothing. It stops when the last rank has its place, nodes
 * without the device key have no devices, and it never answers with fewer ranks than were asked for.
 *
 * @returns a refusal with the report of every node and the changes that would help, the smallest first.
 */
export function planPlacement(request: PlacementRequest): PlacementAnswer {
  const attempt = place(request);
  if ("plan" in attempt) return { ok: true, plan: attempt.plan };
  const { fault } = attempt;
  const remedies = fault.hopeless ? [] : remediesFor(request, (r) => "plan" in place(r));
  return refused({ ...fault, remedies });
}

interface Fault {
  readonly code: RefusalCode;
  readonly flag: string;
  readonly value: string;
  readonly message: string;
  readonly fix?: string;
  readonly nodes: readonly NodeReport[];
  /** No change of sizes would help. */
  readonly hopeless?: boolean;
}
type Attempt = { readonly plan: Placement } | { readonly fault: Fault };

/** A refusal with its remedies; the fix is the smallest of them unless the fault has a better one. */
export function refused(
  fault: Omit<Fault, "hopeless"> & Pick<PlacementRefusal, "remedies">,
): PlacementAnswer & { ok: false } {
  const { code, flag, value, message, fix, nodes, remedies } = fault;
  const best = remedies[0];
  return {
    ok: false,
    refusals: [{
      code,
      flag,
      value,
      message,
      fix: fix ?? (best ? remedyText(best) : "Free devices, or add nodes."),
      nodes,
      remedies,
    }],
  };
}

function place(request: PlacementRequest): Attempt {
  const { size, localSize, worldSize, strategy, masterIp, deviceKey } = request;
  const nodes = candidates(request.nodes, deviceKey, masterIp);
  const untouched = nodes.map((n) => report(n, [], 0, passedOver(n, request)));
  const fault = (f: Omit<Fault, "nodes">): Attempt => ({ fault: { ...f, nodes: untouched } });
  if (!nodes[0]?.master) {
    return fault({
      code: "master-missing",
      flag: "--data-parallel-address",
      value: masterIp,
      message: nodes.length
        ? `no node of the cluster that is alive has the address ${masterIp}.`
        : "the cluster has no nodes.",
      fix: "Give the address of a node of the cluster.",
      hopeless: true,
    });
  }
  if (strategy === "fill" && DEEP_EP.includes(request.all2allBackend ?? "")) {
    return fault({
      code: "strategy-wrong",
      flag: "--all2all-backend",
      value: request.all2allBackend!,
      message:
        "its kernels need the ranks of a node to be neighbours, and fill does not see to that.",
    });
  }
  if (localSize > size) {
    return fault({
      code: "local-size-wrong",
      flag: "--data-parallel-size-local",
      value: String(localSize),
      message: `${localSize} local ranks are more than the ${size} there are.`,
    });
  }
  if (strategy === "span") return placeSpanning(request, nodes);
  const master = nodes[0];
  const fits = Math.floor(master.free / worldSize);
  if (fits < localSize) {
    return fault({
      code: "devices-missing",
      flag: "--data-parallel-size-local",
      value: String(localSize),
      message: `the master ${master.ip} has ${master.free} of ${localSize * worldSize} devices ` +
        `for its ${ranksText(localSize)}; ${ranksText(fits)} would fit.`,
    });
  }
  return placeOnNodes(request, nodes);
}

/** `strict` and `fill`: a rank has all its devices on one node. */
function placeOnNodes(request: PlacementRequest, nodes: readonly Candidate[]): Attempt {
  const { size, localSize, worldSize, strategy } = request;
  const quota = strategy === "strict" ? localSize || evenShare(request, nodes) : Infinity;
  const ranks: PlacedRank[] = [];
  const reports = nodes.map((node) => {
    const fits = Math.floor(node.free / worldSize);
    const wanted = node.master ? localSize : strategy === "strict" ? quota : fits;
    const possible = fits >= wanted ? wanted : 0;
    const take = Math.min(possible, size - ranks.length);
    const first = ranks.length;
    for (let i = 0; i < take; i++) {
      ranks.push({
        rank: first + i,
        localRank: i,
        on: [{ node: node.id, ip: node.ip, devices: worldSize }],
      });
    }
    const why = take === 0
      ? passedOver(node, request, quota, ranks.length)
      : node.master
      ? `the master takes ${ranksText(localSize)}`
      : take < possible
      ? `the last ${ranksText(take)} of ${size}`
      : strategy === "strict"
      ? `its share of ${ranksText(quota)}`
      : `as many as fit: ${ranksText(take)}`;
    return report(node, ranks.slice(first).map((r) => r.rank), take * worldSize, why);
  });
  if (ranks.length === size) return { plan: plan(request, ranks, reports) };
  const free = nodes.reduce((sum, n) => sum + n.free, 0);
  return {
    fault: {
      code: "devices-missing",
      flag: "--data-parallel-size",
      value: String(size),
      message:
        `${ranks.length} of ${size} ranks of ${worldSize} ${request.deviceKey} find a place ` +
        `with ${strategy}; ${free} of the ${size * worldSize} devices needed are free in all.`,
      nodes: reports,
    },
  };
}

/** With no share given (L = 0), the largest that every node which takes part can carry. */
function evenShare({ size, worldSize }: PlacementRequest, nodes: readonly Candidate[]): number {
  const fits = nodes.filter((n) => !n.master).map((n) => Math.floor(n.free / worldSize));
  for (let share = Math.min(size, Math.max(0, ...fits)); share > 1; share--) {
    if (share * fits.filter((f) => f >= share).length >= size) return share;
  }
  return 1;
}

/** `span`: a rank takes whole nodes of the largest size. */
function placeSpanning(request: PlacementRequest, nodes: readonly Candidate[]): Attempt {
  const { size, localSize, worldSize } = request;
  const most = Math.max(0, ...nodes.map((n) => n.free));
  const fault = (f: Omit<Fault, "code" | "nodes"> & Partial<Fault>): Attempt => ({
    fault: {
      code: "strategy-wrong",
      nodes: nodes.map((n) => report(n, [], 0, passedOver(n, request))),
      ...f,
    },
  });
  if (most === 0 || !nodes[0] || nodes[0].free < most) {
    return fault({
      code: "devices-missing",
      flag: "--data-parallel-address",
      value: request.masterIp,
      message: most === 0
        ? `no node has a free ${request.deviceKey}.`
        : `span takes whole nodes of ${most}, and the master has ${nodes[0]?.free} free.`,
    });
  }
  if (worldSize <= most) {
    return fault({
      flag: "VLLM_RAY_DP_PACK_STRATEGY",
      value: "span",
      message: `a rank of ${worldSize} devices fits on one node of ${most}.`,
    });
  }
  if (worldSize % most !== 0) {
    return fault({
      flag: "VLLM_RAY_DP_PACK_STRATEGY",
      value: "span",
      message: `a rank of ${worldSize} devices is not a whole number of nodes of ${most}.`,
      fix: `Choose tensor and pipeline sizes whose product is a multiple of ${most}.`,
    });
  }
  if (localSize !== 1) {
    return fault({
      flag: "--data-parallel-size-local",
      value: String(localSize),
      message: "with span a rank takes whole nodes, so the master has exactly one.",
    });
  }
  const perRank = worldSize / most;
  const whole = nodes.filter((n) => n.free === most);
  const used = whole.slice(0, size * perRank);
  if (used.length < size * perRank) {
    return fault({
      code: "devices-missing",
      flag: "--data-parallel-size",
      value: String(size),
      message: `${size} ranks of ${perRank} whole nodes need ${size * perRank} nodes of ${most}, ` +
        `and ${whole.length} are free.`,
      nodes: nodes.map((n) => report(n, [], 0, passedOver(n, request, undefined, 0, most))),
    });
  }
  const ranks = Array.from({ length: size }, (_, rank): PlacedRank => ({
    rank,
    localRank: 0,
    on: used.slice(rank * perRank, (rank + 1) * perRank)
      .map((n): Share => ({ node: n.id, ip: n.ip, devices: most })),
  }));
  const reports = nodes.map((n) => {
    const at = used.indexOf(n);
    return at < 0 ? report(n, [], 0, passedOver(n, request, undefined, size, most)) : report(
      n,
      [Math.floor(at / perRank)],
      most,
      `node ${at % perRank + 1} of ${perRank} of its rank`,
    );
  });
  return { plan: plan(request, ranks, reports) };
}

/** Why a node got nothing. */
function passedOver(
  node: Candidate,
  { size, worldSize, deviceKey, localSize, strategy }: PlacementRequest,
  quota = 0,
  placed = 0,
  whole = 0,
): string {
  if (node.unusable) return node.unusable;
  if (placed >= size) return "not needed: every rank had its place";
  if (node.master && localSize === 0) return "the master takes no rank";
  if (node.total === 0) return `it has no ${deviceKey}`;
  if (strategy === "span") {
    return node.free < whole ? `${node.free} of ${whole} devices are free` : "not reached";
  }
  const fits = Math.floor(node.free / worldSize);
  if (fits === 0) return `a rank needs ${worldSize}, and ${node.free} of ${node.total} are free`;
  if (strategy === "strict" && fits < quota) {
    return `strict wants ${ranksText(quota)} on a node, and ${fits} would fit`;
  }
  return "not reached";
}

export const report = (
  node: Candidate,
  ranks: readonly number[],
  taken: number,
  why: string,
): NodeReport => ({
  node: node.id,
  ip: node.ip,
  master: node.master,
  total: node.total,
  free: node.free,
  taken,
  ranks,
  why,
});

const plan = (
  { strategy, deviceKey, worldSize }: PlacementRequest,
  ranks: readonly PlacedRank[],
  nodes: readonly NodeReport[],
): Placement => ({ strategy, deviceKey, worldSize, ranks, nodes });

export const ranksText = (n: number): string => n === 1 ? "1 rank" : `${n} ranks`;
