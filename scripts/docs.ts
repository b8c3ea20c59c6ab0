/** Writes the pages of docs/ that are made from tables in the code: `npm run docs`. With `--check` it only says whether they are up to date. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { REFUSALS } from "../src/planning/mod.ts";
import { FAILURES } from "../src/view/mod.ts";

type Kinds = Readonly<Record<string, { readonly cause: string; readonly remedy: string }>>;

const table = (kinds: Kinds): string =>
  Object.entries(kinds)
    .map(([code, { cause, remedy }]) => `| \`${code}\` | ${cause} | ${remedy} |`)
    .join("\n");

/** The page of all codes. */
export const failuresPage = (): string =>
  `# Codes

Made from the tables in \`src/view/failures.ts\` and \`src/planning/refusal.ts\`: \`npm run docs\`.

## Failures

A failure is a value: the same record is in the thrown \`ClusterError\`, in the status, in the log line and on the page. Beside its
code it has the rank and its phase, how long was waited, who is missing, the process's last lines, and one sentence.

| code | cause | remedy |
|---|---|---|
${table(FAILURES)}

## Refusals of a configuration

A plan that cannot be made names the flag, the value and the fix. All refusals come at once.

| code | cause | remedy |
|---|---|---|
${table(REFUSALS)}
`;

export const pages: Readonly<Record<string, () => string>> = { "docs/codes.md": failuresPage };

if (process.argv[1]?.endsWith("docs.ts")) {
  for (const [path, page] of Object.entries(pages)) {
    const text = page();
    if (existsSync(path) && readFileSync(path, "utf8") === text) continue;
    if (process.argv.includes("--check")) {
      process.stderr.write(`${path} is stale: npm run docs\n`);
      process.exitCode = 1;
    } else {
      writeFileSync(path, text);
      process.stdout.write(`wrote ${path}\n`);
    }
  }
}
