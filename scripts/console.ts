/**
 * Bundles the console's page into `src/console/page.generated.ts`, so that the package needs no bundler where it runs; with
 * `--check` says whether it is stale. `npm run console`, `npm run console -- --check`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { chartModel, chartStyle, layoutChart, sequenceStyle } from "../src/charts/mod.ts";
import { machines } from "../src/machines/mod.ts";

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(here, "..", "src", "console");
const target = join(folder, "page.generated.ts");

interface PageAssets {
  readonly html: string;
  readonly js: string;
  readonly css: string;
  /** Where every state and arrow of our charts goes, so that nobody lays them out at run time. */
  readonly charts: string;
}

/** Everything that the page is made of. */
export async function bundlePage(): Promise<PageAssets> {
  const result = await build({
    entryPoints: [join(folder, "page", "main.tsx")],
    bundle: true,
    write: false,
    format: "iife",
    target: "es2022",
    minify: true,
    charset: "utf8",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    // Layouts are computed here: neither the page nor its server lays out a chart.
    external: ["elkjs", "elkjs/*"],
    conditions: ["production"],
    define: { "process.env.NODE_ENV": '"production"' },
    absWorkingDir: join(here, ".."),
    logLevel: "error",
  });
  const style = await build({
    stdin: {
      contents: readFileSync(join(folder, "page", "style.css"), "utf8") + chartStyle +
        sequenceStyle,
      loader: "css",
    },
    write: false,
    minify: true,
    target: "es2022",
  });
  return {
    html: readFileSync(join(folder, "page", "index.html"), "utf8"),
    js: result.outputFiles[0]!.text,
    css: style.outputFiles[0]!.text,
    charts: JSON.stringify(await layouts()),
  };
}

async function layouts(): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const [name, machine] of Object.entries(machines)) {
    found[name] = await layoutChart(chartModel(machine), { counts: true });
  }
  return found;
}

/** The generated module, byte for byte. */
export async function generatedPage(): Promise<string> {
  const page = await bundlePage();
  const entries = Object.entries(page).map(([name, text]) => `  ${name}: ${JSON.stringify(text)},`);
  return [
    "// Written by scripts/console.ts (npm run console) from src/console/page. Do not edit.",
    'export const page: Readonly<Record<"html" | "js" | "css" | "charts", string>> = {',
    ...entries,
    "};",
    "",
  ].join("\n");
}

export const pageIsFresh = async (): Promise<boolean> =>
  await generatedPage() === readFileSync(target, "utf8");

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.includes("--check")) {
    const fresh = await pageIsFresh();
    if (!fresh) console.error("src/console/page.generated.ts is stale: run npm run console");
    process.exitCode = fresh ? 0 : 1;
  } else {
    const text = await generatedPage();
    writeFileSync(target, text);
    console.log(`wrote the page: ${gzipSync(text).length} bytes compressed`);
  }
}
