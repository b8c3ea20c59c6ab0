import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";

/**
 * What the operating system knows about processes. All that is Linux (`/proc`) is in this file; elsewhere every question
 * that cannot be answered is answered with `null`, which callers show as "unknown" and never as "none".
 */

/** Tells one process from all others that ever had its pid: the machine's boot, the pid, and when it started. */
export interface ProcessIdentity {
  pid: number;
  /** Start in clock ticks since boot (100 a second), or null where the system does not tell. */
  startTicks: number | null;
  /** The boot during which the pid means anything, or null where the system does not tell. */
  bootId: string | null;
}

/** One line of the process table, as far as the keeper needs it. */
export interface ProcessEntry {
  pid: number;
  parent: number;
  group: number;
  startTicks: number;
  /** Ended, but not yet collected by its parent: runs no code any more. */
  ended: boolean;
}

/** Whether this system has the process table that strays are found with. */
export const hasProcessTable: boolean = readEntry(process.pid) !== null;

/** The identity of this boot, or null where there is none to read. A container sees its host's. */
export function bootId(): string | null {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  } catch {
    return null;
  }
}

/** The table's line for `pid`, or null when there is no such process (or no table). */
export function readEntry(pid: number): ProcessEntry | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return null;
  }
  // The second field is the program's name in parentheses and may itself hold spaces and parentheses: read after the last one.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const state = fields[0];
  const [parent, group, startTicks] = [Number(fields[1]), Number(fields[2]), Number(fields[19])];
  if (!Number.isFinite(startTicks)) return null;
  return { pid, parent, group, startTicks, ended: state === "Z" || state === "X" };
}

/** Identifies a process that runs now. The start is null when it is gone already or the system does not tell. */
export function identify(pid: number): ProcessIdentity {
  return { pid, startTicks: readEntry(pid)?.startTicks ?? null, bootId: bootId() };
}

/**
 * Is it this very process that runs? `false` also for a zombie, for another process with a reused pid, and for everything
 * of another boot; `null` when the system cannot tell.
 */
export function isRunning(identity: ProcessIdentity): boolean | null {
  const boot = bootId();
  if (identity.bootId !== null && boot !== null && identity.bootId !== boot) return false;
  if (!hasProcessTable) return pidExists(identity.pid) ? null : false;
  const entry = readEntry(identity.pid);
  if (entry === null || entry.ended) return false;
  return identity.startTicks === null ? null : entry.startTicks === identity.startTicks;
}

/** A running process whose environment carries a mark. */
export interface MarkedProcess extends ProcessEntry {
  /** The variable's value. */
  mark: string;
}

/**
 * All running processes that were started with the environment variable `name`, where `accept` says yes to its value.
 * `null` when the system has no table. Processes of other users cannot be read and are not found; nor is one that has
 * overwritten its environment (`setproctitle` does, unless `SPT_NOENV=1` is set).
 */
export function findMarked(
  name: string,
  accept: (value: string) => boolean,
): MarkedProcess[] | null {
  if (!hasProcessTable) return null;
  const found: MarkedProcess[] = [];
  const key = `${name}=`;
  for (const file of readdirSync("/proc")) {
    const pid = Number(file);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    let environment: string;
    try {
      environment = readFileSync(`/proc/${pid}/environ`, "utf8");
    } catch {
      continue;
    }
    const at = environment.startsWith(key) ? 0 : environment.indexOf(`\0${key}`) + 1;
    if (at === 0 && !environment.startsWith(key)) continue;
    const end = environment.indexOf("\0", at);
    const mark = environment.slice(at + key.length, end < 0 ? undefined : end);
    if (!accept(mark)) continue;
    const entry = readEntry(pid);
    if (entry !== null && !entry.ended) found.push({ ...entry, mark });
  }
  return found;
}

/** Sends a signal; `false` when nobody is there to get it. A negative pid is a process group. */
export function sendSignal(pid: number, signal: NodeSignal): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    const code = (error as { code?: string }).code;
    // EPERM for a group means that only zombies, or processes that changed their user, are left in it.
    if (code === "ESRCH" || code === "EPERM") return false;
    throw error;
  }
}

/** Names of signals as the runtimes know them. */
export type NodeSignal = Parameters<typeof process.kill>[1] & string;

function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}
