/** Every model by the name that `muster check` takes, with its parameters. */
import { type Model, ModelError } from "../src/checker/mod.ts";
import { agreement } from "./agreement.ts";
import { dpCoordinator } from "./dp-coordinator.ts";
import { formation } from "./formation.ts";
import { groupCalls } from "./group-call.ts";
import { operationModel } from "./operation.ts";
import { rank } from "./rank.ts";
import { scaling } from "./scaling.ts";
import { startup } from "./startup.ts";
import { tcpStore } from "./tcpstore.ts";
import { twoPhaseCommit } from "./two-phase-commit.ts";
import { waves } from "./waves.ts";
import { upstreamDefects } from "./upstream/mod.ts";

/** A model that can be built with numbers: `--engines 3` and the like. A switch is 0 or 1. */
export interface NamedModel {
  readonly what: string;
  readonly parameters: Readonly<Record<string, Parameter>>;
  build(values: Readonly<Record<string, number>>): Model;
  /** The defect of the original in whose place this model stands: the name after `upstream/`. */
  readonly original?: string;
}

/** A number of a model's. */
export interface Parameter {
  readonly what: string;
  /** What it is when it is not given; it may depend on the ones before it. */
  readonly default: number | ((values: Readonly<Record<string, number>>) => number);
  /** The least that makes sense. Default 0. */
  readonly least?: number;
  /** The most that makes sense. Default any. */
  readonly most?: number;
}

/**
 * All numbers of a model: those that are given, and defaults.
 *
 * @throws ModelError for a number that the model does not have, or cannot have.
 */
export function valuesFor(
  name: string,
  given: Readonly<Record<string, number>> = {},
): Record<string, number> {
  const { parameters } = models[name]!;
  for (const unknown of Object.keys(given).filter((n) => !(n in parameters))) {
    const there = Object.keys(parameters).map((p) => `--${p}`).join(", ");
    throw new ModelError(
      `the model ${name} has no parameter --${unknown}${there === "" ? "" : `; it has ${there}`}`,
    );
  }
  const values: Record<string, number> = {};
  for (const [parameter, { default: usual, least = 0, most = Infinity }] of entries(parameters)) {
    const value = given[parameter] ?? (typeof usual === "number" ? usual : usual(values));
    if (value < least || value > most) {
      const range = most === Infinity ? `${least} or more` : `from ${least} to ${most}`;
      throw new ModelError(`--${parameter} ${value}: it must be ${range}`);
    }
    values[parameter] = value;
  }
  return values;
}
const entries = Object.entries;

/** A switch that is off unless it is turned on. */
const off = (what: string): Parameter => ({ what: `1: ${what}`, default: 0, most: 1 });

const upstream = Object.fromEntries(
  upstreamDefects.map(({ name, what, model }): [string, NamedModel] => [
    `upstream/${name}`,
    { what: `the original: ${what}`, parameters: {}, build: () => model },
  ]),
);

/** `--timeouts -1`: any number of them, and fairly. */
const many = (count: number | undefined): number | undefined => count === -1 ? undefined : count;

export const models: Readonly<Record<string, NamedModel>> = {
  "startup": {
    what: "start-up: our machines, simulated engines, processes and their keeper",
    original: "stray-frame",
    parameters: {
      engines: { what: "ranks", default: 2, least: 1 },
      launched: { what: "1: launched by us; 0: remote", default: 0, most: 1 },
      crashes: { what: "crashes of engines", default: 1 },
      "coordinator-crashes": { what: "crashes of the coordinator", default: 0 },
      timeouts: { what: "deadlines that pass; -1: any number", default: 1, least: -1 },
      "spawn-failures": { what: "spawns that fail", default: 0 },
      stops: off("the operator may stop everything, at any moment"),
      nonsense: { what: "messages in the name of rank 0 that break the protocol", default: 0 },
    },
    build: (v) =>
      startup({
        engines: v["engines"]!,
        launched: v["launched"] === 1,
        crashes: v["crashes"]!,
        coordinatorCrashes: v["coordinator-crashes"]!,
        timeouts: many(v["timeouts"]),
        spawnFailures: v["spawn-failures"]!,
        nonsense: v["nonsense"]!,
        stops: v["stops"] === 1,
      }),
  },
  "formation": {
    what: "the start-up as a whole: sockets, ranks, processes and an operator, at any moment",
    parameters: {
      ranks: { what: "ranks", default: 2, least: 1 },
      strict: off("as the original"),
      stops: off("it stops everything when it fails"),
      hashes: off("configurations are compared"),
      scales: off("it draws ports and opens a store"),
    },
    build: (v) =>
      formation({
        ranks: v["ranks"]!,
        strict: v["strict"] === 1,
        stopOnFailure: v["stops"] === 1,
        comparesHashes: v["hashes"] === 1,
        scales: v["scales"] === 1,
      }),
  },
  "rank": {
    what: "one engine rank alone, and whatever can be said in its name at any moment",
    parameters: {
      launched: { what: "1: its process is ours; 0: remote", default: 0, most: 1 },
      strict: off("refusals end the start-up, as the original's do"),
      joined: off("it came in a scale-up"),
      scales: off("its front-end scales"),
    },
    build: (v) =>
      rank({
        launched: v["launched"] === 1,
        strict: v["strict"] === 1,
        joined: v["joined"] === 1,
        scales: v["scales"] === 1,
      }),
  },
  "scaling": {
    what: "scaling while serving: our machines on every rank, two stores, engines, ranks that join",
    original: "agreement",
    parameters: {
      ranks: { what: "ranks before", default: 3, least: 1, most: 8 },
      target: {
        what: "ranks after; one fewer than before, unless it is given",
        default: ({ ranks }) => Math.max(1, ranks! - 1),
        least: 1,
        most: 8,
      },
      crashes: { what: "crashes of a rank's coordinator", default: 1 },
      timeouts: { what: "deadlines that pass", default: 1 },
      abort: off("the operator may abort, at any moment"),
      "store-faults": {
        what: "stale reads, lost acknowledgements and failing requests of the stores",
        default: 0,
      },
      losses: { what: "connections, engines and addresses that are lost for good", default: 0 },
      shared: off("an operation says commit when all are prepared"),
      earlier: {
        what: "1: an epoch of before has no end; 2: others commit it",
        default: 0,
        most: 2,
      },
    },
    build: (v) =>
      scaling({
        storeFaults: v["store-faults"]!,
        losses: v["losses"]!,
        shared: v["shared"] === 1,
        earlier: ([undefined, "unfinished", "committing"] as const)[v["earlier"]!],
        ranks: v["ranks"]!,
        target: v["target"]!,
        crashes: v["crashes"]!,
        timeouts: v["timeouts"]!,
        abort: v["abort"] === 1,
      }),
  },
  "operation": {
    what: "an operation across all ranks, and the operator who asks for it and aborts it",
    parameters: {
      ranks: { what: "ranks before", default: 2, least: 1, most: 8 },
      target: {
        what: "ranks after; one more than before, unless it is given",
        default: ({ ranks }) => ranks! + 1,
        least: 1,
        most: 8,
      },
      abort: { what: "1: the operator may abort, at any moment", default: 1, most: 1 },
    },
    build: (v) =>
      operationModel({ ranks: v["ranks"]!, target: v["target"]!, abort: v["abort"] === 1 }),
  },
  "group-call": {
    what: "a utility of every rank at once, and a coordinator that crashes while it asks",
    parameters: {
      ranks: { what: "ranks", default: 2, least: 1 },
      crashes: { what: "crashes of the coordinator", default: 1 },
    },
    build: (v) => groupCalls({ ranks: v["ranks"]!, crashes: v["crashes"]! }),
  },
  "dp-coordinator": {
    what: "the DP coordinator alone, and whatever it may be told at any moment",
    original: "publish-starvation",
    parameters: {
      engines: { what: "engines", default: 2, least: 1 },
      waves: { what: "waves that engines tell of", default: 2 },
      optimistic: { what: "1: the rule of 0.12; 0: the newest", default: 0, most: 1 },
    },
    build: (v) =>
      dpCoordinator({
        engines: v["engines"]!,
        waves: v["waves"]!,
        rule: v["optimistic"] === 1 ? "optimistic" : "evidence",
      }),
  },
  "waves": {
    what: "request waves: our coordinator, engines that run and rest together, a front-end",
    original: "wave-latch",
    parameters: {
      engines: { what: "engines", default: 2, least: 1 },
      requests: { what: "requests that arrive", default: 1 },
      overtakes: { what: "waves that end while a request is on its way", default: 1 },
      pauses: { what: "pauses of all engines", default: 0 },
      crashes: { what: "crashes of the coordinator", default: 0 },
      kept: off("engines hold what a coordinator that crashed had not read"),
      optimistic: { what: "1: the rule of 0.12; 0: the newest", default: 0, most: 1 },
    },
    build: (v) =>
      waves({
        kept: v["kept"] === 1,
        engines: v["engines"]!,
        requests: v["requests"]!,
        overtakes: v["overtakes"]!,
        pauses: v["pauses"]!,
        crashes: v["crashes"]!,
        rule: v["optimistic"] === 1 ? "optimistic" : "evidence",
      }),
  },
  "agreement": {
    what: "who decides about a commit: one write-once key",
    original: "agreement",
    parameters: {
      ranks: { what: "old ranks", default: 2, least: 1 },
      original: { what: "how many of them follow the original's rule", default: 0 },
    },
    build: (v) =>
      agreement({
        ranks: v["ranks"]!,
        original: Array.from({ length: v["original"]! }, (_, r) => r),
      }),
  },
  "tcpstore": {
    what: "ranks that decide and meet through a TCPStore: the store that our server runs",
    parameters: {
      ranks: { what: "ranks", default: 3, least: 2 },
      crashes: { what: "crashes of a rank, without return", default: 1 },
    },
    build: (v) => tcpStore({ ranks: v["ranks"]!, crashes: v["crashes"]! }),
  },
  "two-phase-commit": {
    what: "Gray and Lamport's two-phase commit: the yardstick of model checkers",
    parameters: { managers: { what: "resource managers", default: 5, least: 1 } },
    build: (v) => twoPhaseCommit(v["managers"]!),
  },
  ...upstream,
};
