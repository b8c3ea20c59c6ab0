import { type ClusterConfig, worldSizeOf } from "./config.ts";
import { type Endpoint, ipc, tcp } from "./endpoint.ts";
import { type DerivedMode, deriveMode, type Mode } from "./mode.ts";
import type { Notice, Planned } from "./refusal.ts";
import { combinationFaults, endpointFaults } from "./topology-checks.ts";

/** An engine that this front-end shakes hands with, and what its HELLO must declare. */
export interface ExpectedEngine {
  readonly rank: number;
  readonly local: boolean;
  /** Not checked by vLLM for local engines. */
  readonly headless: boolean;
}

/** One HELLO that an engine sends: where to, and the two flags in it. */
export interface EngineHello {
  readonly to: Endpoint;
  readonly local: boolean;
  readonly headless: boolean;
}

/** An engine that runs on this node. */
export interface OwnEngine {
  readonly rank: number;
  readonly localRank: number;
  /** In the order in which it says them: the head first, then its own front-end. None with Ray. */
  readonly hellos: readonly EngineHello[];
}

/** The handshake ROUTER of this front-end. */
export interface HandshakePlan {
  readonly bind: Endpoint;
  readonly engines: readonly ExpectedEngine[];
}

/** The sockets of one API server; its position in the list is its client index. */
export interface ClientPlan {
  readonly input: Endpoint;
  readonly output: Endpoint;
}

/** The three sockets that the DP coordinator binds (section 5.1). */
export interface CoordinatorPlan {
  readonly frontPublish: Endpoint;
  readonly backPublish: Endpoint;
  readonly backOutput: Endpoint;
  /** Are request waves coordinated, or only statistics relayed? */
  readonly waves: boolean;
  /** Columns of a published row: newest front-ends read the use of the KV cache too, and older ones cannot. */
  readonly loadColumns: 2 | 3;
}

/** What one process of the deployment binds, dials, starts and waits for. */
export interface Topology {
  readonly mode: Mode;
  /**
   * `front-end`: shakes hands and serves. `engines`: headless, its engines dial another node.
   * `supervisor`: starts one external rank per local rank, see `children`.
   */
  readonly role: "front-end" | "engines" | "supervisor";
  /** Why this mode, these addresses, this coordinator: one sentence each. */
  readonly why: readonly string[];
  readonly notices: readonly Notice[];
  readonly size: number;
  readonly localSize: number;
  readonly firstRank: number;
  /** Workers (devices) of one rank. */
  readonly worldSize: number;
  readonly backend: "mp" | "ray";
  readonly elastic: boolean;
  /** How far an elastic deployment may grow; the size when it is not elastic. */
  readonly maxSize: number;
  /** Nobody shakes hands with Ray, and a headless node does not bind. */
  readonly handshake: HandshakePlan | null;
  /** Engines that run on this node. Empty with Ray: the placement decides. */
  readonly own: readonly OwnEngine[];
  readonly clients: readonly ClientPlan[];
  readonly coordinator: CoordinatorPlan | null;
  /** Where the ranks meet: the host of rank 0's engine, handed out in INIT. */
  readonly masterIp: string;
  /** Does INIT carry the data-parallel settings, or an empty map (section 2.2)? */
  readonly initCarriesParallelConfig: boolean;
  /** Must the ranks' configuration hashes agree (section 2.4)? */
  readonly comparesHashes: boolean;
  /** With `supervisor`: one topology per child, in the order of their ranks. */
  readonly children: readonly Topology[];
}

/**
 * The plan of one process (section 1: the table, and rules 1 to 9).
 *
 * Ports are 0 where the binder takes a free one and reports it. The names of unix sockets begin with the first
 * rank, so that several processes of a node may share a directory.
 *
 * @returns every refusal at once, each with the flag, the value and the fix.
 */
export function planTopology(config: ClusterConfig): Planned<Topology> {
  if (config.dataParallelMultiPortExternalLb) return supervise(config);
  const derived = deriveMode(config);
  if (!derived.ok) return derived;
  const faults = combinationFaults(config, derived.plan);
  if (faults.length) return { ok: false, refusals: faults };
  const plan = lay(config, derived.plan);
  const unreachable = endpointFaults(config, plan);
  return unreachable.length ? { ok: false, refusals: unreachable } : { ok: true, plan };
}

function lay(config: ClusterConfig, derived: DerivedMode): Topology {
  const { mode, size, localSize, firstRank } = derived;
  const onRay = config.dataParallelBackend === "ray";
  const headless = config.headless;
  const addresses = layAddresses(config, derived);
  const head = firstRank === 0 && !headless;
  const coordinator = head ? coordinatorOf(config, derived, addresses) : undefined;
  const apiServers = apiServersOf(config);
  const first = config.generation === "0.12" || (size > 1 && config.moe);
  return {
    mode,
    role: headless ? "engines" : "front-end",
    why: [...derived.why, ...addresses.why, ...(coordinator ? [coordinator.why] : [])],
    notices: [...derived.notices, ...apiServers.notices],
    size,
    localSize,
    firstRank,
    worldSize: worldSizeOf(config),
    backend: config.dataParallelBackend,
    elastic: config.enableElasticEp,
    maxSize: config.enableElasticEp ? config.elasticEpMaxDpSize ?? size : size,
    handshake: headless || onRay ? null : { bind: addresses.handshake, engines: expected(derived) },
    own: onRay ? [] : ownEngines(config, derived, addresses),
    clients: headless
      ? []
      : Array.from({ length: apiServers.count }, (_, i) => addresses.client(i)),
    coordinator: coordinator?.plan ?? null,
    masterIp: config.dataParallelMasterIp ?? config.dataParallelAddress,
    initCarriesParallelConfig: first || config.generation === "mid" || config.enableElasticEp,
    comparesHashes: size > 1 && (config.generation === "0.12" || config.moe),
    children: [],
  };
}

interface Addresses {
  readonly why: readonly string[];
  /** Bound by this front-end; dialled by its engines where it is the only one. */
  readonly handshake: Endpoint;
  /** The head's, where this front-end is not the head (rule 3). */
  readonly head: Endpoint | null;
  readonly client: (index: number) => ClientPlan;
  readonly file: (name: string) => Endpoint;
}

function layAddresses(config: ClusterConfig, derived: DerivedMode): Addresses {
  const { mode, size, localSize, firstRank } = derived;
  const elastic = config.enableElasticEp;
  const ownOnly = mode === "external" || mode === "hybrid";
  const allLocal = mode === "offline" || localSize === size;
  const follower = ownOnly && firstRank > 0;
  const file = (name: string) => ipc(`${config.rpcBasePath ?? ""}/r${firstRank}-${name}`);
  const rpc = tcp(config.dataParallelAddress, config.dataParallelRpcPort);
  const overIpc = mode === "offline" || (allLocal && !elastic && !config.headless);
  const clientIpc = !elastic && (mode === "offline" || ownOnly || allLocal);
  // The head's address is not one of this host, so a follower cannot bind it; its only engines are beside it.
  const clientHost = follower ? config.hostIp ?? "127.0.0.1" : config.dataParallelAddress;
  const client = (i: number): ClientPlan =>
    clientIpc
      ? { input: file(`in${i}`), output: file(`out${i}`) }
      : { input: tcp(clientHost, 0), output: tcp(clientHost, 0) };
  const onRay = config.dataParallelBackend === "ray";
  const why = [
    onRay
      ? "Handshake: none, Ray's actors get their addresses as arguments."
      : config.headless
      ? `Handshake: the engines dial the head at ${rpc.address}.`
      : follower
      ? `Handshake: the engines say HELLO to the head at ${rpc.address} and then here, over ipc.`
      : overIpc
      ? "Handshake over ipc: every engine is on this node."
      : elastic && allLocal
      ? "Handshake over tcp: a later scale-up may leave this node."
      : "Handshake over tcp: engines of other nodes dial it.",
    ...(config.headless ? [] : [
      clientIpc
        ? "Requests and outputs over ipc: this front-end serves engines of its own node only."
        : elastic
        ? "Requests and outputs over tcp: an elastic deployment may grow beyond this node."
        : "Requests and outputs over tcp: this front-end serves engines of other nodes too.",
    ]),
  ];
  return {
    why,
    handshake: follower || overIpc ? file("handshake") : rpc,
    head: follower || config.headless ? rpc : null,
    client,
    file,
  };
}

function expected({ mode, size, localSize, firstRank }: DerivedMode): ExpectedEngine[] {
  const ranks = (from: number, n: number) => Array.from({ length: n }, (_, i) => from + i);
  const onlyOwn = mode === "offline" || firstRank > 0;
  return ranks(firstRank, onlyOwn ? localSize : size).map((rank) => {
    const local = onlyOwn || rank < localSize;
    return { rank, local, headless: !local && mode === "internal" };
  });
}

function ownEngines(
  config: ClusterConfig,
  { localSize, firstRank }: DerivedMode,
  addresses: Addresses,
): OwnEngine[] {
  const here: EngineHello = { to: addresses.handshake, local: true, headless: false };
  const hellos: EngineHello[] = addresses.head === null
    ? [here]
    : config.headless
    ? [{ to: addresses.head, local: false, headless: true }]
    : [{ to: addresses.head, local: false, headless: false }, here];
  return Array.from({ length: localSize }, (_, i) => ({
    rank: firstRank + i,
    localRank: i,
    hellos,
  }));
}

function coordinatorOf(
  config: ClusterConfig,
  { mode, size, localSize }: DerivedMode,
  { file }: Addresses,
): { plan: CoordinatorPlan | null; why: string } {
  const none = (why: string) => ({ plan: null, why: `No coordinator: ${why}` });
  if (size === 1) return none("there is one rank.");
  if (mode === "offline") return none("offline ranks have no front-end to tell.");
  if (config.generation !== "0.12" && mode === "external" && !config.moe) {
    return none("behind an external load balancer only a mixture of experts needs one.");
  }
  const host = config.dataParallelAddress;
  const publishIpc = mode === "internal";
  const backIpc = size === localSize && !config.enableElasticEp;
  const waves = config.moe || config.generation === "0.12";
  return {
    plan: {
      frontPublish: publishIpc ? file("stats") : tcp(host, 0),
      backPublish: backIpc ? file("waves") : tcp(host, 0),
      backOutput: backIpc ? file("reports") : tcp(host, 0),
      waves,
      loadColumns: config.generation === "newest" ? 3 : 2,
    },
    why: `A coordinator: there are ${size} ranks and this is the front-end of rank 0; ${
      waves ? "it relays statistics and coordinates waves." : "it relays statistics only."
    }`,
  };
}

function apiServersOf(config: ClusterConfig): { count: number; notices: Notice[] } {
  const asked = config.apiServerCount ?? 1;
  if (!config.enableElasticEp || asked <= 1) return { count: asked, notices: [] };
  return {
    count: 1,
    notices: [{
      code: "one-api-server",
      message: `Elastic expert parallelism has one API server; ${asked} were asked for.`,
    }],
  };
}

/** One external rank per local rank, at consecutive HTTP ports. */
function supervise(config: ClusterConfig): Planned<Topology> {
  const faults = combinationFaults(config, null);
  if (faults.length) return { ok: false, refusals: faults };
  const start = config.dataParallelStartRank ?? 0;
  const localSize = config.dataParallelSizeLocal ?? config.dataParallelSize - start;
  const children: Topology[] = [];
  for (let i = 0; i < localSize; i++) {
    const child = planTopology(childConfig(config, start + i, i));
    if (!child.ok) return child;
    children.push(child.plan);
  }
  return {
    ok: true,
    plan: {
      ...children[0]!,
      role: "supervisor",
      why: [
        "--data-parallel-multi-port-external-lb is set: one external server per local rank, " +
        `at ports ${config.port} to ${config.port + localSize - 1}.`,
      ],
      localSize,
      handshake: null,
      own: [],
      clients: [],
      coordinator: null,
      children,
    },
  };
}

/** The configuration of one child of a multi-port supervisor. */
export function childConfig(
  config: ClusterConfig,
  rank: number,
  localRank: number,
): ClusterConfig {
  const { dataParallelStartRank: _, dataParallelSizeLocal: __, ...rest } = config;
  return {
    ...rest,
    dataParallelMultiPortExternalLb: false,
    dataParallelRank: rank,
    dataParallelSizeLocal: 1,
    apiServerCount: 1,
    port: config.port + localRank,
  };
}
