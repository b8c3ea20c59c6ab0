/**
 * Ownership of a journal's directory: one file `owner-<fence>` for each owner, made exclusively, and the highest one holds.
 *
 * Taking over makes the next higher file instead of removing the old one first, so of two that try at once exactly one wins. The number is
 * the fence that is written into every record.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { JournalError } from "../error.ts";
import { type Holder, livenessOf, self } from "./holder.ts";

interface OwnerFile extends Holder {
  readonly fence: number;
  /** The owner gave the journal up. */
  readonly released?: boolean;
}

const nameOf = (fence: number): string => `owner-${String(fence).padStart(6, "0")}`;
const PATTERN = /^owner-(\d{6,})$/;

/** A held journal. */
export interface Ownership {
  readonly fence: number;
  /** @throws JournalError `journal-lost` when somebody else holds it now, or nobody can say. */
  check(): void;
  release(): void;
}

/** How to treat a holder that may live. */
export interface TakeOptions {
  /** Take it from a holder that is not provably dead. Only for an operator who knows better. */
  readonly force?: boolean;
  /** Below this no fence is given out: what segments have already used. */
  readonly above?: number;
}

/**
 * Takes the journal.
 *
 * @throws JournalError `journal-locked` when its holder lives, or may.
 */
export function take(directory: string, options: TakeOptions = {}): Ownership {
  const holder = self();
  for (;;) {
    const latest = latestOwner(directory);
    if (latest !== undefined && latest.released !== true && options.force !== true) {
      const liveness = livenessOf(latest, holder);
      if (liveness !== "dead") throw locked(directory, latest, liveness === "alive");
    }
    const fence = Math.max(latest?.fence ?? 0, options.above ?? 0) + 1;
    const path = join(directory, nameOf(fence));
    const draft = join(directory, `${nameOf(fence)}.${holder.pid}.draft`);
    write(draft, { fence, ...holder });
    try {
      linkSync(draft, path); // fails when it is there: only one can make it
    } catch (error) {
      if ((error as { code?: string }).code === "EEXIST") continue;
      throw error;
    } finally {
      unlinkSync(draft);
    }
    for (const lower of owners(directory)) if (lower < fence) remove(directory, lower);
    return held(directory, fence, holder);
  }
}

function held(directory: string, fence: number, holder: Holder): Ownership {
  const mine = join(directory, nameOf(fence));
  const next = join(directory, nameOf(fence + 1));
  const check = () => {
    if (existsSync(mine) && !existsSync(next)) return;
    throw new JournalError(
      "journal-lost",
      `the journal in ${directory} is not held by fence ${fence} any more: another process took it over, or ${mine} was removed`,
    );
  };
  const release = () => {
    if (!existsSync(mine)) return;
    const draft = `${mine}.${holder.pid}.draft`;
    write(draft, { fence, ...holder, released: true });
    renameSync(draft, mine);
  };
  return { fence, check, release };
}

function locked(directory: string, owner: OwnerFile, alive: boolean): JournalError {
  const who = `process ${owner.pid} on ${owner.host}`;
  return new JournalError(
    "journal-locked",
    alive
      ? `the journal in ${directory} is held by ${who}, which runs: stop it first`
      : `the journal in ${directory} is held by ${who}, of which cannot be told from here whether it runs: ` +
        `make sure that it does not, then remove ${join(directory, nameOf(owner.fence))}`,
  );
}

const owners = (directory: string): number[] =>
  readdirSync(directory)
    .map((name) => PATTERN.exec(name))
    .filter((match) => match !== null)
    .map((match) => Number(match[1]))
    .sort((a, b) => a - b);

function latestOwner(directory: string): OwnerFile | undefined {
  const fence = owners(directory).at(-1);
  if (fence === undefined) return undefined;
  const path = join(directory, nameOf(fence));
  try {
    return JSON.parse(readFileSync(path, "utf8")) as OwnerFile;
  } catch (cause) {
    throw new JournalError(
      "journal-locked",
      `${path} does not say who holds the journal: make sure that nobody does, then remove it`,
      { cause },
    );
  }
}

function write(path: string, owner: OwnerFile): void {
  writeFileSync(path, `${JSON.stringify(owner)}\n`);
  const file = openSync(path, "r+");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function remove(directory: string, fence: number): void {
  try {
    unlinkSync(join(directory, nameOf(fence)));
  } catch {
    // another owner removed it first
  }
}
