/** How our machines are put together: the charts, the effects, and which instances a configuration starts. */
import {
  Kernel,
  type KernelEvent,
  type KernelOptions,
  type Output,
  start,
  type SystemDefinition,
} from "../kernel/mod.ts";
import type { RunConfiguration } from "./configuration.ts";
import { type Effect, effects, type Resource } from "./effects.ts";
import { engine, type EngineInput } from "./engine.ts";
import { calls, groupCall, utility } from "./group-call.ts";
import { launcher, type LauncherInput, processId } from "./launcher.ts";
import { process, type ProcessInput } from "./process.ts";
import type { Newcomer, OperationsInput } from "./operations.ts";
import { bootScaling, scalingCharts } from "./scaling-system.ts";
import type { TopologyInput } from "./topology.ts";
import { startup } from "./startup.ts";
import type { StartupInput } from "./startup/context.ts";
import { waves, type WavesInput } from "./waves.ts";

/** Instance ids. */
export const ids: {
  readonly startup: "startup";
  readonly launcher: "launcher";
  readonly waves: "waves";
  readonly calls: "calls";
  readonly engine: (rank: number) => string;
  readonly process: (launch: string) => string;
} = {
  startup: "startup",
  launcher: "launcher",
  waves: "waves",
  calls: "calls",
  engine: (rank) => `rank/${rank}/engine`,
  process: processId,
};

/** `[0, 1, 2, 5]` as `[[0, 2], [5, 5]]`. */
function rangesOf(ranks: readonly number[]): [number, number][] {
  const ranges: [number, number][] = [];
  for (const rank of [...ranks].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === rank - 1) last[1] = rank;
    else ranges.push([rank, rank]);
  }
  return ranges;
}

/** The root instances of a run. */
export function boot(configured: KernelEvent): Output[] {
  const c = configured as unknown as RunConfiguration;
  const launched = new Set(c.launches.flatMap((l) => l.ranks));
  const startupInput: StartupInput = {
    sockets: c.sockets,
    parallelConfig: c.parallelConfig,
    drawsPorts: c.drawsPorts === true,
    parallelConfigHash: c.parallelConfigHash,
    comparesHashes: c.comparesHashes,
    size: c.size,
    ranks: rangesOf(c.ranks.map((r) => r.rank)),
    expected: c.ranks.length,
    strict: c.strict === "upstream",
    stopOnFailure: c.onFailure === "stop",
    totalMs: c.limits.totalMs,
    rankLimits: { connectMs: c.limits.connectMs, readyMs: c.limits.readyMs },
    scales: (c.scaling ?? null) !== null,
    ...(learnsStore(c) ? { learnsStore: true } : {}),
    ...(c.scaling && !frontsAll(c) ? { fronts: rangesOf(ownRanks(c)) } : {}),
    ...(c.scaling && frontsAll(c)
      ? { busRanks: [[0, Math.max(c.size, c.scaling.maxSize) - 1]] }
      : {}),
  };
  const launcherInput: LauncherInput = {
    launches: c.launches.map((l) => l.id),
    leaseMs: c.leaseMs,
    ...((c.scaling ?? null) === null || learnsStore(c) ? {} : { hostsStores: true }),
  };
  const reached = new Set(hasBus(c) ? ownRanks(c) : []);
  const engineInput = (rank: RunConfiguration["ranks"][number]): EngineInput => ({
    local: rank.local,
    headless: rank.headless,
    mode: c.mode,
    launched: launched.has(rank.rank),
    strict: c.strict === "upstream",
    connectMs: c.limits.connectMs,
    readyMs: c.limits.readyMs,
    // Of a process that we started we see the end itself.
    heartbeatEveryMs: launched.has(rank.rank) || !reached.has(rank.rank)
      ? 0
      : c.limits.heartbeatEveryMs,
    heartbeatWithinMs: c.limits.heartbeatWithinMs,
    callable: reached.has(rank.rank),
    ...(c.scaling && isOwn(c, rank) ? { scales: true } : {}),
    ...(learnsStore(c) ? { learnsStore: true } : {}),
  });
  const processInput = (launch: RunConfiguration["launches"][number]): ProcessInput => ({
    ...launch,
    stopMs: c.limits.stopMs,
    progressMs: c.limits.progressMs,
  });
  return [
    ...c.ranks.map((r) => start(ids.engine(r.rank), "engine", engineInput(r) as never)),
    start(ids.launcher, "launcher", launcherInput as never),
    start(ids.calls, "calls"),
    ...c.launches.map((l) => start(ids.process(l.id), "process", processInput(l) as never)),
    ...wavesOf(c).map((input) => start(ids.waves, "waves", input as never)),
    ...scalingOf(c),
    start(ids.startup, "startup", startupInput as never),
  ];
}

/** Whether there is a bus to the engines that is ours: on another one they cannot be asked. */
const hasBus = (c: RunConfiguration): boolean => c.sockets.clients.some((client) => client.ours);

/** Behind an external or hybrid load balancer a front-end serves the engines beside it; rank 0's greets all of them at the start. */
const frontsAll = ({ mode }: RunConfiguration): boolean => mode !== "external" && mode !== "hybrid";

const isOwn = (c: RunConfiguration, { local }: { local: boolean }): boolean =>
  local || frontsAll(c);

const ownRanks = (c: RunConfiguration): number[] =>
  c.ranks.filter((rank) => isOwn(c, rank)).map((rank) => rank.rank);

/** The store by which the ranks scale is rank 0's front-end's. */
const learnsStore = (c: RunConfiguration): boolean =>
  (c.scaling ?? null) !== null && !frontsAll(c) && !ownRanks(c).includes(0);

/** What makes a cluster elastic: what each rank's front-end believes, and where operations are asked for. */
function scalingOf(c: RunConfiguration): Output[] {
  const scaling = c.scaling ?? null;
  if (scaling === null) return [];
  const { experts, redundant, maxSize, limits, settleMs, joiner } = scaling;
  const topologyOf = (leader: boolean): TopologyInput => ({
    experts,
    redundant,
    maxSize,
    size: c.size,
    leader,
    masterIp: String(c.parallelConfig?.["data_parallel_master_ip"] ?? "127.0.0.1"),
    // The start-up opens it, and tells.
    control: null,
    limits,
    handshake: leader ? { ...scaling.handshake, ...NO_ADDRESSES } : null,
    hostsControl: leader,
  });
  const desk: OperationsInput = {
    experts,
    redundant,
    maxSize,
    size: c.size,
    settleMs,
    newcomer: frontsAll(c)
      ? { limits, engine: newcomerOf(c, hasBus(c)) }
      : ownRanks(c).includes(0)
      ? { limits: null, engine: newcomerOf(c, false) }
      : null,
    joiner: joiner === null ? null : { ...joiner, stopMs: c.limits.stopMs },
    watchesEngines: true,
    ...(hasBus(c) ? { asksEngines: true } : {}),
    ...(frontsAll(c) ? {} : { fronts: ownRanks(c) }),
    broken: "it has not formed up yet",
    regroup: {
      policy: scaling.enginesAfterAbort ?? "hold",
      size: c.size,
      // Those of other front-ends are not ours to count.
      whole: c.ranks.length === c.size && frontsAll(c),
      launches: c.launches.map(({ id, ranks, output }) => ({
        id,
        ranks,
        namesSize: output === "vllm",
      })),
      progressMs: c.limits.progressMs,
    },
  };
  return bootScaling({
    ranks: ownRanks(c).map((rank) => ({ rank, topology: topologyOf(rank === 0) })),
    operations: desk,
  });
}

const newcomerOf = (c: RunConfiguration, callable: boolean): Newcomer["engine"] => ({
  mode: c.mode,
  strict: c.strict === "upstream",
  heartbeatWithinMs: c.limits.heartbeatWithinMs,
  callable,
});

const NO_ADDRESSES = {
  inputs: [],
  outputs: [],
  coordinatorInput: null,
  coordinatorOutput: null,
  frontendStatsPublish: null,
};

/** The DP coordinator, where this front-end owns it. */
function wavesOf(c: RunConfiguration): WavesInput[] {
  const { coordinator: sockets } = c.sockets;
  if (sockets === null) return [];
  return [{
    sockets,
    engines: c.size,
    coordinates: c.waves !== "off",
    rule: c.waves === "optimistic" ? "optimistic" : "evidence",
    loadColumns: c.loadColumns ?? 3,
    remindMs: 5000,
  }];
}

/** Everything that runs in a Muster coordinator. */
export const cluster: SystemDefinition<Effect> = {
  charts: {
    engine: { machine: engine },
    process: { machine: process },
    launcher: { machine: launcher },
    waves: { machine: waves },
    calls: { machine: calls },
    groupCall: { machine: groupCall },
    utility: { machine: utility },
    ...scalingCharts,
    // Its counters make every state a new one.
    startup: { machine: startup, interned: false },
  },
  effects,
  boot,
};

/** A kernel for our machines. */
export const clusterKernel = (options: KernelOptions = {}): Kernel<Effect, Resource> =>
  new Kernel<Effect, Resource>(cluster, options);
