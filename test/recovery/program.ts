import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { moduleCommand, runtime } from "../../src/drivers/keeper/self.ts";

/**
 * The command line of a program in this folder. On Node it is bundled first: it is started hundreds of times, and most of the time would go
 * into compiling it.
 */
export async function program(name: string): Promise<string[]> {
  const module = new URL(`./${name}`, import.meta.url);
  if (runtime === "deno") return moduleCommand(module);
  const { build } = await import("esbuild");
  const folder = mkdtempSync(join(tmpdir(), "muster-program-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const outfile = join(folder, "program.mjs");
  await build({
    entryPoints: [fileURLToPath(module)],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    external: ["zeromq"],
    logLevel: "error",
  });
  return [process.execPath, outfile];
}
