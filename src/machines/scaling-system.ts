/** The scaling machines put together: standing instances of every rank, and where operations are asked for. */
import type { AnyStateMachine } from "xstate";
import { type Output, start, type SystemDefinition } from "../kernel/mod.ts";
import { type ScalingEffect, scalingEffects } from "./effects/scaling.ts";
import { joiner } from "./joiner.ts";
import { operation } from "./operation.ts";
import { operations, type OperationsInput } from "./operations.ts";
import { scaleUpHandshake } from "./scale-up-handshake.ts";
import { scaling } from "./scaling.ts";
import { topology, type TopologyInput } from "./topology.ts";

/** The charts of scaling by their names. */
export const scalingCharts: Readonly<
  Record<string, { readonly machine: AnyStateMachine; readonly interned?: boolean }>
> = {
  "topology": { machine: topology },
  "scaling": { machine: scaling },
  "scale-up-handshake": { machine: scaleUpHandshake },
  "joiner": { machine: joiner },
  "operation": { machine: operation },
  // It remembers how operations ended.
  "operations": { machine: operations, interned: false },
};

/** Which ranks this coordinator fronts, and whether operations are asked for here. */
export interface ScalingConfiguration {
  readonly type: "configured";
  readonly ranks: readonly { readonly rank: number; readonly topology: TopologyInput }[];
  readonly operations: OperationsInput | null;
}

/** The root instances of scaling. */
export function bootScaling(c: Pick<ScalingConfiguration, "ranks" | "operations">): Output[] {
  return [
    ...c.ranks.map(({ rank, topology }) =>
      start(`rank/${rank}/topology`, "topology", topology as never)
    ),
    ...(c.operations === null ? [] : [start("operations", "operations", c.operations as never)]),
  ];
}

/** Scaling alone: what models and properties run, and what a coordinator has beside its start-up. */
export const scalingSystem: SystemDefinition<ScalingEffect> = {
  charts: scalingCharts,
  effects: scalingEffects,
  boot: (configured) => bootScaling(configured as unknown as ScalingConfiguration),
};
