/**
 * Whoever speaks to a machine from outside, in a model that is about that machine alone: at any moment it may say any of what the model
 * lets it say. Unlike what a process does of its own accord, what it says happens also where nobody listens, so that a machine which
 * leaves something unheard is found out.
 */
import {
  type EffectRule,
  input,
  type May,
  type Process,
  type Reducer,
  type World,
} from "../src/checker/mod.ts";
import { effect, type Json, type KernelEvent } from "../src/kernel/mod.ts";

/** Something to be said to an instance. */
export type Saying = readonly [to: string, event: KernelEvent];

const speaks: Reducer = {
  id: "bystander",
  initial: () => ({ state: null }),
  step: (state, { to, event }) => ({
    state,
    outputs: [effect({ type: "bystander.says", to, event })],
  }),
};

/** A process that may say these things at any moment. */
export function bystander(sayings: (world: World) => readonly Saying[]): Process {
  const may: May = (world) =>
    sayings(world).map(([to, event]) => ({ type: "says", to, event: event as unknown as Json }));
  return { runs: speaks, may };
}

/** What the world does about it: the other one hears it. */
export const heard: Record<"bystander.says", EffectRule> = {
  "bystander.says": ({ to, event }) => [input(to, event)],
};

/** Hears everything and remembers nothing: what it is told is for monitors to judge. */
export const listener: Reducer = {
  id: "listener",
  initial: () => ({ state: null }),
  step: (state) => ({ state }),
};
