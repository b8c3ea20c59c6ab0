import { constants } from "node:os";
import type { End } from "../launchers/launcher.ts";
import type { Job } from "./api.ts";
import { GUARD_EXIT } from "./guard.ts";

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, n]) => [n, name]));
const signal = (n: number): End => ({ kind: "signal", signal: SIGNALS.get(n) ?? `signal ${n}` });

/** The end that a guard told: above 128 is a signal's. */
export const endOfCode = (code: number): End =>
  code > 128 && code < 160 ? signal(code - 128) : { kind: "exit", code };

/** Errors of Ray that mean that the entrypoint never ran. */
const NEVER_RAN = [
  "JOB_SUPERVISOR_ACTOR_START_FAILURE",
  "JOB_SUPERVISOR_ACTOR_START_TIMEOUT",
  "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE",
  "RUNTIME_ENV_SETUP_FAILURE",
];

/** The end of a job that Ray says is over. `started`: its rank was seen to run. What nobody knows is not guessed. */
export function endOfJob(job: Job, started: boolean): End {
  const reason = job.message.split("\n")[0] || `Ray says ${job.status}`;
  if (job.status === "SUCCEEDED") return { kind: "exit", code: 0 };
  if (job.exitCode !== null) {
    if (job.exitCode < 0) return signal(-job.exitCode);
    if (job.exitCode === GUARD_EXIT && !started) {
      return { kind: "not-started", text: "its guard was not allowed to start it" };
    }
    return { kind: "exit", code: job.exitCode };
  }
  if (NEVER_RAN.includes(job.errorType ?? "") || !started) {
    return { kind: "not-started", text: reason };
  }
  return { kind: "unknown", text: reason };
}
