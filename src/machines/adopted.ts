/** When a run that was restarted has heard from everybody it may hear from. */
import type { InstanceId, System } from "../kernel/mod.ts";

/**
 * What an instance of a settled system may be in. A chart that is not here exists only while something is under way (an operation, a call of a
 * group), and what is under way is listened to for the whole grace.
 */
const SETTLED: Readonly<Record<string, readonly string[] | "anything">> = {
  engine: ["ready", "late", "lost", "stopped", "restarted", "left"],
  launcher: ["idle", "running", "bereft", "gone"],
  process: "anything",
  startup: ["formed", "failed", "stopped"],
  waves: "anything",
  calls: "anything",
  operations: "anything",
  topology: ["steady", "unknown"],
};

/**
 * Whether every adopted peer has answered since the restart: the keeper, and each engine that serves. A rank that has not formed up yet is
 * waited for, since its HELLO or READY may lie in a socket. Answers quickly when asked again after every step.
 */
export function everybodyAdopted(): (system: System) => boolean {
  let waitsFor: InstanceId | undefined;
  return (system) => {
    if (waitsFor !== undefined && !isSettled(system, waitsFor)) return false;
    for (const { id } of system.instances) {
      if (isSettled(system, id)) continue;
      waitsFor = id;
      return false;
    }
    return true;
  };
}

function isSettled(system: System, id: InstanceId): boolean {
  const instance = system.instances.get(id);
  if (instance === undefined) return true;
  const settled = SETTLED[instance.chart];
  if (settled === undefined) return false;
  const { value } = instance.state.snapshot;
  return settled === "anything" ||
    settled.includes(typeof value === "string" ? value : Object.keys(value)[0]!);
}
