import process from "node:process";
import type { Command } from "commander";
import { durationMs, wholeNumber } from "../arguments.ts";
import { EXIT } from "../exit-codes.ts";
import { addServiceFlags, ask, complaint, type ServiceFlags } from "../service-client.ts";

interface Flags extends ServiceFlags {
  readonly ranks?: readonly string[];
  readonly operation?: string;
  readonly deadline?: number;
  readonly drainTimeout?: number;
  readonly retire?: readonly number[];
  readonly json?: boolean;
}

/** `muster scale N`: change the size of a cluster while it serves. */
export function scaleCommand(program: Command): void {
  const command = program.command("scale")
    .description(
      "scale a cluster while it serves: one coordinator's, or a set of servers with one rank each",
    )
    .argument("<size>", "data-parallel size to reach", wholeNumber);
  addServiceFlags(command)
    .option(
      "--ranks <urls>",
      "instead: the servers of all ranks behind an external load balancer, rank 0 first; vLLM's or Muster's",
      (text: string) => text.split(",").map((url) => url.trim()),
    )
    .option("--operation <id>", "name of the operation: asking again with it finds it")
    .option("--deadline <time>", "for the whole operation", durationMs)
    .option(
      "--drain-timeout <time>",
      "first give ranks that leave so long to finish their requests (whole seconds)",
      durationMs,
    )
    .option(
      "--retire <ranks>",
      "which ranks are to leave",
      (text: string) => text.split(",").map(wholeNumber),
    )
    .option("--json", "print the answer as JSON")
    .action(async (size: number, flags: Flags) => {
      process.exitCode = flags.ranks === undefined
        ? await scaleOurs(size, flags)
        : await scaleServers(size, flags, flags.ranks);
    });
}

async function scaleOurs(size: number, flags: Flags): Promise<number> {
  const answer = await ask(flags, "POST", "/scale_elastic_ep", {
    new_data_parallel_size: size,
    ...(flags.operation === undefined ? {} : { operation_id: flags.operation }),
    ...(flags.deadline === undefined ? {} : { deadline_ms: flags.deadline }),
    ...(flags.retire === undefined ? {} : { retire: flags.retire }),
    ...(flags.drainTimeout === undefined
      ? {}
      : { drain_timeout: Math.ceil(flags.drainTimeout / 1000) }),
  });
  if (flags.json) process.stdout.write(`${JSON.stringify(answer.body, null, 2)}\n`);
  else if (answer.status === 200) process.stdout.write(`${answer.body.message}\n`);
  else process.stderr.write(`muster: ${complaint(answer)}\n`);
  return answer.status === 200 ? EXIT.ok : EXIT.failed;
}

async function scaleServers(
  size: number,
  flags: Flags,
  ranks: readonly string[],
): Promise<number> {
  const { scaleUpstream } = await import("../../service/upstream.ts");
  const token = flags.token ?? process.env["MUSTER_TOKEN"];
  const report = await scaleUpstream({
    ranks,
    target: size,
    ...(flags.deadline === undefined ? {} : { deadlineMs: flags.deadline }),
    ...(flags.operation === undefined ? {} : { operation: flags.operation }),
    ...(token === undefined ? {} : { token }),
    ...(flags.drainTimeout === undefined
      ? {}
      : { drainTimeout: Math.ceil(flags.drainTimeout / 1000) }),
    say: (text) => flags.json ? undefined : process.stdout.write(`${text}\n`),
  });
  if (flags.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else process.stdout.write(`${report.sentence}\n`);
  return report.outcome === "completed" ? EXIT.ok : EXIT.failed;
}
