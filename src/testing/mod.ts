/**
 * For those who test against Muster: engines without a GPU that speak the real protocol, and a judge of
 * recorded concurrent histories.
 *
 * @module
 */
export { ENGINE_FAULTS, type EngineFault, type SimulatedEngineInput } from "../peers/engine.ts";
export { FrontEndClient, type FrontEndOptions, type LoadView } from "../drivers/front-end.ts";
export { DpCoordinator, type DpCoordinatorSettings, type DpCoordinatorState } from "../host/mod.ts";
export {
  type Linearization,
  linearize,
  type RecordedOperation,
  type SequentialModel,
} from "./linearizability.ts";
export { joiningEngine, referenceEngines } from "./launches.ts";
export { ReferenceEngine, type ReferenceEngineOptions } from "./reference-engine.ts";
