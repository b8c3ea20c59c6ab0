/** Journals of production held against the start-up model: which model, and what of each record counts as seen. */
import type { Input, KernelEvent } from "../src/kernel/mod.ts";
import type { RunConfiguration } from "../src/machines/mod.ts";
import {
  conform,
  type Conformance,
  type ConformOptions,
  type Model,
  type Observation,
} from "../src/checker/mod.ts";
import { startupOf } from "./startup.ts";

/** The instances of start-up: everything that they are given is in the journal. */
const ISSUE = /^(startup|launcher|process\/.+|rank\/\d+\/engine)$/;

/** Members that the model knows too; addresses, sizes, pids and texts differ. */
const COMPARED: Readonly<Record<string, readonly string[]>> = {
  bound: ["socket"],
  hello: ["local", "headless"],
  ready: ["local", "headless"],
};

/** Things that happen beside the model: they are recorded, and change nothing that it is about. */
const BESIDE = new Set([
  "strangers",
  "progressed",
  "keeperUp",
  "portsDrawn",
  "storeServing",
  "firstFrame",
]);

/** A cluster that scales has its keeper before its sockets, since its store lives there; another one has it after them. */
const BESIDE_WHEN_IT_SCALES = new Set([...BESIDE, "keeperPlaced"]);

export interface JournalConformance extends Conformance {
  /** Inputs of the journal that the model is not about, by what they are. */
  readonly leftOut: Readonly<Record<string, number>>;
}

/** How much goes wrong, as far as a journal does not tell: tried one after another. */
const UNSEEN = [0, 1, 4];

/** The first input of a journal is its configuration; a journal that was compacted has none. */
export function modelOfRun(configured: KernelEvent, unseen: number, restarts: number): Model {
  return startupOf(configured as unknown as RunConfiguration, {
    crashes: unseen,
    coordinatorCrashes: restarts,
    timeouts: undefined,
    spawnFailures: unseen,
    silences: unseen,
    stops: true,
  });
}

/** What of an input is compared. Undefined when the model is not about it. */
export function observationOf(
  { seq, to, event }: Input,
  beside: ReadonlySet<string> = BESIDE,
): Observation | undefined {
  if (to === "@system" && event.type === "resumed") return { seq, to, event: { type: "resumed" } };
  if (!ISSUE.test(to) || beside.has(event.type)) return undefined;
  if (event.type === "bound" && event["socket"] === "coordinator") return undefined;
  const type = event.type === "timer.fired" ? String(event["timer"]) : event.type;
  // A release that does not know the utility has answered, too.
  if (type === "utilityFailed") return { seq, to, event: { type: "utilityReplied" } };
  const compared = (COMPARED[type] ?? []).map((name) => [name, event[name]] as const);
  return { seq, to, event: { type, ...Object.fromEntries(compared) } };
}

/** Holds the inputs of a journal, from the first on, against the start-up model of its own configuration. */
export function conformJournal(
  inputs: Iterable<Input>,
  options: ConformOptions = {},
): JournalConformance {
  let configured: KernelEvent | undefined;
  const observations: Observation[] = [];
  const leftOut: Record<string, number> = {};
  let beside = BESIDE;
  let scales = false;
  const bound = new Set<string>();
  for (const input of inputs) {
    if (input.event.type === "configured") {
      configured = input.event;
      if ((configured["scaling"] ?? null) !== null) beside = BESIDE_WHEN_IT_SCALES;
      continue;
    }
    // From here on there are ranks and processes that no start-up knows.
    scales ||= input.to === "operations";
    // A socket that is bound again, with more to say or after a restart, is where it was.
    const again = input.event.type === "bound" && bound.has(String(input.event["socket"]));
    if (input.event.type === "bound") bound.add(String(input.event["socket"]));
    const observation = scales || again ? undefined : observationOf(input, beside);
    if (observation !== undefined) observations.push(observation);
    else {
      const what = scales
        ? "inputs since the cluster was asked to scale"
        : `${input.event.type} to ${input.to}`;
      leftOut[what] = (leftOut[what] ?? 0) + 1;
    }
  }
  if (configured === undefined) {
    throw new Error(
      "the journal does not begin with its configuration (it was compacted), so there is no run to compare",
    );
  }
  const restarts = observations.filter((o) => o.event.type === "resumed").length;
  let best: Conformance | undefined;
  for (const unseen of UNSEEN) {
    const found = conform(modelOfRun(configured, unseen, restarts), observations, {
      observed: (instance) => instance === "@system" || ISSUE.test(instance),
      hidden: (action) => beside.has(action.event?.type ?? ""),
      ...options,
    });
    if (best === undefined || found.explained > best.explained) best = found;
    if (found.outcome === "conforms") break;
  }
  return { ...best!, leftOut };
}
