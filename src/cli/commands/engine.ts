import process from "node:process";
import { type Command, InvalidArgumentError, Option } from "commander";
import { ENGINE_FAULTS, type EngineFault } from "../../peers/engine.ts";
import type { WireRank } from "../../protocol/mod.ts";
import { wholeNumber } from "../arguments.ts";

interface Flags {
  readonly rank: number;
  readonly handshake: string;
  readonly clientHandshake?: string;
  readonly local?: boolean;
  readonly headless?: boolean;
  readonly blocks: number | "none" | "absent";
  readonly hash?: string;
  readonly bootMs: number;
  readonly loadMs: number;
  readonly exitCode: number;
  readonly fault: EngineFault[];
  readonly quiet?: boolean;
}

const blocks = (text: string): number | "none" | "absent" =>
  text === "none" || text === "absent" ? text : wholeNumber(text);

function fault(text: string, sofar: EngineFault[]): EngineFault[] {
  if (!ENGINE_FAULTS.includes(text as EngineFault)) {
    throw new InvalidArgumentError(`It must be one of ${ENGINE_FAULTS.join(", ")}.`);
  }
  return [...sofar, text as EngineFault];
}

/** `muster engine`: a process without a GPU that speaks the engine's side of the protocol. */
export function engineCommand(program: Command): void {
  program.command("engine")
    .description("run a reference engine: one rank without a GPU that speaks the real protocol")
    .requiredOption("--rank <n>", "data-parallel rank", wholeNumber)
    .requiredOption(
      "--handshake <address>",
      "where the head shakes hands: tcp://host:port or ipc:///path",
    )
    .option("--client-handshake <address>", "the own front-end's handshake, where that is another")
    .option("--local", "declare that the front-end is on the same node")
    .option("--headless", "declare that this node has no front-end")
    .addOption(
      new Option(
        "--blocks <n>",
        "KV cache blocks: a number, none (nil), or absent (newest releases)",
      )
        .argParser(blocks).default(1000),
    )
    .option("--hash <text>", "hash of the parallel configuration")
    .option("--boot-ms <ms>", "time before HELLO", wholeNumber, 50)
    .option("--load-ms <ms>", "time from INIT to READY", wholeNumber, 200)
    .option("--exit-code <n>", "exit code of a crash on demand", wholeNumber, 1)
    .option("--fault <name>", `on demand, may be repeated: ${ENGINE_FAULTS.join(", ")}`, fault, [])
    .option("--quiet", "say nothing on standard output")
    .action(async (flags: Flags) => {
      const { ReferenceEngine } = await import("../../testing/reference-engine.ts");
      const { rank, handshake, clientHandshake, local = false, headless = false } = flags;
      const engine = await ReferenceEngine.start({
        rank: rank as WireRank,
        joining: process.env["VLLM_ELASTIC_EP_SCALE_UP_LAUNCH"] === "1",
        handshakes: [handshake, ...(clientHandshake === undefined ? [] : [clientHandshake])],
        say: flags.quiet ? () => {} : (text) => process.stdout.write(`engine ${rank}: ${text}\n`),
        behaviour: {
          contacts: [
            { local, headless },
            ...(clientHandshake === undefined ? [] : [{ local: true, headless: false }]),
          ],
          ...(flags.blocks === "absent"
            ? {}
            : { blocks: flags.blocks === "none" ? null : flags.blocks }),
          ...(flags.hash === undefined ? {} : { hash: flags.hash }),
          bootMs: flags.bootMs,
          loadMs: flags.loadMs,
          initMs: 5 * 60_000,
          exitCode: flags.exitCode,
          faults: flags.fault,
        },
      });
      await new Promise<void>((resolve) => {
        process.once("SIGTERM", resolve);
        process.once("SIGINT", resolve);
      });
      await engine.close();
    });
}
