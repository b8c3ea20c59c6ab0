/**
 * Writes the charts of every machine to `models/charts`, or with `--check` says which of them are stale.
 * `npm run charts`, `npm run charts -- --check`.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { type ChartFormat, chartFormats, chartModel, writeChart } from "../src/charts/mod.ts";
import { machines } from "../src/machines/mod.ts";

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(here, "..", "models", "charts");

const FORMATS: readonly ChartFormat[] = ["svg", "mermaid", "scxml"];

/** Every file that belongs into `models/charts`, by name. */
export async function chartFiles(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const [name, machine] of Object.entries(machines)) {
    const model = chartModel(machine);
    for (const format of FORMATS) {
      files.set(`${name}.${chartFormats[format]}`, await writeChart(model, format));
    }
  }
  return files;
}

/** Names of files that are missing, differ or belong to no machine. */
export function staleFiles(wanted: ReadonlyMap<string, string>): readonly string[] {
  mkdirSync(folder, { recursive: true });
  const there = new Set(readdirSync(folder).filter((name) => /\.(mmd|svg|scxml)$/.test(name)));
  const stale = [...there].filter((name) => !wanted.has(name));
  for (const [name, text] of wanted) {
    if (!there.has(name) || readFileSync(join(folder, name), "utf8") !== text) stale.push(name);
  }
  return stale.sort();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = await chartFiles();
  if (process.argv.includes("--check")) {
    const stale = staleFiles(files);
    for (const name of stale) console.error(`stale: models/charts/${name}`);
    if (stale.length > 0) console.error("run: npm run charts");
    process.exitCode = stale.length > 0 ? 1 : 0;
  } else {
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of files) writeFileSync(join(folder, name), text);
    console.log(`wrote ${files.size} charts to models/charts`);
  }
}
