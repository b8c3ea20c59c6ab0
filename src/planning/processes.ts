import type { Program } from "./command.ts";
import type { ClusterConfig } from "./config.ts";
import type { Assignment, Deployment } from "./deployment.ts";
import { isLoopback } from "./endpoint.ts";
import type { Planned, Refusal } from "./refusal.ts";
import { flagOf } from "./refusal.ts";

/** One process that somebody starts on a node, with its complete configuration. */
export interface ProcessSpec {
  readonly node: string;
  readonly config: ClusterConfig;
  /** Local ranks of the node that it runs: the first and how many. */
  readonly firstLocalRank: number;
  readonly ranks: number;
}

/** Settings that belong to one process; with nodes they follow from the plan. */
const OF_ONE_PROCESS = [
  "dataParallelRank",
  "dataParallelStartRank",
  "dataParallelRankLocal",
  "headless",
] as const;

/**
 * The processes of a deployment: one front-end and headless nodes, one front-end a node (hybrid), one server a rank
 * (external), one supervisor a node (multi-port), or one front-end for everything (Ray).
 *
 * Where Muster plays the front-end, vLLM's engines are headless on its own host too: nothing but `vllm serve --headless`
 * starts them without vLLM's server.
 */
export function processesOf(
  deployment: Deployment,
  assignments: readonly Assignment[],
  program: Program = "vllm",
): Planned<readonly ProcessSpec[]> {
  const { settings } = deployment;
  const misplaced = OF_ONE_PROCESS.filter((key) =>
    settings[key] !== undefined && settings[key] !== false
  );
  if (misplaced.length) {
    return {
      ok: false,
      refusals: misplaced.map((key) => ofOne(settings, key)),
    };
  }
  const shared = sharedSettings(deployment, assignments);
  if (settings.dataParallelBackend === "ray") {
    const { node, ranks } = assignments[0]!;
    const config = { ...shared, dataParallelSizeLocal: ranks, ...own(node) };
    return { ok: true, plan: [{ node: node.name, config, firstLocalRank: 0, ranks }] };
  }
  return {
    ok: true,
    plan: assignments.flatMap((assignment, i) =>
      i === 0 && program === "muster" && assignment.ranks > 0 && isInternal(settings)
        ? besideMuster(shared, assignment)
        : onNode(settings, shared, assignment, i === 0)
    ),
  };
}

const isInternal = (c: ClusterConfig): boolean =>
  !c.dataParallelExternalLb && !c.dataParallelHybridLb && !c.dataParallelMultiPortExternalLb;

/** Muster's front-end without ranks of its own, and the engines of its host beside it. */
function besideMuster(shared: ClusterConfig, { node, ranks }: Assignment): ProcessSpec[] {
  const base: ClusterConfig = {
    ...shared,
    ...own(node),
    dataParallelMasterIp: shared.dataParallelMasterIp ?? shared.dataParallelAddress,
    allowLoopback: shared.allowLoopback ||
      (ranks === shared.dataParallelSize && isLoopback(shared.dataParallelAddress)),
  };
  return [
    { node: node.name, config: { ...base, dataParallelSizeLocal: 0 }, firstLocalRank: 0, ranks: 0 },
    {
      node: node.name,
      config: { ...base, dataParallelSizeLocal: ranks, headless: true },
      firstLocalRank: 0,
      ranks,
    },
  ];
}

const ofOne = (settings: ClusterConfig, key: typeof OF_ONE_PROCESS[number]): Refusal => ({
  code: "modes-exclude-each-other",
  flag: flagOf(key),
  value: String(settings[key]),
  message: "it belongs to one process, and the nodes describe them all.",
  fix: "Drop it: which process gets it follows from the plan.",
});

/**
 * What every process is told: the head's address, and where rank 0's engine runs. The head of one front-end is the
 * first node, also without ranks; of several front-ends it is the one of rank 0.
 */
function sharedSettings(
  { settings, nodes }: Deployment,
  assignments: readonly Assignment[],
): ClusterConfig {
  const { dataParallelSizeLocal: _, ...rest } = settings;
  const rank0 = assignments.find((a) => a.ranks > 0)?.node;
  const several = settings.dataParallelExternalLb || settings.dataParallelHybridLb ||
    settings.dataParallelMultiPortExternalLb;
  const head = (several ? rank0 : nodes[0])?.address ?? settings.dataParallelAddress;
  const elsewhere = !several && rank0 !== undefined && rank0 !== nodes[0] &&
    rank0.address !== undefined;
  return {
    ...rest,
    dataParallelAddress: head,
    ...(settings.dataParallelMasterIp === undefined && elsewhere
      ? { dataParallelMasterIp: rank0.address! }
      : {}),
  };
}

const own = (node: Assignment["node"]): Partial<ClusterConfig> => ({
  ...(node.address === undefined ? {} : { hostIp: node.address }),
  ...(node.port === undefined ? {} : { port: node.port }),
  ...(node.rpcBasePath === undefined ? {} : { rpcBasePath: node.rpcBasePath }),
});

function onNode(
  settings: ClusterConfig,
  shared: ClusterConfig,
  { node, firstRank, ranks }: Assignment,
  head: boolean,
): ProcessSpec[] {
  const base: ClusterConfig = { ...shared, ...own(node) };
  const one = (config: Partial<ClusterConfig>): ProcessSpec[] => [{
    node: node.name,
    config: { ...base, ...config },
    firstLocalRank: 0,
    ranks,
  }];
  const share = { dataParallelSizeLocal: ranks, dataParallelStartRank: firstRank };
  if (settings.dataParallelMultiPortExternalLb || settings.dataParallelHybridLb) {
    return ranks === 0 ? [] : one(share);
  }
  if (settings.dataParallelExternalLb) {
    return Array.from({ length: ranks }, (_, i) => ({
      node: node.name,
      config: {
        ...base,
        dataParallelRank: firstRank + i,
        dataParallelSizeLocal: 1,
        port: base.port + i,
      },
      firstLocalRank: i,
      ranks: 1,
    }));
  }
  if (head) return one({ dataParallelSizeLocal: ranks });
  return ranks === 0 ? [] : one({ ...share, headless: true });
}
