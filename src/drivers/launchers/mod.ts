/**
 * Launchers: where engines are started, behind one interface. Here those of this host; `drivers/ray` has the one for Ray clusters.
 *
 * @module
 */
export { environmentOf, type EnvironmentRequest } from "./environment.ts";
export {
  type End,
  endText,
  type Launched,
  type Launcher,
  LauncherError,
  type LauncherErrorCode,
  type LaunchExit,
  type LaunchOrder,
  type Stopped,
} from "./launcher.ts";
export { LocalLauncher, type LocalLauncherOptions, type LocalOrder } from "./local.ts";
export {
  headlessCommand,
  VllmLauncher,
  vllmLaunches,
  vllmMissing,
  type VllmNode,
  type VllmOrder,
} from "./vllm.ts";
export {
  causeIn,
  readVllmLine,
  VLLM_STEPS,
  type VllmProgress,
  type VllmStep,
} from "./vllm-output.ts";
