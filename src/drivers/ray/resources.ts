import type { NodeSnapshot, Resources } from "../../planning/mod.ts";

/** What a line of Ray's resource text says. */
interface Usage {
  readonly name: string;
  readonly used: number;
  readonly total: number;
  /** Reserved in placement groups and not used there; not part of `used`. */
  readonly reserved: number;
}

const NUMBER = String.raw`([\d.]+(?:e[+-]?\d+)?)`;
const LINE = new RegExp(
  String
    .raw`^${NUMBER}\/${NUMBER} (\S+)(?: \(${NUMBER} used of ${NUMBER} reserved in placement groups\))?$`,
);

/**
 * Ray's text of one node's logical resources (`1.0/4.0 GPU (0.0 used of 2.0 reserved in placement groups)`), by name.
 * Memory is rounded text and left out.
 */
export function parseUsage(text: string): Map<string, Usage> {
  const usages = text.split("\n").map((line) => LINE.exec(line.trim())).filter((m) => m !== null)
    .map(([, used, total, name, groupUsed, groupReserved]): Usage => ({
      name: name!,
      used: Number(used),
      total: Number(total),
      reserved: Math.max(0, Number(groupReserved ?? 0) - Number(groupUsed ?? 0)),
    }));
  return new Map(usages.map((usage) => [usage.name, usage]));
}

/** A row of `/api/v0/nodes`. */
export interface NodeRow {
  readonly node_id: string;
  readonly node_ip: string;
  readonly is_head_node: boolean;
  readonly state: string;
  readonly resources_total: Resources;
}

/** A row of `/api/v0/actors`: what a running job (or anything else) holds, known at once. */
export interface ActorRow {
  readonly state: string;
  readonly node_id: string | null;
  readonly name: string | null;
  readonly required_resources: Resources | null;
}

/** What a job of ours holds or is about to hold on its node, also when Ray has no actor for it (yet, or any more). */
export interface OwnClaim {
  readonly job: string;
  readonly node: string;
  readonly resources: Resources;
}

/** The actor behind a job. */
const actorOf = (job: string): string => `_ray_internal_job_actor_${job}`;

/**
 * The nodes as the planner wants them. Ray's text of free resources may be seconds old, the list of actors is not:
 * the larger use of the two counts. A claim of our own without an actor counts beside them.
 */
export function snapshotOf(
  nodes: readonly NodeRow[],
  usageText: Readonly<Record<string, string>>,
  actors: readonly ActorRow[],
  own: readonly OwnClaim[],
): NodeSnapshot[] {
  const alive = actors.filter((a) => a.state !== "DEAD" && a.node_id !== null);
  const names = new Set(alive.map((a) => a.name));
  const byActors = sums(alive.map((a) => [a.node_id!, a.required_resources ?? {}]));
  const unseen = sums(
    own.filter((c) => !names.has(actorOf(c.job))).map((c) => [c.node, c.resources]),
  );
  return nodes.map((node) => ({
    id: node.node_id,
    ip: node.node_ip,
    alive: node.state === "ALIVE",
    available: freeOf(
      node,
      usageText[node.node_id],
      byActors.get(node.node_id) ?? {},
      unseen.get(node.node_id) ?? {},
    ),
    total: node.resources_total,
  }));
}

function sums(
  parts: readonly (readonly [node: string, resources: Resources])[],
): Map<string, Record<string, number>> {
  const byNode = new Map<string, Record<string, number>>();
  for (const [node, resources] of parts) {
    const held = byNode.get(node) ?? {};
    for (const [name, amount] of Object.entries(resources)) held[name] = (held[name] ?? 0) + amount;
    byNode.set(node, held);
  }
  return byNode;
}

function freeOf(
  { resources_total: total }: NodeRow,
  text: string | undefined,
  actors: Resources,
  own: Resources,
): Resources | null {
  if (text === undefined) return null;
  const usage = parseUsage(text);
  return Object.fromEntries(
    Object.entries(total).map(([name, all]) => {
      const { used = 0, reserved = 0 } = usage.get(name) ?? {};
      const taken = Math.max(used, actors[name] ?? 0) + reserved + (own[name] ?? 0);
      return [name, Math.max(0, all - taken)];
    }),
  );
}
