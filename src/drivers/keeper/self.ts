import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The runtime that runs this program. */
export const runtime: "deno" | "node" = "deno" in process.versions ? "deno" : "node";

/**
 * The command line that runs the command `muster` again, as the program that runs now was run: on Deno from its sources, on Node from
 * what was compiled, or from the sources with tsx. Append the command's arguments. Works in any working directory.
 */
export function selfCommand(): string[] {
  const suffix = extension(import.meta.url);
  return moduleCommand(new URL(`../../cli/main${suffix}`, import.meta.url));
}

/** The command line that runs one module of this package as a program, on the runtime that runs now. */
export function moduleCommand(module: URL): string[] {
  const file = module.protocol === "file:" ? fileURLToPath(module) : module.href;
  if (runtime === "deno") return [process.execPath, "run", "--quiet", "-A", "--no-check", file];
  if (extension(module.href) === ".js") return [process.execPath, file];
  return [process.execPath, "--import", tsxLoader(), file];
}

/** `.ts` from sources, `.js` when compiled. */
export function extension(url: string): ".ts" | ".js" {
  return url.endsWith(".ts") ? ".ts" : ".js";
}

/** tsx by its address, since the program that it loads runs in another directory. */
function tsxLoader(): string {
  try {
    const path = createRequire(import.meta.url).resolve("tsx");
    if (existsSync(path)) return pathToFileURL(path).href;
  } catch {
    // said below
  }
  throw new Error(
    "muster runs from its TypeScript sources here, and tsx, which loads them, is not installed: " +
      "run `npm install`, or `npm run build` and use dist/",
  );
}
