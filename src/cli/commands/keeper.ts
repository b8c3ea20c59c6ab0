import type { Command } from "commander";
import { runKeeper } from "../../drivers/keeper/main.ts";

/** `muster keeper <directory>`: what a coordinator starts for itself; hidden, because nobody types it. */
export default function keeper(program: Command): void {
  program
    .command("keeper", { hidden: true })
    .argument("<directory>", "made by the coordinator, with settings and token in it")
    .action((directory: string) => runKeeper(directory));
}
