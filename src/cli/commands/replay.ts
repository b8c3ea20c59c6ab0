import process from "node:process";
import type { Command } from "commander";
import type { Difference, JournalReader, JournalRecord, Replay } from "../../journal/mod.ts";
import { wholeNumber } from "../arguments.ts";
import { EXIT } from "../exit-codes.ts";
import { terminal } from "../terminal.ts";

interface Flags {
  readonly at?: number;
  readonly check?: boolean;
  readonly diff?: string;
  readonly json?: boolean;
}

/** `muster replay`: what a journal comes to, at any of its records, and whether that is still what it came to then. */
export function replayCommand(program: Command): void {
  program.command("replay")
    .description(
      "fold a journal: the state at any record, checked against what was recorded, or against another run",
    )
    .argument("<journal>", "the directory of a run, or one of its .jsonl files")
    .option("--at <n>", "the state after this record", wholeNumber)
    .option(
      "--check",
      "compare every state and effect with its recorded digest; exit code 1 at a difference",
    )
    .option(
      "--diff <journal>",
      "the first record in which another run differs; exit code 1 when one does",
    )
    .option("--json", "as JSON")
    .action(async (path: string, flags: Flags) => {
      const { kernelFor, readerOf } = await import("../journal-source.ts");
      const { replay } = await import("../../journal/mod.ts");
      if (flags.diff !== undefined) {
        return await differ(readerOf(path), readerOf(flags.diff), flags);
      }
      const reader = readerOf(path);
      const kernel = await kernelFor(reader.header!);
      const began = performance.now();
      let first: number | undefined;
      const replayed = replay(kernel, reader, {
        ...(flags.at === undefined ? {} : { at: flags.at }),
        check: flags.check === true,
        each: (_, record) => first ??= record.at,
      });
      const took = performance.now() - began;
      if (flags.at !== undefined && replayed.fold.seq !== flags.at && !replayed.difference) {
        const { JournalError } = await import("../../journal/mod.ts");
        throw new JournalError(
          "journal-missing",
          `there is no record ${flags.at}: the journal ends with record ${reader.seq}`,
        );
      }
      if (replayed.difference !== undefined) process.exitCode = EXIT.failed;
      if (flags.json) return printJson(reader, kernel.save(replayed.fold.system()), replayed);
      await print(reader, replayed, first ?? 0, took, flags.check === true);
    });
}

async function print(
  reader: JournalReader,
  { fold, records, last, difference }: Replay,
  first: number,
  tookMs: number,
  checked: boolean,
): Promise<void> {
  const { spanText, systemLines } = await import("../journal-text.ts");
  const out = terminal();
  const { paint } = out;
  const say = (line: string) => out.write(`${line}\n`);
  const { header, checkpoint, leftOut } = reader;
  say(
    `run ${header!.run}${
      header!.forkOf ? `, a fork of ${header!.forkOf.run} at ${header!.forkOf.seq}` : ""
    }`,
  );
  const from = checkpoint === undefined
    ? ""
    : ` after the checkpoint of record ${checkpoint.system.seq}`;
  say(
    `  ${records} records${from}, ${spanText(first, last?.record.at ?? first)}, replayed in ${
      tookMs.toFixed(0)
    } ms`,
  );
  for (const { place, bytes } of leftOut) {
    say(paint.yellow(`  left out: ${bytes} bytes of ${place.file}`));
  }
  if (difference !== undefined) return await printDifference(difference);
  say("");
  say(`after record ${fold.seq}`);
  for (const line of systemLines(fold.system(), paint)) say(line);
  if (checked) {
    say("");
    say(paint.green(`✓ every state and every effect is the recorded one (${records} records)`));
  }
}

async function printDifference(difference: Difference): Promise<void> {
  const { appliedLines, recordLine } = await import("../journal-text.ts");
  const out = terminal();
  const { record, what, place, recorded, computed, applied } = difference;
  out.write(
    `\n${
      out.paint.red(
        `✗ record ${record.seq} leads to ${
          what === "state" ? "another state" : "other effects"
        } than when it was recorded`,
      )
    }\n`,
  );
  out.write(`  ${place.file}, line ${place.line}, byte ${place.offset}\n`);
  out.write(`  recorded ${recorded}, computed ${computed}\n\n`);
  out.write(`${recordLine(record, out.paint, out.columns)}\n`);
  for (const line of appliedLines(applied, out.paint)) out.write(`${line}\n`);
  out.write(
    "\n  Either the record was altered, or a chart, guard or action is not what it was: today's charts are\n" +
      "  not those that wrote this journal. Everything before this record is as recorded.\n",
  );
}

function printJson(
  reader: JournalReader,
  system: object,
  { records, difference }: Replay,
): void {
  const { run, fence, forkOf } = reader.header!;
  const found = difference === undefined ? null : {
    seq: difference.record.seq,
    what: difference.what,
    recorded: difference.recorded,
    computed: difference.computed,
    file: difference.place.file,
    line: difference.place.line,
    offset: difference.place.offset,
  };
  const { leftOut } = reader;
  terminal().write(
    `${
      JSON.stringify({ run, fence, forkOf, records, leftOut, difference: found, system }, null, 2)
    }\n`,
  );
}

// ---- --diff ---------------------------------------------------------------------------------------------------------

/**
 * Which part of two records of one number is not the same. Results are compared only while both runs have had the same times: due times of
 * timers are part of the state.
 */
function differing(
  a: JournalRecord | undefined,
  b: JournalRecord | undefined,
  sameTimes: boolean,
): string | undefined {
  if (a === undefined || b === undefined) return "end";
  if (a.to !== b.to || JSON.stringify(a.event) !== JSON.stringify(b.event)) return "input";
  if (!sameTimes) return undefined;
  if (a.digest.slice(0, 16) !== b.digest.slice(0, 16)) return "state";
  return a.digest === b.digest ? undefined : "effects";
}

async function differ(one: JournalReader, other: JournalReader, flags: Flags): Promise<void> {
  const { recordLine } = await import("../journal-text.ts");
  const out = terminal();
  const [a, b] = [one.records(), other.records()];
  let before: JournalRecord | undefined;
  let sameTimes = true;
  for (;;) {
    const [x, y] = [a.next().value?.record, b.next().value?.record];
    if (x === undefined && y === undefined) break;
    sameTimes &&= x?.at === y?.at;
    const what = differing(x, y, sameTimes);
    if (what === undefined) {
      before = x;
      if (x!.seq === flags.at) break;
      continue;
    }
    process.exitCode = EXIT.failed;
    if (flags.json) {
      return void out.write(
        `${JSON.stringify({ same: before?.seq ?? 0, what, one: x, other: y }, null, 2)}\n`,
      );
    }
    out.write(`${out.paint.red(`✗ ${DIFFERS[what]!(x ?? y!)}`)}\n`);
    for (const record of [x, y]) {
      out.write(
        `${record === undefined ? "     -" : recordLine(record, out.paint, out.columns)}\n`,
      );
    }
    return;
  }
  const same = before?.seq ?? 0;
  if (flags.json) out.write(`${JSON.stringify({ same, what: null })}\n`);
  else out.write(`${out.paint.green(`✓ ${same} records are the same`)}\n`);
}

const DIFFERS: Readonly<Record<string, (record: JournalRecord) => string>> = {
  end: ({ seq }) => `one of them ends before record ${seq}`,
  input: ({ seq }) => `record ${seq} is another input`,
  state: ({ seq }) => `record ${seq} is the same input and led to another state`,
  effects: ({ seq }) => `record ${seq} led to the same state and other effects`,
};
