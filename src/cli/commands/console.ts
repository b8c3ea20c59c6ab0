import { existsSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import process from "node:process";
import type { Command } from "commander";
import { portNumber } from "../arguments.ts";
import type { ConsoleServer, ConsoleSource } from "../../console/mod.ts";

interface Flags {
  readonly host: string;
  readonly port: number;
  readonly token?: string;
  readonly live: boolean;
}

/** `muster console`: the local page for a running coordinator or a journal. */
export function consoleCommand(program: Command): void {
  program.command("console")
    .description("open the local page: a running coordinator or a journal, with time travel")
    .argument(
      "[journal]",
      "a journal's directory or file, or the address of a console; none: drop one on the page",
    )
    .option("--host <address>", "where to listen; other machines need the token", "127.0.0.1")
    .option("--port <number>", "0 takes a free one", portNumber, 0)
    .option("--token <text>", "instead of a fresh one")
    .option("--no-live", "do not look for new records")
    .action(async (journal: string | undefined, flags: Flags) => {
      const server = await openConsole(journal, flags);
      program.configureOutput().writeOut?.(`${server.address}\n`);
      await untilStopped();
      await server.close();
    });
}

/** Starts the console for what the command line named. Throws `ConsoleError`. */
export async function openConsole(
  journal: string | undefined,
  flags: Flags,
): Promise<ConsoleServer> {
  const { startConsole } = await import("../../console/mod.ts");
  const source = await sourceOf(journal, flags.live);
  const { host, port, token } = flags;
  return await startConsole({ source, host, port, ...(token === undefined ? {} : { token }) });
}

async function sourceOf(journal: string | undefined, live: boolean): Promise<ConsoleSource> {
  const { ConsoleError, emptySource, remoteSource, storeSource } = await import(
    "../../console/mod.ts"
  );
  if (journal === undefined) return emptySource;
  if (/^https?:\/\//.test(journal)) return remoteSource(journal);
  if (!existsSync(journal)) {
    throw new ConsoleError("console.source", `there is no journal at ${journal}`);
  }
  const { FileStore, fileSegment } = await import("../../journal/stores/mod.ts");
  if (statSync(journal).isDirectory()) {
    const inner = join(journal, "journal"); // a run's directory may hold its journal in one of its own
    const direct = !existsSync(inner) || new FileStore(journal).segments().length > 0;
    return storeSource(new FileStore(direct ? journal : inner), { live });
  }
  const store = {
    name: journal,
    segments: () => [fileSegment(journal, basename(journal))],
    own: () => Promise.reject(new ConsoleError("console.source", `${journal} is only read here`)),
  };
  return storeSource(store, { live });
}

const untilStopped = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
