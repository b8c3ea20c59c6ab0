// deno-lint-ignore-file no-explicit-any
import type { EventObject, MachineContext, StateMachine } from "xstate";

/**
 * The type of a chart with context `C` and events `E`: what an exported machine is annotated with, because the
 * inferred type cannot be written down under `isolatedDeclarations`.
 *
 * ```ts
 * export const engine: Chart<Context, Event> = setup({ ... }).createMachine({ ... });
 * ```
 */
export type Chart<C extends MachineContext, E extends EventObject> = StateMachine<
  C,
  E,
  any,
  any,
  any,
  any,
  any,
  any,
  any,
  any,
  any,
  any,
  any,
  any
>;
