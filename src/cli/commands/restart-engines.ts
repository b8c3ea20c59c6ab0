import process from "node:process";
import type { Command } from "commander";
import { EXIT } from "../exit-codes.ts";
import { addServiceFlags, ask, complaint, type ServiceFlags } from "../service-client.ts";

/** `muster restart-engines`: start all engines of a cluster anew. */
export function restartEnginesCommand(program: Command): void {
  const command = program.command("restart-engines")
    .description(
      "start all engines anew, as one group: needed when a scaling left some that cannot scale again",
    );
  addServiceFlags(command).action(async (flags: ServiceFlags) => {
    const answer = await ask(flags, "POST", "/engines/restart", {});
    if (answer.status !== 202) {
      process.stderr.write(`muster: ${complaint(answer)}\n`);
      process.exitCode = EXIT.failed;
      return;
    }
    const { message, by_hand: byHand } = answer.body;
    process.stdout.write(`${message}${byHand === null ? "" : `; ${byHand}`}\n`);
    process.exitCode = EXIT.ok;
  });
}
