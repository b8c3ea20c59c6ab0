import process from "node:process";
import type { Command } from "commander";
import { EXIT } from "../exit-codes.ts";
import { addServiceFlags, ask, complaint, type ServiceFlags } from "../service-client.ts";

/** `muster abort`: ask the running operation to end. */
export function abortCommand(program: Command): void {
  const command = program.command("abort")
    .description("ask the running scaling operation to end")
    .argument("[operation]", "its id; the one that runs by default");
  addServiceFlags(command)
    .option("--reason <text>", "said to every rank")
    .action(async (operation: string | undefined, flags: ServiceFlags & { reason?: string }) => {
      const id = operation ??
        (await ask(flags, "GET", "/status")).body?.scaling?.running?.operation;
      if (id === undefined) {
        process.stdout.write("no operation runs\n");
        process.exitCode = EXIT.ok;
        return;
      }
      const path = `/operations/${encodeURIComponent(id)}/abort`;
      const answer = await ask(flags, "POST", path, { reason: flags.reason });
      if (answer.status !== 202) {
        process.stderr.write(`muster: ${complaint(answer)}\n`);
        process.exitCode = EXIT.failed;
        return;
      }
      process.stdout.write(`operation ${id} is asked to end: ${answer.body.phase}\n`);
      process.exitCode = EXIT.ok;
    });
}
