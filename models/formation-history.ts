/** What the history of a start-up says of it: in which phase it must be, what it has counted, and whom it must tell what. */
import type { Happening } from "../src/checker/mod.ts";
import type { Json, KernelEvent } from "../src/kernel/mod.ts";

export interface FormationSetting {
  readonly ranks: number;
  readonly strict: boolean;
  readonly stopOnFailure: boolean;
  readonly comparesHashes: boolean;
  /** Draws ports and opens a store before it answers engines. */
  readonly scales: boolean;
}

type Phase =
  | "starting.regrouping"
  | "starting.binding"
  | "starting.forming"
  | "formed"
  | "failed.held"
  | "failed.clearing"
  | "failed.cleared"
  | "stopping"
  | "stopped";

type Telling = readonly [to: string, event: Readonly<Record<string, Json>>];

export interface FormationHistory {
  readonly phase: Phase;
  /** The keeper answers: it can host the store. */
  readonly hosted: boolean;
  /** What is known: sockets, `ports`, `store`. */
  readonly known: readonly string[];
  readonly connected: number;
  /** Ranks that said READY, with the blocks that they told. */
  readonly ready: Readonly<Record<string, number | null>>;
  readonly hash: string | null;
  readonly statsAddress: string | null;
  /** All engines were started anew, once at least. */
  readonly regrouped: boolean;
  readonly failure: { readonly code: string; readonly of: string | null } | null;
  readonly owed: readonly Telling[];
  readonly wrong: string | null;
}

const PORTS: Telling = ["world", { type: "ports.draw" }];
const STORE: Telling = ["world", { type: "store.serve" }];

export const begin = ({ scales }: FormationSetting): FormationHistory => ({
  phase: "starting.binding",
  hosted: false,
  known: [],
  connected: 0,
  ready: {},
  hash: null,
  statsAddress: null,
  failure: null,
  regrouped: false,
  owed: scales ? [PORTS] : [],
  wrong: null,
});

/** What must be known before anybody is answered, the handshake's own socket last. */
export const needed = ({ scales }: FormationSetting): string[] => [
  "bus0",
  "coordinator",
  ...(scales ? ["ports", "store"] : []),
  "handshake",
];

/** What an event is a failure of, while a start-up can fail of it. */
const CODES: Readonly<Record<string, string>> = {
  bindFailed: "bind-failed",
  storeServeFailed: "bind-failed",
  launchFailed: "spawn-failed",
  launchSilent: "engine-silent",
  keeperLost: "keeper-lost",
  rankLost: "engine-exited",
  rankLate: "engine-late",
  rankUnresponsive: "engine-unresponsive",
  rankRestarted: "engine-restarted",
  rankRefused: "engine-refused",
  strangers: "stranger",
};
const IN_STRICT = new Set(["rankRefused", "strangers"]);
/** What ends a cluster that has formed. */
const IN_FORMED = new Set([
  "bindFailed",
  "rankLost",
  "rankUnresponsive",
  "rankRestarted",
  "keeperLost",
]);

export function remember(
  history: FormationHistory,
  happening: Happening,
  setting: FormationSetting,
): FormationHistory {
  if (happening.kind === "effect" && happening.instance === "startup") {
    return pay(history, "world", happening.effect as KernelEvent);
  }
  if (happening.kind !== "took") return history;
  const { instance, event, how } = happening;
  if (how === "failed" || how === "unexpected") {
    return { ...history, wrong: `${instance}: ${event.type} ${how}` };
  }
  if (instance === "startup") return atStartup(history, event, setting);
  // What others decide of their own accord is not told by the start-up.
  return event.type === "does" || event.type === "says" ? history : pay(history, instance, event);
}

function pay(history: FormationHistory, to: string, event: KernelEvent): FormationHistory {
  const i = history.owed.findIndex(([who, what]) =>
    who === to && Object.entries(what).every(([name, value]) => event[name] === value)
  );
  return i < 0
    ? { ...history, wrong: `${to} is told ${event.type}` }
    : { ...history, owed: history.owed.filter((_, n) => n !== i) };
}

const owe = (history: FormationHistory, ...tellings: Telling[]): FormationHistory => ({
  ...history,
  owed: [...history.owed, ...tellings],
});
const announce = (what: string): Telling => ["world", { type: "announce", what }];

function atStartup(
  history: FormationHistory,
  event: KernelEvent,
  setting: FormationSetting,
): FormationHistory {
  const { phase } = history;
  const { type } = event;
  const of = (event["from"] as string | undefined) ?? null;
  const starting = phase.startsWith("starting");
  if (type === "stop") return stop(history, setting);
  if (type === "regroup") return phase === "formed" ? regroup(history, setting) : history;
  if (type === "launchesGone") {
    return phase === "starting.regrouping"
      ? bind(
        owe({ ...history, phase: "starting.binding" }, ...(setting.scales ? [PORTS, STORE] : [])),
        setting,
      )
      : history;
  }
  if (type === "keeperHired") {
    return phase === "starting.binding" ? owe({ ...history, hosted: true }, STORE) : history;
  }
  if (type === "processesGone") {
    return owe(
      { ...history, phase: phase === "stopping" ? "stopped" : "failed.cleared" },
      announce("stopped"),
    );
  }
  if (type.startsWith("xstate.after.startupDeadline")) {
    return fail(history, { code: "start-up-late", of: null }, setting);
  }
  const code = CODES[type];
  const fails = phase === "formed" ? IN_FORMED.has(type) : starting &&
    (setting.strict || !IN_STRICT.has(type));
  if (code !== undefined && fails) return fail(history, { code, of }, setting);
  if (phase === "starting.binding") return learn(history, event, setting);
  if (type === "rankBlocks" && of !== null && (starting || phase === "formed")) {
    return { ...history, ready: { ...history.ready, [of]: event["blocks"] as number } };
  }
  if (phase !== "starting.forming") return history;
  switch (type) {
    case "rankConnected":
      return { ...history, connected: history.connected + 1 };
    case "rankAway":
      return { ...history, connected: history.connected - 1 };
    case "rankReady":
      return ready(history, event, setting);
    default:
      return history;
  }
}

/** Ports, the store and everything that was counted belong to the group of before. */
function regroup(history: FormationHistory, setting: FormationSetting): FormationHistory {
  const known = history.known.filter((name) => name !== "ports" && name !== "store");
  return owe(
    {
      ...begin(setting),
      phase: "starting.regrouping",
      hosted: history.hosted,
      known,
      statsAddress: history.statsAddress,
      regrouped: true,
      owed: [],
    },
    ...broken(setting),
    ["launcher", { type: "recycle" }],
    ["waves", { type: "regrouped" }],
    ...Array.from(
      { length: setting.ranks },
      (_, r): Telling => [`rank/${r}/engine`, { type: "restart" }],
    ),
  );
}

/** Operations are refused while the cluster does not serve. */
const broken = ({ scales }: FormationSetting): Telling[] =>
  scales ? [["operations", { type: "clusterBroken" }]] : [];

function stop(history: FormationHistory, setting: FormationSetting): FormationHistory {
  switch (history.phase) {
    case "failed.held":
      return owe({ ...history, phase: "failed.clearing" }, ["launcher", { type: "stop" }]);
    case "failed.cleared":
    case "stopped":
      return owe(history, announce("stopped"));
    case "failed.clearing":
    case "stopping":
      return history;
    default:
      return owe(
        { ...history, phase: "stopping" },
        ["launcher", { type: "stop" }],
        ...broken(setting),
      );
  }
}

function fail(
  history: FormationHistory,
  failure: NonNullable<FormationHistory["failure"]>,
  setting: FormationSetting,
): FormationHistory {
  const { stopOnFailure } = setting;
  const failed = owe(
    {
      ...history,
      phase: stopOnFailure ? "failed.clearing" : "failed.held",
      failure,
    },
    announce("failed"),
    ...broken(setting),
  );
  return stopOnFailure ? owe(failed, ["launcher", { type: "stop" }]) : failed;
}

function learn(
  history: FormationHistory,
  event: KernelEvent,
  setting: FormationSetting,
): FormationHistory {
  const what = { bound: event["socket"] as string, portsDrawn: "ports", storeServing: "store" }[
    event.type as "bound"
  ];
  if (what === undefined) return history;
  const known = [...new Set([...history.known, what])].sort();
  return bind({ ...history, known }, setting);
}

/** It forms as soon as everything is known. */
function bind(history: FormationHistory, setting: FormationSetting): FormationHistory {
  if (!needed(setting).every((name) => history.known.includes(name))) return history;
  const topologies = Array.from(
    { length: setting.scales ? setting.ranks : 0 },
    (_, r): Telling => [`rank/${r}/topology`, { type: "controlServing" }],
  );
  return owe({ ...history, phase: "starting.forming" }, ...topologies, [
    "launcher",
    { type: "open" },
  ]);
}

function ready(
  history: FormationHistory,
  event: KernelEvent,
  setting: FormationSetting,
): FormationHistory {
  const { strict, comparesHashes, ranks } = setting;
  const from = event["from"] as string;
  const blocks = event["blocks"] as number | null;
  const hash = event["hash"] as string | null;
  const next: FormationHistory = {
    ...history,
    ready: { ...history.ready, [from]: blocks },
    hash: history.hash ?? hash,
    statsAddress: history.statsAddress ?? event["statsAddress"] as string | null,
  };
  const differs = comparesHashes && history.hash !== null && hash !== history.hash &&
    (hash !== null || strict);
  if (differs || (strict && blocks === null)) {
    return fail(next, { code: "configuration-mismatch", of: from }, setting);
  }
  return Object.keys(next.ready).length === ranks
    ? owe(
      { ...next, phase: "formed" },
      announce("formed"),
      ...(setting.scales ? [["operations", { type: "clusterServing" }] as const] : []),
    )
    : next;
}
