import type { ClusterConfig } from "./config.ts";
import { hostFault, isLoopback, isWildcard, MAX_IPC_PATH_BYTES, pathBytes } from "./endpoint.ts";
import type { DerivedMode } from "./mode.ts";
import type { Refusal } from "./refusal.ts";
import { refuse } from "./refuse.ts";
import type { Topology } from "./topology.ts";

/** What contradicts what, once the mode is known (`null`: a multi-port supervisor, which has none yet). */
export function combinationFaults(config: ClusterConfig, derived: DerivedMode | null): Refusal[] {
  return [
    ...(derived ? [] : supervisorFaults(config)),
    ...elasticFaults(config, derived),
    ...addressFaults(config),
    ...(!config.headless && config.apiServerCount === 0
      ? [refuse(config, "invalid-value", "apiServerCount", {
        message: "a front-end has at least one API server.",
        fix: "Give 1 or more, or add --headless.",
      })]
      : []),
  ];
}

function supervisorFaults(config: ClusterConfig): Refusal[] {
  const contradicting = [
    "dataParallelHybridLb",
    "dataParallelRank",
    "dataParallelRankLocal",
    "headless",
  ] as const;
  const faults = contradicting
    .filter((key) => config[key] !== undefined && config[key] !== false)
    .map((key) =>
      refuse(config, "modes-exclude-each-other", key, {
        message: "it contradicts --data-parallel-multi-port-external-lb.",
        fix: "Keep one of the two.",
      })
    );
  if (config.dataParallelBackend === "ray") {
    faults.push(refuse(config, "ray-wrong", "dataParallelMultiPortExternalLb", {
      message: "with the Ray backend one front-end starts every engine.",
      fix: "Use --data-parallel-backend mp.",
    }));
  }
  if ((config.apiServerCount ?? 1) > 1) {
    faults.push(refuse(config, "modes-exclude-each-other", "apiServerCount", {
      message: "each child of --data-parallel-multi-port-external-lb has one API server.",
      fix: "Drop --api-server-count.",
    }));
  }
  const start = config.dataParallelStartRank ?? 0;
  const local = config.dataParallelSizeLocal ?? config.dataParallelSize - start;
  if (local < 1 || start + local > config.dataParallelSize) {
    faults.push(refuse(config, "rank-out-of-range", "dataParallelStartRank", {
      message:
        `${local} ranks from rank ${start} are asked for, and there are ${config.dataParallelSize}.`,
      fix: "Lower the start rank or the local size, or raise --data-parallel-size.",
    }));
  } else if (config.port + local - 1 > 65_535) {
    faults.push(refuse(config, "invalid-value", "port", {
      message: `the ${local} children need ports up to ${config.port + local - 1}.`,
      fix: `Give ${65_536 - local} or less.`,
    }));
  }
  return faults;
}

/** The rules of elastic expert parallelism (section 3, at its end). */
function elasticFaults(config: ClusterConfig, derived: DerivedMode | null): Refusal[] {
  const size = config.dataParallelSize;
  const most = config.elasticEpMaxDpSize;
  if (!config.enableElasticEp) {
    return most === undefined ? [] : [refuse(config, "elastic-wrong", "elasticEpMaxDpSize", {
      message: "a largest size without --enable-elastic-ep has no effect.",
      fix: "Add --enable-elastic-ep, or drop it.",
    })];
  }
  const faults: Refusal[] = [];
  if (!config.enableEplb) {
    faults.push(refuse(config, "elastic-wrong", "enableEplb", {
      message: "elastic expert parallelism moves experts, so their load balancer must be on.",
      fix: "Add --enable-eplb.",
      upstream: "Elastic EP is only supported with enable_eplb=True.",
    }));
  }
  if (!config.moe) {
    faults.push(refuse(config, "elastic-wrong", "moe", {
      message: "elastic expert parallelism needs a mixture-of-experts model.",
      fix: "Add --moe, or drop --enable-elastic-ep.",
    }));
  }
  if (config.pipelineParallelSize !== 1) {
    faults.push(refuse(config, "elastic-wrong", "pipelineParallelSize", {
      message: "elastic expert parallelism has no pipeline parallelism.",
      fix: "Give 1.",
    }));
  }
  if (most !== undefined && most < size) {
    faults.push(refuse(config, "elastic-wrong", "elasticEpMaxDpSize", {
      message: `it is below the first size, ${size}.`,
      fix: `Give ${size} or more.`,
    }));
  }
  const mode = derived?.mode ?? "external";
  if (mode === "hybrid" || (mode === "external" && config.generation !== "newest")) {
    faults.push(refuse(config, "elastic-wrong", "enableElasticEp", {
      message: mode === "hybrid"
        ? "hybrid load balancing cannot be scaled elastically."
        : `engines of generation ${config.generation} scale elastically with internal load balancing only.`,
      fix: mode === "hybrid"
        ? "Use internal or external load balancing."
        : "Use internal load balancing, or engines of the newest generation.",
      upstream:
        "Elastic EP is not compatible with data_parallel_external_lb or data_parallel_hybrid_lb. " +
        "Elastic EP relies on a single API server and core client to coordinate scale up/down.",
    }));
  }
  if (mode === "offline") {
    faults.push(refuse(config, "elastic-wrong", "enableElasticEp", {
      message: "offline ranks have no server that could scale them.",
      fix: "Drop --enable-elastic-ep.",
    }));
  }
  return faults;
}

const HOSTS = ["dataParallelAddress", "dataParallelMasterIp", "hostIp"] as const;

function addressFaults(config: ClusterConfig): Refusal[] {
  return HOSTS.flatMap((key) => {
    const host = config[key];
    const fault = host === undefined
      ? undefined
      : isWildcard(host)
      ? "can be listened on, but nobody can dial it."
      : hostFault(host);
    return fault === undefined ? [] : [refuse(config, "address-unusable", key, {
      message: fault,
      fix: "Give an address of a host, such as 10.0.0.1 or fd00::1, or its name.",
    })];
  });
}

/** What is wrong with the addresses of a plan: who cannot reach what. */
export function endpointFaults(config: ClusterConfig, plan: Topology): Refusal[] {
  return [...loopbackFaults(config, plan), ...dialFaults(config, plan), ...ipcFaults(config, plan)];
}

const follows = (plan: Topology): boolean => plan.own.some((e) => e.hellos.some((h) => !h.local));
const servesRemote = (plan: Topology): boolean =>
  plan.handshake?.engines.some((e) => !e.local) ??
    (plan.backend === "ray" && plan.localSize < plan.size);

function loopbackFaults(config: ClusterConfig, plan: Topology): Refusal[] {
  if (config.allowLoopback) return [];
  const faults: Refusal[] = [];
  const remote = servesRemote(plan);
  if ((remote || follows(plan)) && isLoopback(config.dataParallelAddress)) {
    faults.push(refuse(config, "loopback-with-remote", "dataParallelAddress", {
      message: remote
        ? `${
          plan.size - plan.localSize
        } of ${plan.size} engines run on other hosts and cannot reach a loopback address.`
        : "the head is another host, and a loopback address is this one.",
      fix: remote
        ? "Give an address of this host that the others reach, or --allow-loopback when all run here."
        : "Give the head's address, or --allow-loopback when it runs here.",
    }));
  }
  const master = config.dataParallelMasterIp;
  if (remote && master !== undefined && isLoopback(master)) {
    faults.push(refuse(config, "loopback-with-remote", "dataParallelMasterIp", {
      message: "the ranks of other hosts cannot meet at a loopback address.",
      fix: "Give the address of the host that runs rank 0.",
    }));
  }
  const rank0Elsewhere = plan.handshake !== null && plan.firstRank === 0 && plan.localSize === 0;
  if (rank0Elsewhere && config.moe && plan.size > 1 && master === undefined) {
    faults.push(refuse(config, "rank0-host-unknown", "dataParallelMasterIp", {
      message:
        "the ranks meet at rank 0's engine, which runs on another host; vLLM sends them here.",
      fix: "Give the address of the host that runs rank 0.",
    }));
  }
  return faults;
}

function dialFaults(config: ClusterConfig, plan: Topology): Refusal[] {
  if (!follows(plan) || config.dataParallelRpcPort !== 0) return [];
  return [refuse(config, "invalid-value", "dataParallelRpcPort", {
    message: "this node dials the head and must know its port.",
    fix: "Give the port on which the head listens (29550 unless it was changed).",
  })];
}

function ipcFaults(config: ClusterConfig, plan: Topology): Refusal[] {
  const endpoints = [
    plan.handshake?.bind,
    ...plan.clients.flatMap((c) => [c.input, c.output]),
    plan.coordinator?.frontPublish,
    plan.coordinator?.backPublish,
    plan.coordinator?.backOutput,
  ];
  const paths = endpoints.flatMap((e) => e?.transport === "ipc" ? [e.path] : []);
  if (paths.length === 0) return [];
  if (config.rpcBasePath === undefined) {
    return [refuse(config, "ipc-directory-missing", "rpcBasePath", {
      message: "the sockets of this node are unix sockets and need a directory.",
      fix: "Give a short directory that is fresh for each run.",
    })];
  }
  const longest = paths.reduce((a, b) => pathBytes(b) > pathBytes(a) ? b : a);
  const bytes = pathBytes(longest);
  if (bytes <= MAX_IPC_PATH_BYTES) return [];
  const room = MAX_IPC_PATH_BYTES - (bytes - pathBytes(config.rpcBasePath));
  return [refuse(config, "ipc-path-too-long", "rpcBasePath", {
    message:
      `the socket ${longest} would have a path of ${bytes} bytes, and ${MAX_IPC_PATH_BYTES} are possible.`,
    fix: `Give a directory of ${room} bytes or less.`,
  })];
}
