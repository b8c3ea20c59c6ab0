/** What people install: the packed tarball in an empty project, on Node and on Deno, types and command included. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

const run = async (program: string, args: string[], cwd: string): Promise<string> => {
  const env = { ...process.env, NO_COLOR: "1" };
  try {
    const { stdout } = await promisify(execFile)(program, args, { cwd, env, timeout: 170_000 });
    return stdout;
  } catch (error) {
    const { stdout, stderr, message } = error as Error & { stdout: string; stderr: string };
    throw new Error(`${program} ${args.join(" ")}: ${message}\n${stdout}\n${stderr}`);
  }
};

const deno = resolve("node_modules/.bin/deno");
let folder: string;
let app: string;

const EXAMPLE = `import { Coordinator } from "muster";
import { referenceEngines } from "muster/testing";

const coordinator = await Coordinator.start({
  cluster: { dataParallelSize: 2, moe: true },
  launches: referenceEngines,
});
const status = await coordinator.ready();
console.log(\`\${status.ready} ranks, \${status.blocks?.sum} blocks\`);
await coordinator.close();
`;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "muster-package-"));
  app = join(folder, "app");
  mkdirSync(app);
  await run("npm", ["pack", "--silent", "--pack-destination", folder], process.cwd());
  const [tarball] = readdirSync(folder).filter((f) => f.endsWith(".tgz"));
  writeFileSync(join(app, "package.json"), `{ "type": "module", "private": true }`);
  const packages = [join(folder, tarball!), "typescript@7.0.2", "@types/node@20"];
  await run("npm", ["install", "--silent", "--no-audit", "--no-fund", ...packages], app);
  writeFileSync(join(app, "app.mts"), EXAMPLE);
  writeFileSync(join(app, "app.mjs"), EXAMPLE);
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("every entry point is there, on Node and on Deno", async () => {
  const entries = Object.keys(
    JSON.parse(await run("npm", ["pkg", "get", "exports"], process.cwd())),
  ).map((entry) => `muster${entry.slice(1)}`);
  assert.ok(entries.length >= 15, entries.join());
  const code = entries.map((e) => `await import(${JSON.stringify(e)});`).join("\n") +
    `\nconsole.log("all");\nprocess.exit(0);\n`;
  writeFileSync(join(app, "entries.mjs"), `import process from "node:process";\n${code}`);
  assert.equal(await run("node", ["entries.mjs"], app), "all\n");
  assert.equal(await run(deno, ["run", "-A", "--quiet", "entries.mjs"], app), "all\n");
});

test("types are there, and are types: a wrong setting is an error", async () => {
  const options = ["--noEmit", "--module", "nodenext", "--target", "es2022", "--strict"];
  const tsc = (file: string) => run("npx", ["tsc", ...options, "--types", "node", file], app);
  await tsc("app.mts");
  writeFileSync(join(app, "wrong.mts"), EXAMPLE.replace("dataParallelSize", "dataParallelSise"));
  await assert.rejects(tsc("wrong.mts"), /dataParallelSise/);
});

test("a cluster forms up from the package, on Node and on Deno", async () => {
  assert.equal(await run("node", ["app.mjs"], app), "2 ranks, 2000 blocks\n");
  assert.equal(await run(deno, ["run", "-A", "--quiet", "app.mjs"], app), "2 ranks, 2000 blocks\n");
});

test("the command runs from the package", async () => {
  assert.match(await run("npx", ["muster", "--version"], app), /^\d+\.\d+\.\d+\n$/);
  assert.match(await run("npx", ["muster", "demo", "--load-ms", "50"], app), /none is left/);
  assert.match(await run("npx", ["muster", "check", "two-phase-commit"], app), /^ok: /);
});

test("it can be published for Deno", async () => {
  await run(deno, ["publish", "--dry-run", "--allow-dirty", "--quiet"], process.cwd());
});
