/** The README's examples run as they stand there. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { promisify } from "node:util";

const entries = JSON.parse(readFileSync("deno.json", "utf8")).exports as Record<string, string>;
const readme = readFileSync("README.md", "utf8");
const examples = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((m) => m[1]!);

/** `muster/x` is the package's own name; here it is its source. */
const fromSource = (code: string): string =>
  code.replace(
    /from "muster(\/[\w/]+)?"/g,
    (_, path: string | undefined) => `from "${join(process.cwd(), entries[`.${path ?? ""}`]!)}"`,
  );

const command = "deno" in process.versions
  ? [process.execPath, "run", "-A", "--no-check", "--quiet"]
  : [process.execPath, "--import", "tsx"];

test("the README has an example, and its commands exist", () => {
  assert.ok(examples.length >= 1);
  const commands = readdirSync("src/cli/commands").map((f) => f.replace(".ts", ""));
  for (const [, name] of readme.matchAll(/^muster ([\w-]+)/gm)) {
    assert.ok(commands.includes(name!), `muster ${name}`);
  }
});

for (const [i, code] of examples.entries()) {
  test(`example ${i + 1} of the README runs`, async () => {
    const folder = mkdtempSync(join(process.cwd(), "test", ".readme-"));
    const file = join(folder, "example.ts");
    writeFileSync(file, fromSource(code));
    try {
      const { stdout } = await promisify(execFile)(command[0]!, [...command.slice(1), file], {
        timeout: 60_000,
      });
      assert.match(stdout, /\S/, "it prints something");
      if (i === 0) assert.equal(stdout.trim(), "2 ranks, 2000 KV cache blocks");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
