import process from "node:process";
import type { Command } from "commander";
import type { OperationRecord } from "../../view/scaling.ts";
import { headLine, rankLines } from "../cluster-screen.ts";
import { EXIT } from "../exit-codes.ts";
import { addServiceFlags, ask, complaint, type ServiceFlags } from "../service-client.ts";
import { LiveBlock, terminal } from "../terminal.ts";

interface Flags extends ServiceFlags {
  readonly watch?: boolean;
  readonly json?: boolean;
}

const EVERY_MS = 500;

/** `muster status`: how a cluster stands, once or all the time. */
export function statusCommand(program: Command): void {
  const command = program.command("status")
    .description("how a cluster stands: its ranks, and the operation that changes its size");
  addServiceFlags(command)
    .option("--watch", "keep looking until Ctrl-C")
    .option("--json", "print it as JSON")
    .action(async (flags: Flags) => {
      process.exitCode = await status(flags);
    });
}

async function status(flags: Flags): Promise<number> {
  const out = terminal();
  const block = new LiveBlock(out);
  let stopped = false;
  process.once("SIGINT", () => stopped = true);
  let last: string[] = [];
  do {
    const answer = await ask(flags, "GET", "/status");
    if (answer.status !== 200) {
      process.stderr.write(`muster: ${complaint(answer)}\n`);
      return EXIT.failed;
    }
    if (flags.json) out.write(`${JSON.stringify(answer.body)}\n`);
    else {
      const { paint } = out;
      const lines = [
        headLine(answer.body, Date.now(), paint),
        ...rankLines(answer.body, Date.now(), paint),
        ...operationLines(answer.body.scaling),
      ];
      last = lines;
      if (flags.watch && out.live) block.draw(lines);
      else out.write(`${lines.join("\n")}\n`);
    }
    if (flags.watch && !stopped) await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  } while (flags.watch && !stopped);
  if (flags.watch && !flags.json) block.end(last);
  return EXIT.ok;
}

interface Scaling {
  readonly size: number;
  readonly running: OperationRecord | null;
  readonly last: OperationRecord | null;
  readonly broken?: string | null;
  readonly unusable?: readonly number[];
  readonly held?: string | null;
}

/** An operation as a few lines: what it is, who is waited for, what went wrong, what to do. */
export function operationLines(scaling: Scaling | null): string[] {
  const record = scaling?.running ?? scaling?.last ?? null;
  const state = [
    ...(scaling?.broken == null ? [] : [`  it does not scale now: ${scaling.broken}`]),
    ...((scaling?.unusable ?? []).length === 0 ? [] : [
      `  before it scales again all engines have to start anew (muster restart-engines)${
        scaling?.held == null ? "" : `: ${scaling.held}`
      }`,
    ]),
  ];
  if (record === null) return state;
  const { firstError, waitingFor, silentEngines, doubts, enginesToRestart, safeToDelete } = record;
  const list = (ranks: readonly number[]) => ranks.join(", ");
  return [
    ...state,
    `  operation ${record.operation}: ${record.phase}, to ${record.target} ranks`,
    ...(waitingFor.length === 0 ? [] : [`    waiting for ranks ${list(waitingFor)}`]),
    ...(silentEngines.length === 0
      ? []
      : [`    no answer from the engines of ranks ${list(silentEngines)}`]),
    ...record.participants.map((p) => `    rank ${p.rank}  ${p.state}`),
    ...(firstError === null ? [] : [
      `    first error${
        firstError.rank === null ? "" : `, rank ${firstError.rank}`
      }: ${firstError.text}`,
    ]),
    ...doubts.map((d) => `    rank ${d.rank} is in doubt; ${d.settledBy} would settle it`),
    ...(enginesToRestart.length === 0 ? [] : [`    engines to restart: ${list(enginesToRestart)}`]),
    ...(safeToDelete.length === 0 ? [] : [`    safe to delete: ranks ${list(safeToDelete)}`]),
  ];
}
