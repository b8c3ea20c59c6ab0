import process from "node:process";
import type { Command } from "commander";
import { wholeNumber } from "../arguments.ts";
import { EXIT } from "../exit-codes.ts";

interface Flags {
  readonly engines: number;
  readonly loadMs: number;
  readonly scale: readonly number[];
  readonly hold?: boolean;
  readonly json?: boolean;
}

const sizes = (text: string): number[] =>
  text === "none" ? [] : text.split(",").map((part) => wholeNumber(part.trim()));

/** `muster demo`: a coordinator and engines as separate processes form up before your eyes. */
export function demoCommand(program: Command): void {
  program.command("demo")
    .description(
      "start a coordinator and four engines as processes, watch them form up and scale, stop them",
    )
    .option("--engines <n>", "how many", wholeNumber, 4)
    .option("--load-ms <ms>", "how long each pretends to load its model", wholeNumber, 1200)
    .option(
      "--scale <sizes>",
      "then scale while it serves, to these sizes one after the other; none: keep the size",
      sizes,
      [6, 3],
    )
    .option("--hold", "keep the cluster until Ctrl-C")
    .option("--json", "print the final status as JSON instead")
    .action(async (flags: Flags) => {
      const { runCluster } = await import("../run-cluster.ts");
      const { joiningEngine, referenceEngines } = await import("../../testing/mod.ts");
      process.exitCode = await runCluster({
        title: `${flags.engines} engines, each a process, and one coordinator`,
        json: flags.json === true,
        hold: flags.hold === true,
        scaleTo: flags.scale,
        options: {
          ...(flags.scale.length === 0 ? {} : {
            scaling: {
              maxSize: Math.max(flags.engines, ...flags.scale),
              joiner: joiningEngine(["--load-ms", String(flags.loadMs)]),
            },
          }),
          cluster: { dataParallelSize: flags.engines, moe: true },
          launches: (topology) =>
            referenceEngines(topology, (rank) => [
              "--load-ms",
              String(flags.loadMs + rank * 150),
              "--blocks",
              String(10_000 - rank * 500),
            ]),
        },
      }).catch((error) => {
        if (error instanceof Error) throw error;
        return EXIT.failed;
      });
    });
}
