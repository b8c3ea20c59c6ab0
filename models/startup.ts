/**
 * Start-up: the machines that run in production, simulated engines, the handshake's connections, processes and their keeper, deadlines
 * and crashes.
 *
 * Remote engines come and go unseen; launched ones are spawned through the keeper, and their end is reported. Where the coordinator may
 * crash, it crashes at any moment and in the middle of any step, and comes back from its journal.
 */
import {
  boot,
  type Crash,
  crash,
  defineModel,
  type Model,
  type Operation,
  type Reducer,
  send,
  type World,
} from "../src/checker/mod.ts";
import { counted } from "../src/checker/words.ts";
import { effect, type KernelEvent, type Output, start } from "../src/kernel/mod.ts";
import {
  boot as bootCluster,
  cluster,
  DEFAULT_LIMITS,
  type RunConfiguration,
} from "../src/machines/mod.ts";
import { simulatedEngine } from "../src/peers/engine.ts";

export interface StartupOptions {
  readonly engines?: number;
  /** Whether the coordinator launches the engines (then it sees them end); otherwise they are remote. Default false. */
  readonly launched?: boolean;
  /** Crashes of engines. A remote engine is restarted by somebody; the end of a launched one is reported. Default 1. */
  readonly crashes?: number;
  /** Crashes of the coordinator. Default 0. */
  readonly coordinatorCrashes?: number;
  /** Deadlines that may pass; undefined: any number of times, and fairly. Default 1. */
  readonly timeouts?: number | undefined;
  /** Messages of rank 0's engine that break the protocol: wrong flags, out of turn, twice, no msgpack. Default 0. */
  readonly nonsense?: number;
  /** Whether the operator may stop everything, at any moment. Default false. */
  readonly stops?: boolean;
  /** Spawns that may fail (launched engines only). Default 0. */
  readonly spawnFailures?: number;
  /** Engines that live and do not answer a coordinator that came back. Default 0. */
  readonly silences?: number;
}

const COORDINATOR = "coordinator";
const BLOCKS = 7;
const DEADLINES = new Set(["startupDeadline", "connectDeadline", "readyDeadline", "initDeadline"]);

const rankOf = (engine: string): number => Number(engine.slice("engine/".length));

/** INIT, as far as it matters to an engine without sockets. */
const INIT = {
  addresses: {
    inputs: ["in"],
    outputs: ["out"],
    coordinatorInput: null,
    coordinatorOutput: null,
    frontendStatsPublish: null,
  },
  parallelConfig: {},
  parallelConfigHash: null,
};

function configuration(engines: number, launched: boolean): RunConfiguration {
  const ranks = Array.from({ length: engines }, (_, rank) => rank);
  return {
    type: "configured",
    size: engines,
    mode: "internal",
    ranks: ranks.map((rank) => ({ rank, local: launched, headless: !launched })),
    launches: launched
      ? ranks.map((r) => ({ id: `${r}`, ranks: [r], argv: [], env: {}, cwd: null, inherit: false }))
      : [],
    sockets: {
      handshake: "h",
      clients: [{ input: "i", output: "o", ours: true }],
      coordinator: null,
    },
    parallelConfig: null,
    parallelConfigHash: null,
    comparesHashes: false,
    waves: "off",
    strict: "muster",
    onFailure: "hold",
    leaseMs: 0,
    limits: DEFAULT_LIMITS,
  };
}

/** A simulated engine's process. */
const engineProcess = ({ rank, local, headless }: RunConfiguration["ranks"][number]): Output[] => [
  start(`engine/${rank}`, "simulated-engine", {
    contacts: [{ local, headless }],
    blocks: BLOCKS,
    bootMs: 1,
    loadMs: 1,
    initMs: 300_000,
    exitCode: 1,
    faults: [],
  }),
];

/** What an engine, or somebody in its name, may say that breaks the protocol. */
const NONSENSE: readonly KernelEvent[] = [
  { type: "hello", local: true, headless: false },
  { type: "hello", local: false, headless: false },
  { type: "hello", local: false, headless: true },
  { type: "malformed", reason: "no msgpack" },
  { type: "ready", local: true, headless: false, blocks: BLOCKS, statsAddress: null, hash: null },
  { type: "ready", local: false, headless: true, blocks: BLOCKS, statsAddress: null, hash: null },
];

/** Speaks as rank 0's engine, a number of times. */
const crook: Reducer = {
  id: "crook",
  initial: (messages) => ({ state: messages }),
  step: (left, { which }) =>
    left === 0
      ? undefined
      : { state: (left as number) - 1, outputs: [effect({ type: "crook.says", which })] },
};

/** Start-up of `engines` ranks. */
export function startup(options: StartupOptions = {}): Model {
  const { engines = 2, launched = false, crashes = 1, coordinatorCrashes = 0 } = options;
  const timeouts = "timeouts" in options ? options.timeouts : 1;
  return startupOf(
    configuration(engines, launched),
    { ...options, timeouts },
    [
      `start-up of ${counted(engines, `${launched ? "launched" : "remote"} engine`)}`,
      counted(crashes, "engine crash", "engine crashes"),
      counted(coordinatorCrashes, "coordinator crash", "coordinator crashes"),
      timeouts === undefined ? "any number of timeouts" : counted(timeouts, "timeout"),
    ].join(", "),
  );
}

/** Start-up with a given configuration, such as that of a recorded run. A DP coordinator is left out. */
export function startupOf(
  configuration: RunConfiguration,
  options: Omit<StartupOptions, "engines" | "launched">,
  name = `start-up of ${configuration.size} engines`,
): Model {
  const {
    crashes = 1,
    coordinatorCrashes = 0,
    spawnFailures = 0,
    silences = 0,
    nonsense = 0,
    stops = false,
    timeouts,
  } = options;
  const configured = {
    ...configuration,
    // Beside the model: waves, ports of the ranks' groups, and the store of a cluster that scales.
    sockets: { ...configuration.sockets, coordinator: null },
    drawsPorts: false,
    scaling: null,
  } as const;
  const ranks = configured.ranks.map((r) => r.rank);
  const expectations = new Map(configured.ranks.map((r) => [r.rank, r]));
  const launchOf = new Map(configured.launches.flatMap((l) => l.ranks.map((r) => [r, l] as const)));
  const launches = new Map(configured.launches.map((l) => [`process/${l.id}`, l]));
  const remote = ranks.filter((r) => !launchOf.has(r)).map((r) => `engine/${r}`);
  const local = ranks.filter((r) => launchOf.has(r)).map((r) => `engine/${r}`);
  const exited = (node: string): Operation[] => {
    const launch = launchOf.get(rankOf(node));
    return launch === undefined
      ? []
      : [send("keeper", `process/${launch.id}`, { type: "exited", code: 1, signal: null })];
  };
  const faults: Crash[] = [
    { nodes: remote, budget: crashes, restart: "fresh" },
    { nodes: [COORDINATOR], budget: coordinatorCrashes, restart: "journal" },
    {
      nodes: local,
      budget: crashes,
      restart: "never",
      when: (node, w) => w.at(node) !== undefined,
      notices: (node) => exited(node),
    },
  ];
  const stopping = (w: World): boolean =>
    w.in("startup", "stopping") || w.in("startup", "failed.clearing");
  const stopped = (w: World): boolean =>
    w.in("startup", "stopped") || w.in("startup", "failed.cleared");
  const isReady = (w: World, rank: number) =>
    ["ready", "adopting"].some((s) => w.in(`rank/${rank}/engine`, s));
  const context = (w: World) => w.at("startup")!.context;
  return defineModel({
    name,
    charts: {
      ...Object.fromEntries(Object.entries(cluster.charts).map(([name, c]) => [name, c.machine])),
      "simulated-engine": simulatedEngine,
    },
    processes: nonsense === 0 ? {} : {
      crook: {
        runs: crook,
        input: nonsense,
        may: NONSENSE.map((_, which) => ({ type: "says", which })),
      },
    },
    boots: {
      [COORDINATOR]: bootCluster(configured as never),
      ...Object.fromEntries(remote.map((node) => [
        node,
        engineProcess(expectations.get(rankOf(node))!),
      ])),
      ...Object.fromEntries(local.map((node) => [node, []])),
    },
    ...(stops ? { may: { startup: [{ type: "stop" }] } } : {}),
    channels: {
      // Engines connect and speak when they like; they are heard once the socket is bound.
      handshake: {
        kind: "fifo",
        open: (w, to) => to.startsWith("engine/") || context(w).bound.handshake !== undefined,
      },
      keeper: "bag",
    },
    effects: {
      // The driver has no INIT to send until every address is known.
      "handshake.init": (_, w, from) =>
        w.in("startup", "starting.binding") ? [] : [
          send("handshake", `engine/${from.split("/")[1]}`, {
            type: "init",
            contact: 0,
            init: INIT,
          }),
        ],
      "crook.says": ({ which }) => [send("handshake", "rank/0/engine", NONSENSE[which]!)],
      "announce": () => [],
      "engine.hello": ({ local, headless }, _, from) => [
        send("handshake", `rank/${rankOf(from)}/engine`, { type: "hello", local, headless }),
      ],
      "engine.ready": ({ local, headless, blocks }, _, from) => [
        send("handshake", `rank/${rankOf(from)}/engine`, {
          type: "ready",
          local,
          headless,
          blocks,
          statsAddress: null,
          hash: null,
        }),
      ],
      // It did not hear from the front-end for too long and ends; whoever watches it sees that.
      "engine.exit": (_, __, from) => [{ do: "crash", node: from }, ...exited(from)],
    },
    calls: {
      "engine.join": () => [{ event: { type: "joined" } }],
      // An engine that serves answers a coordinator that came back. One that ended, or hangs, does not.
      "engine.call": (_, w, from) => {
        const engine = `engine/${from.split("/")[1]}`;
        const late = { event: { type: "utilityLate" } };
        return w.at(engine) === undefined || w.down(engine) || !w.in(engine, "serving")
          ? [late]
          : [{ event: { type: "utilityReplied" } }, { ...late, fault: "silent engines" }];
      },
      "keeper.place": () => [{
        event: { type: "keeperPlaced", place: { mark: "m", directory: "d" } },
      }],
      // The keeper knows a launch by its effect id: asked again it answers again and starts nothing.
      "process.spawn": (_, __, from, owed) => [
        {
          event: { type: "spawned", pid: 1 },
          does: launches.get(from)!.ranks.map((rank) =>
            boot(`engine/${rank}`, engineProcess(expectations.get(rank)!))
          ),
        },
        ...(owed
          ? []
          : [{ event: { type: "spawnFailed", text: "no such file" }, fault: "failing spawns" }]),
      ],
      // The processes end, whoever watches them sees it, and then the request is answered.
      "process.stop": (_, w, from) => {
        const alive = launches.get(from)!.ranks.map((r) => `engine/${r}`).filter((node) =>
          w.at(node) !== undefined && !w.down(node)
        );
        if (alive.length === 0) return [{ event: { type: "stopAnswered" } }];
        return [{ does: [...alive.map((node) => crash(node)), ...exited(alive[0]!)] }];
      },
    },
    resources: {
      "socket.handshake": (_, w) =>
        context(w).bound.handshake === undefined
          ? [{ event: { type: "bound", socket: "handshake", endpoints: { bind: "h" } } }]
          : [],
      "socket.bus": ({ client }, w) =>
        context(w).bound[`bus${client}`] === undefined
          ? [{
            event: {
              type: "bound",
              socket: `bus${client}`,
              endpoints: { input: "i", output: "o" },
            },
          }]
          : [],
      "keeper": (_, w) =>
        w.in("launcher", "hiring") || w.in("launcher", "returning")
          ? [{ event: { type: "keeperUp", identity: { pid: 2, startTicks: null, boot: null } } }]
          : [],
    },
    ...(timeouts === undefined ? {} : {
      timers: { deadline: (_: string, timer: string) => DEADLINES.has(timer), budget: timeouts },
    }),
    faults: {
      crashes: faults,
      budgets: { "failing spawns": spawnFailures, "silent engines": silences },
    },
    monitors: {
      surprises: {
        initial: [],
        heeds: (h) =>
          h.kind === "took" && (h.how === "failed" || h.how === "unexpected") &&
          !h.instance.startsWith("engine/"),
        step: (surprises, h) =>
          h.kind === "took" ? [`${h.instance}: ${h.event.type} ${h.how}`] : surprises,
      },
    },
    properties: {
      always: {
        "every event is one that the chart knows, and no action fails": (w) =>
          w.memory("surprises").length === 0,
        "a rank that is late, lost or started anew fails the start-up": (w) =>
          !ranks.some((r) =>
            ["late", "lost", "restarted"].some((s) => w.in(`rank/${r}/engine`, s))
          ) || !["starting", "formed"].some((s) => w.in("startup", s)),
        "a rank that is ready said READY": (w) =>
          nonsense > 0 ||
          ranks.every((r) =>
            !isReady(w, r) || w.down(`engine/${r}`) || w.spent("crashes") > 0 ||
            w.in(`engine/${r}`, "serving")
          ),
        "formed means that every rank is ready": (w) =>
          !w.in("startup", "formed") || ranks.every((r) => isReady(w, r)),
        "while it forms, the ranks that are ready are counted, each once": (w) =>
          !w.in("startup", "starting") ||
          context(w).ready === ranks.filter((r) => isReady(w, r)).length,
        "the blocks are those of the ranks that are ready": (w) =>
          (context(w).blocks?.sum ?? 0) === BLOCKS * context(w).ready,
        "an engine that does not answer a coordinator that came back is a failure": (w) =>
          w.spent("silent engines") === 0 ||
          !["starting", "formed"].some((s) => w.in("startup", s)),
        "nothing runs that was launched once all is stopped": (w) =>
          !stopped(w) || local.every((node) => w.at(node) === undefined || w.down(node)),
        "a failure names its cause": (w) =>
          !w.in("startup", "failed") || context(w).failure !== null,
        "a failure of a rank names the rank": (w) =>
          !["engine-exited", "engine-late", "engine-restarted", "engine-unresponsive"].includes(
            context(w).failure?.code,
          ) ||
          /^rank\/\d+\/engine$/.test(context(w).failure.of),
      },
      sometimes: { "all form up": (w) => w.in("startup", "formed") },
      ...(stops
        ? { leadsTo: { "who is told to stop is stopped": [stopping, stopped] as const } }
        : {}),
      eventually: timeouts === undefined
        ? {
          "the start-up ends": (w: World) =>
            w.in("startup", "formed") || w.in("startup", "failed") || stopped(w),
        }
        : {
          "all form up unless something goes wrong": (w: World) =>
            w.in("startup", "formed") || w.in("startup", "failed") || stopped(w) ||
            [
              "crashes",
              "crashes 2",
              "crashes 3",
              "deadlines",
              "failing spawns",
              "silent engines",
            ].some((b) => w.spent(b) > 0),
        },
    },
  });
}
