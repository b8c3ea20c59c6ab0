import { z } from "zod";
import {
  type ClusterConfig,
  clusterFields,
  parseClusterConfig,
  shown,
  worldSizeOf,
} from "./config.ts";
import { type DeviceId, parseVisible } from "./devices.ts";
import { type PlatformName, PLATFORMS } from "./platform.ts";
import { sameHost } from "./placement/snapshot.ts";
import type { Planned, Refusal } from "./refusal.ts";

/** A host of the deployment, as its owner describes it. */
export interface NodeSpec {
  /** For people, unique. */
  readonly name: string;
  /** Where the others reach it. */
  readonly address?: string | undefined;
  /** How many ranks it runs. Unset: its `dataParallelSizeLocal`, or as many as its devices allow. */
  readonly ranks?: number | undefined;
  /** How many devices it has. */
  readonly devices?: number | undefined;
  /** The value of the platform's variable there, such as `CUDA_VISIBLE_DEVICES`. */
  readonly visible?: string | undefined;
  /** The devices of each local rank, where they are chosen by hand. */
  readonly deviceMap?: readonly (readonly DeviceId[])[] | undefined;
  /** The HTTP port of its (first) server. */
  readonly port?: number | undefined;
  readonly rpcBasePath?: string | undefined;
}

/** What all processes share, and the hosts they run on, the head first. */
export interface Deployment {
  readonly settings: ClusterConfig;
  readonly platform: PlatformName;
  /** Empty: the settings describe one process, on this host. */
  readonly nodes: readonly NodeSpec[];
}

const whole = (least: number): z.ZodType<number> =>
  z.number().refine((n) => Number.isInteger(n) && n >= least, {
    error: `must be a whole number, ${least} or more.`,
  });
const nodeSchema = z.strictObject({
  name: z.string().min(1),
  address: z.string().min(1).optional(),
  ranks: whole(0).optional(),
  devices: whole(0).optional(),
  visible: z.string().optional(),
  deviceMap: z.array(z.array(z.string().min(1))).optional(),
  port: whole(1).optional(),
  rpcBasePath: z.string().min(1).optional(),
});

/**
 * A deployment from anything: the settings of a cluster (`dataParallelSize`, ...), `platform`, and `nodes`.
 *
 * @returns what `parseClusterConfig` refuses, malformed nodes, and names or addresses that occur twice.
 */
export function parseDeployment(input: unknown): Planned<Deployment> {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    return parseClusterConfig(input) as Planned<never>;
  }
  const { nodes: givenNodes = [], platform = "cuda", ...rest } = input as Record<string, unknown>;
  const refusals: Refusal[] = [];
  const settings = parseClusterConfig(rest);
  if (!settings.ok) refusals.push(...settings.refusals);
  if (typeof platform !== "string" || !Object.hasOwn(PLATFORMS, platform)) {
    refusals.push(
      wrong("platform", platform, `must be one of ${Object.keys(PLATFORMS).join(", ")}.`),
    );
  }
  const nodes = z.array(nodeSchema).safeParse(givenNodes);
  if (!nodes.success) {
    for (const issue of nodes.error.issues) {
      const [index, key] = issue.path;
      const name = (givenNodes as { name?: string }[])[Number(index)]?.name ?? index ?? "";
      refusals.push(wrong(`nodes ${String(name)}`, key ?? givenNodes, `${issue.message}`));
    }
  } else {
    refusals.push(...twice(nodes.data, "name"), ...twice(nodes.data, "address"));
  }
  if (refusals.length || !settings.ok || !nodes.success) return { ok: false, refusals };
  const plan = { settings: settings.plan, platform: platform as PlatformName, nodes: nodes.data };
  return withHead(plan, Object.hasOwn(rest, "dataParallelAddress"));
}

const wrong = (flag: string, value: unknown, message: string): Refusal => ({
  code: "invalid-value",
  flag,
  value: shown(value),
  message,
  fix: "Correct the value.",
});

function twice(nodes: readonly NodeSpec[], key: "name" | "address"): Refusal[] {
  const values = nodes.flatMap((n) => n[key] === undefined ? [] : [n[key]]);
  const repeated = [...new Set(values.filter((v, i) => values.indexOf(v) !== i))];
  return repeated.map((value) =>
    wrong("nodes", value, `two nodes have the ${key} ${value}; one host is one node.`)
  );
}

/** The node whose address is the head's comes first; without an address given, the first one is the head. */
function withHead(deployment: Deployment, addressGiven: boolean): Planned<Deployment> {
  const { settings, nodes } = deployment;
  const addressed = nodes.filter((n) => n.address !== undefined);
  if (!addressGiven || addressed.length === 0) return { ok: true, plan: deployment };
  const address = settings.dataParallelAddress;
  const head = addressed.find((n) => sameHost(n.address!, address));
  if (head) {
    return {
      ok: true,
      plan: { ...deployment, nodes: [head, ...nodes.filter((n) => n !== head)] },
    };
  }
  return {
    ok: false,
    refusals: [{
      code: "address-unusable",
      flag: "--data-parallel-address",
      value: address,
      message: "it is the address of none of the nodes, and the head is one of them.",
      fix: `Give the address of the head, such as ${addressed[0]!.address}, or leave it out.`,
    }],
  };
}

/** A node with its share of the ranks. */
export interface Assignment {
  readonly node: NodeSpec;
  readonly firstRank: number;
  readonly ranks: number;
}

/**
 * The ranks, shared out over the nodes in their order: a node takes what it was told, what every node was told, or
 * as many as its devices allow, until all have a place.
 */
export function assignRanks({ settings, nodes }: Deployment): Planned<readonly Assignment[]> {
  const size = settings.dataParallelSize;
  const worldSize = worldSizeOf(settings);
  const assignments: Assignment[] = [];
  const refusals: Refusal[] = [];
  let next = 0;
  for (const node of nodes) {
    const told = node.ranks ?? settings.dataParallelSizeLocal;
    const fits = capacity(node, worldSize);
    const ranks = told ?? fits ?? (nodes.length === 1 ? size : undefined);
    if (ranks === undefined) {
      refusals.push({
        code: "local-size-missing",
        flag: `nodes ${node.name}`,
        value: "unset",
        message: "how many ranks this node runs is not known.",
        fix: "Give its ranks, or how many devices it has.",
      });
      continue;
    }
    const take = told === undefined ? Math.min(ranks, size - next) : ranks;
    assignments.push({ node, firstRank: next, ranks: take });
    next += take;
  }
  if (refusals.length === 0 && next !== size) {
    refusals.push(unbalanced(size, worldSize, next, nodes));
  }
  return refusals.length ? { ok: false, refusals } : { ok: true, plan: assignments };
}

const capacity = (node: NodeSpec, worldSize: number): number | undefined =>
  node.deviceMap?.length ??
    (node.visible !== undefined
      ? Math.floor(parseVisible(node.visible).length / worldSize)
      : node.devices === undefined
      ? undefined
      : Math.floor(node.devices / worldSize));

function unbalanced(
  size: number,
  worldSize: number,
  placed: number,
  nodes: readonly NodeSpec[],
): Refusal {
  const shares = nodes.map((n) => {
    const fits = capacity(n, worldSize);
    return `${n.name} ${n.ranks ?? fits ?? 0}`;
  }).join(", ");
  return {
    code: placed < size ? "devices-missing" : "local-size-wrong",
    flag: "--data-parallel-size",
    value: String(size),
    message: `the nodes run ${placed} ranks of ${worldSize} ${
      worldSize === 1 ? "device" : "devices"
    } (${shares}), and ${size} are asked for.`,
    fix: placed < size
      ? `Add a node, or give --data-parallel-size ${placed}.`
      : `Lower the ranks of a node by ${placed - size}, or give --data-parallel-size ${placed}.`,
  };
}

/** The names of all cluster settings, for command lines. */
export const settingNames: readonly string[] = Object.keys(clusterFields);
