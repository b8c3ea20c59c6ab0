import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Command } from "commander";
import { checkCommand } from "../../src/cli/commands/check.ts";

async function muster(...args: string[]): Promise<{ out: string; err: string; code: number }> {
  let out = "";
  let err = "";
  const program = new Command("muster").exitOverride().configureOutput({
    writeOut: (text) => out += text,
    writeErr: (text) => err += text,
  });
  checkCommand(program);
  for (const command of program.commands) {
    command.exitOverride().configureOutput(program.configureOutput());
  }
  const before = process.exitCode;
  let code = 0;
  try {
    await program.parseAsync(["check", ...args], { from: "user" });
    code = Number(process.exitCode ?? 0);
  } catch (error) {
    code = (error as { exitCode: number }).exitCode;
  }
  process.exitCode = before;
  return { out, err, code };
}

test("a model that holds ends with 0 and says what was explored and what that does not say", async () => {
  const { out, code } = await muster("agreement", "--ranks", "3");
  assert.equal(code, 0);
  assert.match(out, /^ok: agreement among 3 ranks: 4 properties hold in every run/);
  assert.match(out, /80 distinct states/);
  assert.match(out, /What this does not say/);
});

test("a violated model ends with 1, draws the counterexample, writes a trace and a test", async () => {
  const folder = mkdtempSync(join(tmpdir(), "muster-check-"));
  const file = join(folder, "t.json");
  const { out, code } = await muster(
    "agreement",
    "--original",
    "2",
    "--trace",
    file,
    "--regression",
  );
  assert.equal(code, 1);
  assert.match(out, /commit_ready\/0 = 1 ─▶│/);
  assert.match(out, /models\["agreement"\]!\.build\({"ranks":2,"original":2}\)/);
  assert.equal(JSON.parse(readFileSync(file, "utf8"))["#meta"].format, "ITF");
  const again = await muster("agreement", "--original=2", "--replay", file);
  assert.equal(again.code, 0);
  assert.match(again.out, /rank\/1: givenUp/);
  rmSync(folder, { recursive: true });
});

test("--json is the verdict", async () => {
  const { out } = await muster("two-phase-commit", "--managers", "3", "--no-symmetry", "--json");
  const verdict = JSON.parse(out);
  assert.deepEqual([verdict.outcome, verdict.states], ["ok", 288]);
});

test("random runs say the seed, and that they prove nothing", async () => {
  const { out, code } = await muster("agreement", "--random", "pct", "--runs", "20", "--seed", "4");
  assert.equal(code, 0);
  assert.match(out, /20 random runs \(pct, seed 4\)/);
  assert.match(out, /prove nothing/);
});

test("what cannot be carried out ends with 2 and says what there is", async () => {
  for (
    const [args, text] of [
      [["nope"], /there is no model nope: startup, formation/],
      [["startup", "--wheels", "3"], /has no parameter --wheels; it has --engines/],
      [["startup", "--engines", "x"], /--engines needs a whole number, not x/],
      [["startup", "--engines", "0"], /--engines 0: it must be 1 or more/],
      [["startup", "--crashes", "-1"], /--crashes -1: it must be 0 or more/],
      [["./nowhere.ts"], /there is no file/],
      [["--log", "/nowhere/at/all"], /there is no journal at/],
    ] as const
  ) {
    const { err, code } = await muster(...args);
    assert.equal(code, 2, err);
    assert.match(err, text);
  }
});

test("a model of one's own is taken from a module", async () => {
  const folder = mkdtempSync(join(process.cwd(), "test", ".own-"));
  const file = join(folder, "own.ts");
  writeFileSync(
    file,
    `import { agreement } from "../../models/agreement.ts";\nexport const own = (v) => agreement({ ranks: v.ranks ?? 2 });\n`,
  );
  try {
    const { out, code } = await muster(`${file}#own`, "--ranks", "2");
    assert.equal(code, 0);
    assert.match(out, /24 distinct states/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("--mutate breaks every chart of a model, and names what no property notices", async () => {
  const { out, code } = await muster("rank", "--strict", "1", "--mutate");
  assert.equal(code, 0, "no mutant survives");
  assert.match(out, /^engine: \d+ of \d+ mutants caught/);
  assert.match(out, /never taken: awaited always is left out/);
  const upstream = await muster("upstream/agreement", "--mutate");
  assert.equal(upstream.code, 2);
  assert.match(upstream.err, /is violated with the machine as it is/);
});

test("--coverage tells what the check never met", async () => {
  const { out, code } = await muster("rank", "--coverage");
  assert.equal(code, 0);
  assert.match(out, /engine: states 11 of 12, transitions 95 of 117/);
  assert.match(out, /never isStrict yes/);
});
