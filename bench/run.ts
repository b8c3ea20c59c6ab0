/**
 * Runs benchmarks and prints their tables: `npm run bench`, or `npm run bench -- journal kernel` for some topics.
 *
 * A topic is a file here that exports `name` and `run()`. `--json FILE` also writes the tables as JSON (`-` for standard output, without the
 * printed tables); `--list` names the topics.
 */
import Table from "cli-table3";
import { readdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** One table of results. */
export interface BenchTable {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
  /** What a reader must know to believe the numbers. */
  readonly notes?: readonly string[];
}

/** A benchmark: a file in this folder. */
export interface Bench {
  readonly name: string;
  run(): Promise<BenchTable[]>;
}

const folder = new URL("./", import.meta.url);

/** Names of the topics: files here that are no helpers. */
const topics = (): string[] =>
  readdirSync(fileURLToPath(folder))
    .filter((file) => file.endsWith(".ts") && file !== "run.ts")
    .map((file) => file.slice(0, -3))
    .sort();

const shown = (cell: string | number): string =>
  typeof cell === "string"
    ? cell
    : Math.abs(cell) >= 100
    ? Math.round(cell).toLocaleString("en-US")
    : String(Number(cell.toPrecision(3)));

/** A table as text. */
export function tableText({ title, columns, rows, notes = [] }: BenchTable): string {
  const table = new Table({
    head: [...columns],
    style: { head: [], border: [] },
    colAligns: columns.map((_, i) => i === 0 ? "left" : "right"),
  });
  for (const row of rows) table.push(row.map(shown));
  return [`\n${title}`, table.toString(), ...notes.map((note) => `  ${note}`)].join("\n");
}

async function main(args: string[]): Promise<number> {
  const known = topics();
  if (args.includes("--list")) {
    console.log(known.join("\n"));
    return 0;
  }
  const at = args.indexOf("--json");
  const jsonTo = at < 0 ? undefined : args[at + 1];
  const wanted = args.filter((arg, i) => !arg.startsWith("-") && (at < 0 || i !== at + 1));
  const unknown = wanted.filter((topic) => !known.includes(topic));
  if (unknown.length > 0 || (at >= 0 && jsonTo === undefined)) {
    console.error(
      unknown.length > 0
        ? `There is no benchmark ${unknown.join(", ")}. There are: ${known.join(", ")}.`
        : "--json needs a file, or - for standard output.",
    );
    return 2;
  }
  const quiet = jsonTo === "-";
  const results: { name: string; tables: BenchTable[] }[] = [];
  for (const topic of wanted.length > 0 ? wanted : known) {
    const bench = await import(new URL(`${topic}.ts`, folder).href) as Bench;
    const tables = await bench.run();
    results.push({ name: bench.name, tables });
    if (!quiet) { for (const table of tables) console.log(tableText(table)); }
  }
  if (jsonTo !== undefined) {
    const text = JSON.stringify(
      { runtime: runtime(), cores: cpus().length, cpu: cpus()[0]?.model ?? "", results },
      null,
      2,
    );
    if (quiet) console.log(text);
    else writeFileSync(jsonTo, `${text}\n`);
  }
  return 0;
}

function runtime(): string {
  const deno = (process.versions as Record<string, string | undefined>)["deno"];
  return deno === undefined ? `node ${process.version}` : `deno ${deno}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await main(process.argv.slice(2));
}
