#!/usr/bin/env node
/** The command `muster`. Commands load what they need when they run, so that `--help` is quick. */
import process from "node:process";
import { Command, CommanderError } from "commander";
import { abortCommand } from "./commands/abort.ts";
import { chartCommand } from "./commands/chart.ts";
import { checkCommand } from "./commands/check.ts";
import { consoleCommand } from "./commands/console.ts";
import { coordinatorCommand } from "./commands/coordinator.ts";
import { demoCommand } from "./commands/demo.ts";
import { engineCommand } from "./commands/engine.ts";
import keeperCommand from "./commands/keeper.ts";
import { forkCommand } from "./commands/fork.ts";
import { logCommand } from "./commands/log.ts";
import { planCommand } from "./commands/plan.ts";
import { replayCommand } from "./commands/replay.ts";
import { restartEnginesCommand } from "./commands/restart-engines.ts";
import { scaleCommand } from "./commands/scale.ts";
import { sequenceCommand } from "./commands/sequence.ts";
import { serveCommand } from "./commands/serve.ts";
import { statusCommand } from "./commands/status.ts";
import { storeCommand } from "./commands/store.ts";
import { EXIT, UsageError } from "./exit-codes.ts";

/** The whole command line, for `main` and for tests. */
export function muster(): Command {
  const program = new Command("muster")
    .description("the control plane of data-parallel LLM serving, as statecharts")
    .version("0.1.0")
    .showSuggestionAfterError()
    .showHelpAfterError("(muster --help says what there is)")
    .exitOverride()
    .configureHelp({ sortSubcommands: false });
  demoCommand(program);
  serveCommand(program);
  scaleCommand(program);
  statusCommand(program);
  abortCommand(program);
  restartEnginesCommand(program);
  planCommand(program);
  coordinatorCommand(program);
  engineCommand(program);
  chartCommand(program);
  checkCommand(program);
  consoleCommand(program);
  sequenceCommand(program);
  storeCommand(program);
  logCommand(program);
  replayCommand(program);
  forkCommand(program);
  keeperCommand(program);
  for (const command of program.commands) command.exitOverride().showSuggestionAfterError();
  return program;
}

/** Runs a command line and returns the exit code. */
export async function run(argv: readonly string[]): Promise<number> {
  try {
    await muster().parseAsync(argv, { from: "user" });
    return typeof process.exitCode === "number" ? process.exitCode : EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError) {
      return error.exitCode === 1 ? EXIT.usage : error.exitCode;
    }
    const { PlanRefused } = await import("../planning/mod.ts");
    if (error instanceof PlanRefused) {
      for (const line of error.message.split("\n")) process.stderr.write(`muster: ${line}\n`);
      return EXIT.usage;
    }
    if (error instanceof UsageError) {
      process.stderr.write(`muster: ${error.message}\n`);
      return EXIT.usage;
    }
    const coded = error as Error & { code?: string };
    process.stderr.write(`muster: ${coded.message}${coded.code ? ` [${coded.code}]` : ""}\n`);
    if (process.env["MUSTER_DEBUG"] !== undefined) process.stderr.write(`${coded.stack}\n`);
    return EXIT.failed;
  }
}

/** Commands that hold something up: they outlive whoever reads what they say. */
const HOLDS = ["demo", "serve", "coordinator", "engine", "store", "console", "keeper"];

/** `muster … | head`: what nobody reads any more is no error. */
function whenNobodyReads(command: string | undefined): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: Error & { code?: string }) => {
      if (error.code !== "EPIPE") throw error;
      if (!HOLDS.includes(command ?? "")) process.exit();
    });
  }
}

whenNobodyReads(process.argv[2]);
process.exitCode = await run(process.argv.slice(2));
