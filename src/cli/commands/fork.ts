import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { wholeNumber } from "../arguments.ts";
import { terminal } from "../terminal.ts";

/** `muster fork`: a new run from a prefix of another. */
export function forkCommand(program: Command): void {
  program.command("fork")
    .description(
      "make a new run of a journal's first records, to look at or to replay; nothing is carried out",
    )
    .argument("<journal>", "the directory of a run, or one of its .jsonl files")
    .requiredOption("--at <n>", "the last record that is taken over", wholeNumber)
    .requiredOption("-o, --out <directory>", "where the new run's journal goes; must not exist")
    .action(async (path: string, flags: { at: number; out: string }) => {
      const { readerOf } = await import("../journal-source.ts");
      const { fork } = await import("../../journal/mod.ts");
      const { writeSegment } = await import("../../journal/stores/mod.ts");
      const run = randomUUID();
      const reader = readerOf(path);
      writeSegment(flags.out, fork(reader, flags.at, run));
      terminal().write(
        `run ${run}: records up to ${flags.at} of run ${reader.header!.run}, in ${flags.out}\n`,
      );
    });
}
