import { writeFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { wholeNumber } from "../arguments.ts";

interface Flags {
  readonly from: number;
  readonly to?: number;
  readonly format: "text" | "mermaid" | "svg";
  readonly instance?: string;
  readonly out?: string;
}

/** `muster sequence JOURNAL`: a stretch of a run as a sequence diagram. */
export function sequenceCommand(program: Command): void {
  program.command("sequence")
    .description("draw a stretch of a journal as a sequence diagram")
    .argument("<journal>", "the directory of a run, or one of its .jsonl files")
    .option("--from <n>", "the first record", wholeNumber, 1)
    .option("--to <n>", "the last record (default: 60 records from the first)", wholeNumber)
    .option("--instance <text>", "only records to instances whose id contains this")
    .addOption(
      new Option("-f, --format <format>", "how").choices(["text", "mermaid", "svg"]).default(
        "text",
      ),
    )
    .option("-o, --out <file>", "instead of the terminal")
    .action(async (path: string, flags: Flags) => {
      const text = await sequenceOf(path, flags);
      if (flags.out === undefined) program.configureOutput().writeOut?.(text);
      else writeFileSync(flags.out, text);
    });
}

/** How many records are drawn when no end is given: a terminal's length. */
const STRETCH = 60;

async function sequenceOf(path: string, flags: Flags): Promise<string> {
  const { castInOrder, stepsOfRun, toSequenceMermaid, toSequenceSvg, toSequenceText } =
    await import("../../charts/mod.ts");
  const { JournalError, replay } = await import("../../journal/mod.ts");
  const { kernelFor, readerOf } = await import("../journal-source.ts");
  const { from, to = from + STRETCH - 1, instance } = flags;
  const reader = readerOf(path);
  const stretch: Parameters<typeof stepsOfRun>[0] & unknown[] = [];
  replay(await kernelFor(reader.header!), reader, {
    at: to,
    each: (applied, record) => {
      if (record.seq < from) return;
      if (instance !== undefined && !record.to.includes(instance)) return;
      stretch.push(applied);
    },
  });
  if (stretch.length === 0) {
    const whose = instance === undefined ? "" : ` to an instance with "${instance}" in its id`;
    throw new JournalError(
      "journal-missing",
      `there is no record from ${from} to ${to}${whose}: the journal has records up to ${reader.seq}`,
    );
  }
  const steps = stepsOfRun(stretch);
  const lifelines = castInOrder(steps);
  switch (flags.format) {
    case "text":
      return toSequenceText(steps, { lifelines });
    case "mermaid":
      return toSequenceMermaid(steps, lifelines);
    case "svg":
      return toSequenceSvg(steps, { lifelines });
  }
}
