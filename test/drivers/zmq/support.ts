/** Helpers of the ZeroMQ tests. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** Resolves when the condition holds; rejects after a generous while, naming what was awaited. */
/** A short directory of its own, removed afterwards. */
export async function inDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "mz-"));
  try {
    await body(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export const text = (content: string): Uint8Array => new TextEncoder().encode(content);
export const string = (frame: Uint8Array | undefined): string => new TextDecoder().decode(frame);

/** How a process ended, and what it said. */
export type Ended = { code: number | null; signal: string | null; output: string };

/**
 * Runs a file of this folder as a process of its own, on the runtime that runs the test. `said` is called for every
 * line, and may use the handle to stop it.
 */
export function run(
  file: string,
  args: readonly string[],
  said: (line: string) => void = () => {},
): Promise<Ended> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const runtime = "Deno" in globalThis ? ["run", "-A", "--no-check"] : ["--import", "tsx"];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...runtime, path, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NO_COLOR: "1" },
    });
    let output = "";
    let line = "";
    const hear = (chunk: Uint8Array) => {
      output += string(chunk);
      const lines = (line + string(chunk)).split("\n");
      line = lines.pop()!;
      lines.forEach(said);
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, output }));
  });
}
