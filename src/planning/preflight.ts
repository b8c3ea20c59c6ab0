import { type CommandLine, commandOf, type Program, shellLine } from "./command.ts";
import { worldSizeOf } from "./config.ts";
import { assignRanks, type Deployment, type NodeSpec } from "./deployment.ts";
import { type DeviceMap, planDevices } from "./devices.ts";
import { hostKind } from "./endpoint.ts";
import type { Facts, Questions } from "./facts.ts";
import type { NodeReport } from "./placement/placement.ts";
import { planPlacement } from "./placement/plan.ts";
import { PLATFORMS } from "./platform.ts";
import { type Finding, fromNotice, fromRefusal } from "./finding.ts";
import { isHere, worldFindings } from "./preflight-checks.ts";
import { processesOf, type ProcessSpec } from "./processes.ts";
import { deriveMode } from "./mode.ts";
import { planTopology, type Topology } from "./topology.ts";

/** One process of the deployment: what it will do, and how it is started. */
export interface ProcessReport {
  readonly node: string;
  /** `0-3`, `5`, or empty. */
  readonly ranks: string;
  readonly topology: Topology;
  /** Devices by local rank; null when the platform has none, or nobody knows them. */
  readonly devices: readonly (readonly string[])[] | null;
  /** TCP ports that this process binds and that others must know. */
  readonly ports: readonly PortUse[];
  /** The longest path of its unix sockets in bytes, of 107; 0 when it has none. */
  readonly ipcPathBytes: number;
  readonly command: CommandLine;
  readonly shell: string;
}

export interface PortUse {
  readonly host: string;
  readonly port: number;
  readonly what: string;
}

/** The whole deployment, checked. Nothing was started for it. */
export interface Preflight {
  /** No finding is an error. */
  readonly ok: boolean;
  /** One sentence: how many ranks, of what, where, in which mode. */
  readonly summary: string;
  readonly nodes: readonly {
    readonly name: string;
    readonly address: string | null;
    readonly here: boolean;
  }[];
  readonly processes: readonly ProcessReport[];
  /** With Ray: what was free and taken on every node, and why. */
  readonly placement: readonly NodeReport[] | null;
  /** Errors first. */
  readonly findings: readonly Finding[];
}

/** How the plan is to be carried out, beyond the deployment itself. */
export interface PreflightOptions {
  /** Who plays the front-end in the commands. Default: vLLM itself. */
  readonly program?: Program;
  /** What is known of the world; without it nothing of the world is checked. */
  readonly facts?: Facts | null;
}

/** The node of a plan that describes one process. */
const HERE = "this host";
/** As long as the directory that is made where none is given. */
const FRESH_DIRECTORY = "/tmp/muster-XXXXXX";

/**
 * Checks a deployment before anything of it is started: every node's topology and why, its ranks, devices, ports,
 * addresses and socket paths, what is left of an earlier run, and the exact command of every process.
 */
export function preflight(deployment: Deployment, options: PreflightOptions = {}): Preflight {
  const facts = options.facts ?? null;
  const program = options.program ?? "vllm";
  const laid = layOut(deployment, facts, program);
  const findings: Finding[] = [...laid.findings];
  const reports: ProcessReport[] = [];
  for (const spec of laid.processes) {
    const planned = planTopology({
      ...spec.config,
      rpcBasePath: spec.config.rpcBasePath ?? FRESH_DIRECTORY,
    });
    if (!planned.ok) {
      findings.push(...planned.refusals.map((r) => fromRefusal(r, spec.node)));
      continue;
    }
    findings.push(...planned.plan.notices.map((n) => fromNotice(n, spec.node)));
    const devices = laid.devices.get(spec.node) ?? null;
    reports.push(
      reportOf(spec, planned.plan, devices, laid.processes, program),
    );
  }
  findings.push(...worldFindings(deployment, reports, facts));
  const all = mostSevereFirst(findings);
  return {
    ok: !all.some((f) => f.level === "error"),
    summary: summaryOf(deployment, reports),
    nodes: nodesOf(deployment).map((n) => ({
      name: n.name,
      address: n.address ?? null,
      here: isHere(n, facts, deployment),
    })),
    processes: reports,
    placement: laid.placement,
    findings: all,
  };
}

/** What {@link preflight} would like to know of the world for this deployment. */
export function questionsOf(deployment: Deployment): Questions {
  const { processes } = preflight(deployment);
  const names = [
    deployment.settings.dataParallelAddress,
    deployment.settings.dataParallelMasterIp,
    ...deployment.nodes.map((n) => n.address),
  ];
  return {
    names: [...new Set(names)].filter((n): n is string =>
      n !== undefined && hostKind(n) === "name"
    ),
    ports: processes.flatMap((p) => p.ports.map(({ host, port }) => ({ host, port }))),
    directories: [
      ...new Set([
        deployment.settings.rpcBasePath,
        ...deployment.nodes.map((n) => n.rpcBasePath),
      ]),
    ].filter((d) => d !== undefined),
    variable: PLATFORMS[deployment.platform].visibleDevices,
  };
}

const nodesOf = ({ nodes }: Deployment): readonly NodeSpec[] =>
  nodes.length ? nodes : [{ name: HERE }];

/** One front-end with all its ranks is a deployment of one node. */
function withThisHost(deployment: Deployment): Deployment {
  const { settings, nodes } = deployment;
  if (nodes.length > 0 || settings.dataParallelBackend === "ray") return deployment;
  const derived = deriveMode(settings);
  const whole = derived.ok && derived.plan.mode === "internal" && !settings.headless &&
    derived.plan.localSize === settings.dataParallelSize;
  return whole
    ? { ...deployment, nodes: [{ name: HERE, ranks: settings.dataParallelSize }] }
    : deployment;
}

interface LaidOut {
  readonly processes: readonly ProcessSpec[];
  readonly devices: ReadonlyMap<string, DeviceMap>;
  readonly placement: readonly NodeReport[] | null;
  readonly findings: readonly Finding[];
}

function layOut(described: Deployment, facts: Facts | null, program: Program): LaidOut {
  const deployment = program === "muster" ? withThisHost(described) : described;
  const findings: Finding[] = [];
  const { settings } = deployment;
  const nothing = { processes: [], devices: new Map(), placement: null };
  if (deployment.nodes.length === 0) {
    const planned = planTopology({
      ...settings,
      rpcBasePath: settings.rpcBasePath ?? FRESH_DIRECTORY,
    });
    const ranks = planned.ok ? planned.plan.localSize : 0;
    const devices = planned.ok && settings.dataParallelBackend !== "ray"
      ? devicesOf(deployment, { name: HERE }, ranks, facts, findings)
      : null;
    return {
      processes: [{ node: HERE, config: settings, firstLocalRank: 0, ranks }],
      devices: new Map(devices ? [[HERE, devices]] : []),
      placement: null,
      findings,
    };
  }
  if (settings.dataParallelBackend === "ray") return layOutOnRay(deployment);
  const assigned = assignRanks(deployment);
  if (!assigned.ok) {
    return { ...nothing, findings: assigned.refusals.map((r) => fromRefusal(r, null)) };
  }
  const processes = processesOf(deployment, assigned.plan, program);
  if (!processes.ok) {
    return { ...nothing, findings: processes.refusals.map((r) => fromRefusal(r, null)) };
  }
  const devices = new Map<string, DeviceMap>();
  for (const { node, ranks } of assigned.plan) {
    const map = devicesOf(deployment, node, ranks, facts, findings);
    if (map) devices.set(node.name, map);
    const head = processes.plan.some((p) => p.node === node.name);
    if (ranks === 0) findings.push(withoutRanks(node, head));
  }
  return { processes: processes.plan, devices, placement: null, findings };
}

const withoutRanks = (node: NodeSpec, head: boolean): Finding => ({
  level: "note",
  code: "node-without-ranks",
  node: node.name,
  message: head
    ? "it is the head and runs no rank."
    : "it is not needed: every rank has its place.",
});

/** With Ray the head starts everything, and the planner says where. */
function layOutOnRay(deployment: Deployment): LaidOut {
  const { settings, nodes } = deployment;
  const head = nodes[0]!;
  const worldSize = worldSizeOf(settings);
  const deviceKey = PLATFORMS[deployment.platform].rayKey ?? "CPU";
  const fits = Math.floor((head.devices ?? 0) / worldSize);
  const localSize = head.ranks ?? settings.dataParallelSizeLocal ??
    (settings.rayDpPackStrategy === "span" ? 1 : Math.min(fits, settings.dataParallelSize));
  const answer = planPlacement({
    nodes: nodes.map((n) => ({
      id: n.name,
      ip: n.address ?? n.name,
      available: { [deviceKey]: n.devices ?? 0 },
    })),
    deviceKey,
    strategy: settings.rayDpPackStrategy,
    size: settings.dataParallelSize,
    localSize,
    worldSize,
    masterIp: head.address ?? head.name,
    ...(settings.all2allBackend === undefined ? {} : { all2allBackend: settings.all2allBackend }),
  });
  const processes = processesOf(deployment, [{ node: head, firstRank: 0, ranks: localSize }]);
  return {
    processes: processes.ok ? processes.plan : [],
    devices: new Map(),
    placement: answer.ok ? answer.plan.nodes : answer.refusals[0]!.nodes,
    findings: [
      ...(answer.ok ? [] : answer.refusals.map((r) => fromRefusal(r, null))),
      ...(processes.ok ? [] : processes.refusals.map((r) => fromRefusal(r, null))),
    ],
  };
}

function devicesOf(
  deployment: Deployment,
  node: NodeSpec,
  ranks: number,
  facts: Facts | null,
  findings: Finding[],
): DeviceMap | null {
  const platform = PLATFORMS[deployment.platform];
  if (platform.rayKey === null || ranks === 0) return null;
  const here = isHere(node, facts, deployment);
  const count = node.devices ?? (here ? facts?.devices ?? null : null);
  const visible = node.visible ?? (here ? facts?.visible ?? undefined : undefined);
  const answer = planDevices({
    platform,
    localRanks: ranks,
    worldSize: worldSizeOf(deployment.settings),
    count,
    visible,
    explicit: node.deviceMap,
  });
  if (answer.ok) return answer.plan;
  findings.push(...answer.refusals.map((r) => fromRefusal(r, node.name)));
  return null;
}

function reportOf(
  spec: ProcessSpec,
  topology: Topology,
  map: DeviceMap | null,
  all: readonly ProcessSpec[],
  program: Program,
): ProcessReport {
  const devices = map?.ranks.slice(spec.firstLocalRank, spec.firstLocalRank + spec.ranks) ?? null;
  const several = all.filter((p) => p.node === spec.node && p.ranks > 0).length > 1;
  const known = map !== null && !map.why.includes("not known");
  const env = spec.ranks > 0 && devices?.length && (known || several)
    ? { [map!.variable]: devices.flat().join(",") }
    : {};
  const command = commandOf(spec.config, program, env);
  return {
    node: spec.node,
    ranks: rangeText(topology.firstRank, topology.localSize),
    topology,
    devices,
    ports: portsOf(spec, topology),
    ipcPathBytes: longestIpcPath(topology),
    command,
    shell: shellLine(command),
  };
}

const rangeText = (first: number, count: number): string =>
  count === 0 ? "" : count === 1 ? String(first) : `${first}-${first + count - 1}`;

function portsOf({ config }: ProcessSpec, topology: Topology): PortUse[] {
  const bind = topology.handshake?.bind;
  const handshake = bind?.transport === "tcp" && bind.port > 0
    ? [{ host: bind.host, port: bind.port, what: "handshake" }]
    : [];
  const servers = topology.role === "engines" || topology.mode === "offline"
    ? []
    : Array.from({ length: Math.max(1, topology.children.length) }, (_, i) => ({
      host: "*",
      port: config.port + i,
      what: "http",
    }));
  const children = topology.children.flatMap((child) => {
    const bound = child.handshake?.bind;
    return bound?.transport === "tcp"
      ? [{ host: bound.host, port: bound.port, what: "handshake" }]
      : [];
  });
  return [...handshake, ...children, ...servers];
}

function longestIpcPath(topology: Topology): number {
  const { handshake, clients, coordinator, children } = topology;
  const own = [
    handshake?.bind,
    ...clients.flatMap((c) => [c.input, c.output]),
    coordinator?.frontPublish,
    coordinator?.backPublish,
    coordinator?.backOutput,
  ].map((e) => e?.transport === "ipc" ? new TextEncoder().encode(e.path).length : 0);
  return Math.max(0, ...own, ...children.map(longestIpcPath));
}

function summaryOf(
  { settings, nodes, platform }: Deployment,
  reports: readonly ProcessReport[],
): string {
  const mode = reports[0]?.topology.mode;
  const world = worldSizeOf(settings);
  const key = PLATFORMS[platform].rayKey;
  const ranks = `${settings.dataParallelSize} ${
    settings.dataParallelSize === 1 ? "rank" : "ranks"
  }`;
  const plural = world > 1 && /^[A-Z]+$/.test(key ?? "") ? "s" : "";
  const each = key === null ? "" : ` of ${world} ${key}${plural}`;
  const where = nodes.length > 1 ? ` on ${nodes.length} nodes` : "";
  const how = mode === undefined
    ? ""
    : mode === "offline"
    ? ", offline"
    : `, ${mode} load balancing${settings.dataParallelBackend === "ray" ? " on Ray" : ""}`;
  return `${ranks}${each}${where}${how}`;
}

const SEVERITY = { error: 0, warning: 1, note: 2 };
const mostSevereFirst = (findings: readonly Finding[]): Finding[] =>
  [...findings].sort((a, b) => SEVERITY[a.level] - SEVERITY[b.level]);
