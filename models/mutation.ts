/** Which models judge which of our machines when these are broken on purpose: small ones, that go everywhere. */
import type { AnyStateMachine } from "xstate";
import type { Model } from "../src/checker/mod.ts";
import {
  calls,
  engine,
  groupCall,
  operation as operationChart,
  operations as operationsChart,
  scaling as rankScaling,
  startup as startupChart,
  utility,
  waves as wavesChart,
} from "../src/machines/mod.ts";
import { desk } from "./desk.ts";
import { formation } from "./formation.ts";
import { dpCoordinator } from "./dp-coordinator.ts";
import { operationModel } from "./operation.ts";
import { groupCalls } from "./group-call.ts";
import { rank } from "./rank.ts";
import { scaling } from "./scaling.ts";

export interface Judged {
  readonly machine: AnyStateMachine;
  /** Made when asked for: exploring them takes a moment. */
  readonly models: () => readonly Model[];
}

const operationModels = (): Model[] => [
  operationModel({ target: 1, next: true }),
  operationModel({ target: 3 }),
];

/** By the name that `muster check NAME --mutate` and `npm run mutants NAME` take. */
export const judged: Readonly<Record<string, Judged>> = {
  engine: {
    machine: engine,
    models: () => [
      rank(),
      rank({ launched: true }),
      rank({ strict: true }),
      rank({ joined: true, scales: true }),
      rank({ launched: true, callable: false }),
      rank({ launched: true, learnsStore: true }),
    ],
  },
  startup: {
    machine: startupChart,
    models: () => [
      formation({ ranks: 1 }),
      formation({ ranks: 1, scales: true, stopOnFailure: true }),
      formation({ ranks: 1, strict: true }),
      formation({ ranks: 2, comparesHashes: true, regroups: false }),
    ],
  },
  waves: {
    machine: wavesChart,
    models: () => [
      dpCoordinator(),
      dpCoordinator({ rule: "optimistic" }),
      dpCoordinator({ coordinates: false }),
    ],
  },
  "group-call": { machine: groupCall, models: () => [groupCalls()] },
  utility: { machine: utility, models: () => [groupCalls()] },
  calls: { machine: calls, models: () => [groupCalls()] },
  operation: { machine: operationChart, models: operationModels },
  operations: {
    machine: operationsChart,
    models: () => [desk({ policy: "restart" }), desk({ policy: "hold" }), ...operationModels()],
  },
  scaling: {
    machine: rankScaling,
    models: () =>
      ([
        { target: 1 },
        { target: 3 },
        { target: 1, shared: true },
        { target: 1, earlier: "unfinished" },
        { target: 1, earlier: "committing" },
        { target: 1, storeFaults: 2 },
        { target: 1, losses: 1, closely: true },
        { target: 3, losses: 1, closely: true },
        { target: 1, abort: true, closely: true },
        { target: 1, crashes: 1 },
        { target: 1, timeouts: 1, closely: true },
      ] as const).map((options) => scaling({ crashes: 0, timeouts: 0, ...options })),
  },
};
