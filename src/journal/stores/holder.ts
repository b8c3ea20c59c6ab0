/**
 * Who holds a journal: a process on a boot of a machine. Dead is said only when it is certain.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import process from "node:process";

/** Names one process among all that ever ran. Empty members are facts that this system does not offer. */
export interface Holder {
  readonly pid: number;
  /** When it started, in the kernel's ticks: a pid that was given out again has another one. */
  readonly start: string;
  readonly boot: string;
  readonly host: string;
  /** Process ids mean something only inside the same namespace. */
  readonly namespace: string;
}

/** What can be said about a holder. */
export type Liveness = "alive" | "dead" | "unknown";

export const self = (): Holder => ({
  pid: process.pid,
  start: startOf(process.pid) ?? "",
  boot: read("/proc/sys/kernel/random/boot_id").trim(),
  host: hostname(),
  namespace: link("/proc/self/ns/pid"),
});

/** Whether a holder still runs, as seen from here. */
export function livenessOf(holder: Holder, from: Holder = self()): Liveness {
  if (holder.host !== from.host) return "unknown";
  if (holder.boot !== from.boot) return "dead";
  if (holder.namespace !== from.namespace) return "unknown";
  const start = startOf(holder.pid);
  if (start === undefined) return exists(holder.pid) ? "alive" : "dead";
  return holder.start === "" || start === holder.start ? "alive" : "dead";
}

/** Start time of a living process; undefined for none, for a zombie, and where there is no `/proc`. */
function startOf(pid: number): string | undefined {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === "") return undefined;
  // The command in parentheses may hold anything: what counts comes after the last one.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}

function exists(pid: number): boolean {
  if (read("/proc/self/stat") !== "") return false; // there is a /proc, and the process is not in it
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
