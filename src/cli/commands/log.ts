import { writeFileSync } from "node:fs";
import process from "node:process";
import { type Command, Option } from "commander";
import type { JournalReader, JournalRecord, Verdict } from "../../journal/mod.ts";
import { wholeNumber } from "../arguments.ts";
import { EXIT } from "../exit-codes.ts";
import { terminal } from "../terminal.ts";

/** `muster log`: what is in a journal, whether it is whole, and what to do when it is not. */
export function logCommand(program: Command): void {
  const log = program.command("log").description(
    "look at a run's journal: its records, whether they are whole, and what to do when not",
  );
  tail(log);
  show(log);
  verify(log);
  repair(log);
  exporting(log);
  for (const command of log.commands) command.exitOverride().showSuggestionAfterError();
}

const DIRECTORY = "the directory of a run, or one of its .jsonl files";

// ---- tail -----------------------------------------------------------------------------------------------------------

function tail(log: Command): void {
  log.command("tail")
    .description("the last records, and with --follow those that come")
    .argument("<journal>", DIRECTORY)
    .option("-n, --lines <n>", "how many", wholeNumber, 10)
    .option("-f, --follow", "go on until Ctrl-C")
    .option("--json", "records as JSON lines")
    .action(async (path: string, flags: { lines: number; follow?: boolean; json?: boolean }) => {
      const { readerOf } = await import("../journal-source.ts");
      const print = await printer(flags.json === true);
      const last: JournalRecord[] = [];
      let seq = 0;
      const reader = readerOf(path);
      for (const { record } of reader.records()) {
        last.push(record);
        if (last.length > flags.lines) last.shift();
        seq = record.seq;
      }
      for (const record of last) print(record);
      if (flags.follow) await follow(() => readerOf(path), seq, print);
    });
}

/** Prints what comes, until the program is interrupted. */
async function follow(
  read: () => JournalReader,
  from: number,
  print: (record: JournalRecord) => void,
): Promise<void> {
  let stopped = false;
  const stop = () => stopped = true;
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  for (let seq = from; !stopped;) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    const reader = read();
    const head = reader.heads.findLast((h) => h.header.first <= seq + 1) ?? reader.heads[0];
    if (head === undefined) continue;
    for (const { record } of reader.records(head.records)) {
      if (record.seq <= seq) continue;
      print(record);
      seq = record.seq;
    }
  }
}

// ---- show -----------------------------------------------------------------------------------------------------------

interface ShowFlags {
  readonly from?: number;
  readonly to?: number;
  readonly instance?: string;
  readonly type?: string;
  readonly effects?: boolean;
  readonly json?: boolean;
}

function show(log: Command): void {
  log.command("show")
    .description("the records, or one of them with everything that it led to")
    .argument("<journal>", DIRECTORY)
    .argument("[record]", "one record's number", wholeNumber)
    .option("--from <n>", "first record", wholeNumber)
    .option("--to <n>", "last record", wholeNumber)
    .option("--instance <text>", "only those to instances whose id has this in it")
    .option("--type <text>", "only events of this type")
    .option("--effects", "with what each led to: states, effects, notes")
    .option("--json", "records as JSON lines")
    .action(async (path: string, only: number | undefined, flags: ShowFlags) => {
      const { kernelFor, readerOf } = await import("../journal-source.ts");
      const { appliedLines } = await import("../journal-text.ts");
      const { replay, JournalError } = await import("../../journal/mod.ts");
      const out = terminal();
      const print = await printer(flags.json === true);
      const { from = only ?? 1, to = only ?? Infinity } = flags;
      const wanted = (r: JournalRecord) =>
        r.seq >= from && r.seq <= to && r.to.includes(flags.instance ?? "") &&
        (flags.type === undefined || r.event.type === flags.type);
      const reader = readerOf(path);
      let shown = 0;
      if (flags.effects || only !== undefined) {
        replay(await kernelFor(reader.header!), reader, {
          at: to,
          each: (applied, record) => {
            if (!wanted(record)) return;
            shown++;
            print(record);
            if (flags.json) return;
            if (only !== undefined) out.write(`${JSON.stringify(record.event, null, 2)}\n`);
            for (const line of appliedLines(applied, out.paint)) out.write(`${line}\n`);
          },
        });
      } else {
        for (const { record } of reader.records()) {
          if (record.seq > to) break;
          if (wanted(record)) shown++, print(record);
        }
      }
      if (only !== undefined && shown === 0) {
        throw new JournalError(
          "journal-missing",
          `there is no record ${only}: ${rangeText(reader)}`,
        );
      }
    });
}

const rangeText = (reader: JournalReader): string =>
  `the journal has records ${(reader.checkpoint?.system.seq ?? 0) + 1} to ${reader.seq}`;

async function printer(json: boolean): Promise<(record: JournalRecord) => void> {
  const { recordLine } = await import("../journal-text.ts");
  const out = terminal();
  return (record) =>
    out.write(
      `${json ? JSON.stringify(record) : recordLine(record, out.paint, out.columns)}\n`,
    );
}

// ---- verify and repair ----------------------------------------------------------------------------------------------

function verify(log: Command): void {
  log.command("verify")
    .description("read every byte; exit code 1 when something is not what was written")
    .argument("<journal>", DIRECTORY)
    .option("--json", "the verdict as JSON")
    .action(async (path: string, flags: { json?: boolean }) => {
      const { segmentsOf } = await import("../journal-source.ts");
      const journal = await import("../../journal/mod.ts");
      const verdict = journal.verify(segmentsOf(path));
      const out = terminal();
      if (flags.json) out.write(`${JSON.stringify(verdict, null, 2)}\n`);
      else for (const line of await verdictLines(verdict)) out.write(`${line}\n`);
      if (verdict.problems.length > 0) process.exitCode = EXIT.failed;
    });
}

async function verdictLines(verdict: Verdict): Promise<string[]> {
  const { paint } = terminal();
  const { columns } = await import("../text.ts");
  const { records, segments, bytes, leftOut, problems, seq, run } = verdict;
  const placed = problems.map(({ place, text }) => [
    "    ",
    place === undefined ? "" : `${place.file}, line ${place.line}, byte ${place.offset}`,
    text,
  ]);
  const more = placed.length > 20 ? [`    and ${placed.length - 20} more`] : [];
  return [
    ...(run === undefined ? [] : [`run ${run}`]),
    `  ${records} records in ${segments} ${
      segments === 1 ? "segment" : "segments"
    }, ${bytes} bytes`,
    ...leftOut.map(({ place, bytes, why }) =>
      paint.yellow(
        `  left out: ${bytes} bytes of ${place.file} from byte ${place.offset}, ` +
          (why === "torn"
            ? "a record that was never completed"
            : "of an owner that had lost the journal"),
      )
    ),
    ...(problems.length === 0 ? [paint.green("  ✓ every record is what was written")] : [
      paint.red(
        `  ✗ ${
          records === 0 ? "nothing can be believed" : `after record ${seq} nothing can be believed`
        }:`,
      ),
      ...columns(placed.slice(0, 20)),
      ...more,
      "  muster log repair says what can be kept",
    ]),
  ];
}

function repair(log: Command): void {
  log.command("repair")
    .description("keep what can be believed and set the rest aside; without --yes only say how")
    .argument("<directory>", "the directory of a run")
    .option("--yes", "do it")
    .option("--json", "the plan as JSON")
    .action(async (path: string, flags: { yes?: boolean; json?: boolean }) => {
      const { planRepair, repair } = await import("../../journal/stores/mod.ts");
      const out = terminal();
      const plan = planRepair(path);
      if (flags.yes && plan.setAside.length > 0) await repair(path, plan);
      if (flags.json) return out.write(`${JSON.stringify(plan, null, 2)}\n`);
      for (const line of await verdictLines(plan.verdict)) out.write(`${line}\n`);
      if (plan.setAside.length === 0) return out.write("  nothing to repair\n");
      for (const { file, as, keeps } of plan.setAside) {
        out.write(
          keeps > 0
            ? `  ${file} is kept up to byte ${keeps}; the whole of it goes to ${as}\n`
            : `  ${file} goes to ${as}\n`,
        );
      }
      out.write(
        flags.yes
          ? out.paint.green(`  ✓ done: the journal ends with record ${plan.seq}\n`)
          : `  the journal would end with record ${plan.seq}; --yes does it\n`,
      );
      if (!flags.yes) process.exitCode = EXIT.failed;
    });
}

// ---- export ---------------------------------------------------------------------------------------------------------

function exporting(log: Command): void {
  log.command("export")
    .description(
      "the records that count in one piece, to carry elsewhere or to drop on the console's page",
    )
    .argument("<journal>", DIRECTORY)
    .addOption(
      new Option("-f, --format <format>", "journal: one segment; json: an array of inputs")
        .choices(["journal", "json"]).default("journal"),
    )
    .option("-o, --out <file>", "instead of standard output")
    .action(async (path: string, flags: { format: "journal" | "json"; out?: string }) => {
      const { readerOf } = await import("../journal-source.ts");
      const { merged } = await import("../../journal/mod.ts");
      const reader = readerOf(path);
      const text = flags.format === "journal"
        ? merged(reader).join("")
        : `${
          JSON.stringify([...reader.records()].map(({ record }) => inputOf(record)), null, 1)
        }\n`;
      if (flags.out === undefined) terminal().write(text);
      else writeFileSync(flags.out, text, { flag: "wx" });
    });
}

const inputOf = ({ seq, at, to, event }: JournalRecord) => ({ seq, at, to, event });
