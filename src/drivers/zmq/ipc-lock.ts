/**
 * Who owns an ipc path. libzmq lets a second binder take a living path without an error, after which new peers reach
 * nobody once it leaves; and it leaves the file behind. So a lock file beside the path names the owner, is taken over
 * only when that process is provably gone, and the socket file is removed by us.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import process from "node:process";
import { identify, isRunning, type ProcessIdentity } from "../process-table.ts";

/** The path is held by a process that runs, or of which nobody can say that it does not. */
export class IpcPathHeldError extends Error {
  override readonly name = "IpcPathHeldError";
  readonly code = "address-in-use";
  readonly holder: ProcessIdentity | null;
  constructor(path: string, holder: ProcessIdentity | null) {
    const who = holder === null ? `unknown (${path}.lock cannot be read)` : `process ${holder.pid}`;
    super(
      `${path} is in use: its holder is ${who}. Stop it, choose another path, or, when you know that it is gone, ` +
        `remove ${path}.lock.`,
    );
    this.holder = holder;
  }
}

/** A held path. */
export interface IpcLock {
  /** Removes the socket file and the lock, if they are still ours. */
  release(): void;
}

/** Takes the path, or throws {@link IpcPathHeldError}. */
export function lockIpcPath(path: string): IpcLock {
  const lock = `${path}.lock`;
  const mine = `${JSON.stringify(identify(process.pid))}\n`;
  const draft = `${lock}.${process.pid}.${(drafts++).toString(36)}`;
  writeFileSync(draft, mine, { flag: "wx" });
  try {
    for (let attempt = 0; !take(draft, lock); attempt++) {
      const found = read(lock);
      if (found === undefined) continue; // released meanwhile
      const holder = holderOf(found);
      // Our own process counts as running: two sockets on one path are a mistake too.
      if (holder === null || isRunning(holder) !== false || attempt > 3) {
        throw new IpcPathHeldError(path, holder);
      }
      discard(lock, found, draft);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return {
    release: () => {
      if (read(lock) !== mine) return;
      rmSync(path, { force: true });
      rmSync(lock, { force: true });
    },
  };
}

let drafts = 0;

/** A hard link is made or fails, so the lock never exists without its content. */
function take(draft: string, lock: string): boolean {
  try {
    linkSync(draft, lock);
    return true;
  } catch (error) {
    if ((error as { code?: string }).code === "EEXIST") return false;
    throw error;
  }
}

/** Removes a dead holder's lock, unless another has replaced it since it was read. */
function discard(lock: string, found: string, draft: string): void {
  const aside = `${draft}.old`;
  try {
    renameSync(lock, aside);
  } catch {
    return;
  }
  if (read(aside) !== found) take(aside, lock);
  rmSync(aside, { force: true });
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function holderOf(text: string): ProcessIdentity | null {
  try {
    const holder = JSON.parse(text) as ProcessIdentity;
    return Number.isInteger(holder.pid) ? holder : null;
  } catch {
    return null;
  }
}
