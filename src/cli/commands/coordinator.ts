import process from "node:process";
import { type Command, Option } from "commander";
import { wholeNumber } from "../arguments.ts";

interface Flags {
  readonly engines: number;
  readonly frontPublish: string;
  readonly backPublish: string;
  readonly backOutput: string;
  readonly dense?: boolean;
  readonly rule: "evidence" | "optimistic";
  readonly columns: "2" | "3";
  readonly intervalMs: number;
  readonly journal?: string;
  readonly json?: boolean;
}

/** `muster coordinator`: the DP coordinator as a process of its own. */
export function coordinatorCommand(program: Command): void {
  program.command("coordinator")
    .description(
      "run the DP coordinator alone: statistics and request waves for engines and front-ends",
    )
    .requiredOption(
      "--engines <n>",
      "engines that must subscribe before any may go on",
      wholeNumber,
    )
    .option("--front-publish <address>", "for front-ends", "tcp://127.0.0.1:0")
    .option("--back-publish <address>", "engines subscribe here", "tcp://127.0.0.1:0")
    .option("--back-output <address>", "engines report here", "tcp://127.0.0.1:0")
    .option("--dense", "relay statistics only: the model is no mixture of experts")
    .addOption(
      new Option(
        "--rule <rule>",
        "what moves the run state: what engines say, or the wake-up itself",
      )
        .choices(["evidence", "optimistic"]).default("evidence"),
    )
    .addOption(
      new Option("--columns <n>", "of a published row: 2 for front-ends before the newest")
        .choices(["2", "3"]).default("3"),
    )
    .option("--interval-ms <ms>", "from one publish of statistics to the next", wholeNumber, 100)
    .option("--journal <directory>", "keep the journal here, and go on with the run that is there")
    .option("--json", "one JSON object a line instead of text")
    .action(async (flags: Flags) => {
      const { DpCoordinator } = await import("../../host/mod.ts");
      const { FileStore } = await import("../../journal/stores/mod.ts");
      const { frontPublish, backPublish, backOutput } = flags;
      const coordinator = await DpCoordinator.start({
        sockets: { frontPublish, backPublish, backOutput },
        engines: flags.engines,
        coordinates: flags.dense !== true,
        rule: flags.rule,
        loadColumns: flags.columns === "2" ? 2 : 3,
        intervalMs: flags.intervalMs,
        ...(flags.journal === undefined ? {} : { journal: new FileStore(flags.journal) }),
      });
      let said = "";
      const tell = () => {
        const state = coordinator.state();
        const line = flags.json
          ? JSON.stringify(state)
          : `${state.state}, wave ${state.wave}, ${
            state.state === "gathering"
              ? `${state.subscribed} of ${state.engines} engines have subscribed`
              : `${state.engines} engines`
          }`;
        if (line !== said) process.stdout.write(`${line}\n`);
        said = line;
      };
      const { sockets } = coordinator.state();
      if (!flags.json) {
        process.stdout.write(
          `front-ends: ${sockets.frontPublish}\nengines: ${sockets.backPublish}, reports ${sockets.backOutput}\n`,
        );
      }
      tell();
      const tick = setInterval(tell, 100);
      await new Promise<void>((resolve) => {
        process.once("SIGINT", resolve);
        process.once("SIGTERM", resolve);
      });
      clearInterval(tick);
      await coordinator.close();
    });
}
