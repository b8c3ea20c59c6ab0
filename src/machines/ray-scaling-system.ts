/** Internal elastic scaling as a system of its own: one standing instance, beside a coordinator's start-up. */
import type { AnyStateMachine } from "xstate";
import { type Output, start, type SystemDefinition } from "../kernel/mod.ts";
import { rayEffects, type RayScalingEffect } from "./effects/ray.ts";
import { scalingEffects } from "./effects/scaling.ts";
import { rayScaling, type RayScalingInput } from "./ray-scaling.ts";

export const rayScalingCharts: Readonly<
  Record<string, { readonly machine: AnyStateMachine; readonly interned?: boolean }>
> = {
  // It carries a placement.
  "ray-scaling": { machine: rayScaling, interned: false },
};

export const bootRayScaling = (input: RayScalingInput): Output[] => [
  start("ray-scaling", "ray-scaling", input as never),
];

export const rayScalingSystem: SystemDefinition<RayScalingEffect> = {
  charts: rayScalingCharts,
  effects: {
    ...rayEffects,
    "scaling.draw": scalingEffects["scaling.draw"],
    "store.serve": scalingEffects["store.serve"],
    "operation.answer": scalingEffects["operation.answer"],
  },
  boot: (configured) => bootRayScaling((configured as unknown as { input: RayScalingInput }).input),
};
