/** What to do about a damaged journal: keep what can be believed, and set the rest aside. Nothing is deleted. */
import {
  closeSync,
  copyFileSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  renameSync,
} from "node:fs";
import { join } from "node:path";
import { JournalError } from "../error.ts";
import { type Verdict, verify } from "../verify.ts";
import { FileStore } from "./file.ts";

/** A file that is set aside under another name, and how much of it stays under its own. */
export interface SetAside {
  readonly file: string;
  /** Where the whole file is afterwards. */
  readonly as: string;
  /** Bytes of it that stay in the journal. */
  readonly keeps: number;
}

export interface RepairPlan {
  readonly verdict: Verdict;
  /** Empty when nothing is wrong. */
  readonly setAside: readonly SetAside[];
  /** The journal ends with this record afterwards. */
  readonly seq: number;
}

const SUFFIX = ".damaged";

/**
 * What a repair would do.
 *
 * @throws JournalError `journal-missing` for no journal, `journal-damaged` when nothing of it can be kept
 */
export function planRepair(directory: string): RepairPlan {
  const segments = new FileStore(directory).segments();
  if (segments.length === 0) {
    throw new JournalError("journal-missing", `there is no journal in ${directory}`);
  }
  const verdict = verify(segments);
  const first = verdict.problems[0];
  if (first === undefined) return { verdict, setAside: [], seq: verdict.seq };
  const { place } = first;
  if (place === undefined || verdict.records === 0) {
    throw new JournalError(
      "journal-damaged",
      `nothing of the journal in ${directory} can be kept: ${first.text}`,
      place === undefined ? {} : { place },
    );
  }
  const setAside = segments
    .filter((s) => s.name >= place.file)
    .map((s): SetAside => ({
      file: s.name,
      as: `${s.name}${SUFFIX}`,
      keeps: s.name === place.file && place.line > 1 ? place.offset : 0,
    }));
  return { verdict, setAside, seq: verdict.seq };
}

/**
 * Carries a plan out, holding the journal meanwhile.
 *
 * @throws JournalError `journal-locked` while somebody writes it
 */
export async function repair(directory: string, plan: RepairPlan): Promise<void> {
  const journal = await new FileStore(directory).own();
  try {
    for (const { file, as, keeps } of plan.setAside) {
      const path = join(directory, file);
      if (keeps > 0) {
        copyFileSync(path, join(directory, as));
        truncate(path, keeps);
      } else renameSync(path, join(directory, as));
    }
    for (const name of readdirSync(directory)) {
      // Caches of what is not believed any more.
      if (name.startsWith("snapshot-")) {
        renameSync(join(directory, name), join(directory, name + SUFFIX));
      }
    }
  } finally {
    await journal.close();
  }
}

function truncate(path: string, length: number): void {
  const file = openSync(path, "r+");
  try {
    ftruncateSync(file, length);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
