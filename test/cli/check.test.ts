import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Command } from "commander";
import { models } from "../../models/mod.ts";
import { upstreamDefects } from "../../models/upstream/mod.ts";
import { check } from "../../src/checker/mod.ts";
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

test("where ours holds, the original's rules in its place follow, drawn, unless more was asked for", async () => {
  const { out, code } = await muster("agreement");
  assert.equal(code, 0);
  const [ours, original] = out.split(
    /^The original's rules in its place \(muster check upstream\/agreement\): /m,
  );
  assert.match(ours!, /^ok: /);
  assert.match(original!, /^No object decides about the commit/);
  assert.match(original!, /^1 +├── commit_ready\/0 = 1 ─▶│/m);
  assert.match(original!, /^4 +│ +│◀─+ error = 1 ─+┤/m);
  assert.doesNotMatch((await muster("agreement", "--coverage")).out, /The original's rules/);
  assert.doesNotMatch((await muster("agreement", "--original", "2")).out, /The original's rules/);
});

test("every defect that a model of ours stands in the place of has a counterexample", () => {
  const named = Object.values(models).flatMap(({ original }) => original ?? []);
  assert.ok(named.length >= 5);
  for (const name of named) {
    const defect = upstreamDefects.find((d) => d.name === name);
    assert.equal(check(defect!.model).outcome, "violated", name);
  }
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

test("--json is the verdict, with the chance of collisions and what it does not say", async () => {
  const { out } = await muster("two-phase-commit", "--managers", "3", "--no-symmetry", "--json");
  const verdict = JSON.parse(out);
  assert.deepEqual([verdict.outcome, verdict.states, verdict.collisions], ["ok", 288, 0]);
  assert.equal(verdict.notSaid.length, 3);
  assert.match(verdict.notSaid[1], /^nothing about durations/);
  const hashed = await muster(
    "two-phase-commit",
    "--managers",
    "3",
    "--no-symmetry",
    "--fingerprints",
    "--json",
  );
  const { collisions: expected, notSaid } = JSON.parse(hashed.out);
  assert.ok(expected > 0 && expected < 1e-12, `${expected}`);
  assert.match(notSaid[3], /^fingerprints: a state that was taken for another one/);
});

test("--json has the test and the coverage too, where they are asked for", async () => {
  const { out, code } = await muster(
    "agreement",
    "--original",
    "2",
    "--json",
    "--regression",
    "--coverage",
  );
  assert.equal(code, 1);
  const { regression, coverage } = JSON.parse(out);
  assert.match(regression, /^import assert from/);
  assert.deepEqual(coverage.charts.map((c: { chart: string }) => c.chart), ["original-rank"]);
});

test("what random runs break is drawn, written as a trace, and printed as a test", async () => {
  const folder = mkdtempSync(join(tmpdir(), "muster-check-"));
  const file = join(folder, "t.json");
  const { out, code } = await muster(
    ..."agreement --original 2 --random pct --regression --trace".split(" "),
    file,
  );
  assert.equal(code, 1);
  assert.match(out, /found in run 5 after 4 steps; 4 are left after shrinking steps/);
  assert.match(out, /● allVoted/);
  assert.match(out, /the run of 4 steps that broke it/);
  const again = await muster("agreement", "--original", "2", "--replay", file);
  assert.match(again.out, /rank\/1: givenUp/);
  rmSync(folder, { recursive: true });
});

test("a model that is exported as default is imported as such by the printed test", async () => {
  const folder = mkdtempSync(join(process.cwd(), "test", ".own-"));
  const file = join(folder, "own.ts");
  writeFileSync(
    file,
    `import { agreement } from "../../models/agreement.ts";\nexport default (v) => agreement({ original: [0, v.other] });\n`,
  );
  try {
    const { out, code } = await muster(file, "--other", "1", "--regression");
    assert.equal(code, 1);
    assert.ok(out.includes(`import { default as model } from "${file}";`), out);
    assert.ok(out.includes(`breaks(model({"other":1}), `), out);
    const idle = await muster(`${file}#default`, "--depth", "x");
    assert.equal(idle.code, 1, "commander's own refusal");
  } finally {
    rmSync(folder, { recursive: true });
  }
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
      [["startup", "--stops", "2"], /--stops 2: it must be from 0 to 1/],
      [["startup", "--engines", "1e3"], /--engines needs a whole number, not 1e3/],
      [["scaling", "--ranks", "2", "--target", "2"], /from 2 to 2 ranks: nothing is scaled/],
      [["operation", "--target", "2"], /from 2 to 2 ranks: nothing is scaled/],
      [["scaling", "--ranks", "9"], /--ranks 9: it must be from 1 to 8/],
      [["agreement", "--original", "3"], /among 2 ranks there is no rank 2/],
      [["agreement", "--trace", "/nowhere/t.json"], /--trace .* cannot be written: there is no/],
      [["agreement", "--trace", tmpdir()], /--trace .* cannot be written: it is a folder/],
      [["agreement", "--replay", "/nowhere"], /--replay \/nowhere is no trace: there is no such/],
      [["agreement", "--replay", "package.json"], /this is not an ITF trace/],
      [["agreement", "--replay", "README.md"], /--replay README.md is no trace/],
      [["agreement", "--diagram", "png"], /--diagram is png: text, mermaid, svg/],
      [["agreement", "--runs", "5"], /--runs is for --random/],
      [["agreement", "--random", "--depth", "5"], /--depth does nothing together with --random/],
      [["agreement", "--random", "luck"], /--random is luck: uniform or pct/],
      [["agreement", "--fingerprints", "--coverage"], /which --fingerprints does not keep/],
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

test("--log holds frames of an original cluster against the original's rules, and observations against a model of one's own", async () => {
  const frames = await muster("--log", "test/golden/vllm-0.32.0/moe.jsonl");
  assert.equal(frames.code, 0);
  assert.match(frames.out, /^conforms: the original's handshake of 2 engines: 6 of 6 observations/);
  const folder = mkdtempSync(join(tmpdir(), "muster-check-"));
  const file = join(folder, "seen.jsonl");
  const observations = (...seen: [string, string][]) =>
    writeFileSync(
      file,
      seen.map(([to, type]) => `${JSON.stringify({ to, event: { type } })}\n`).join(""),
    );
  observations(["rank/0", "drained"], ["rank/1", "drained"], ["rank/1", "allVoted"]);
  const fits = await muster("agreement", "--log", file);
  assert.equal(fits.code, 0, fits.out);
  observations(["rank/0", "drained"], ["rank/0", "drained"]);
  const differs = await muster("agreement", "--log", file, "--json");
  assert.equal(differs.code, 1);
  assert.equal(JSON.parse(differs.out).unexplained.observation.seq, 2);
  writeFileSync(file, '{"to":"rank/0"}\n');
  const wrong = await muster("agreement", "--log", file);
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /seen.jsonl, line 1: an observation looks like/);
  rmSync(folder, { recursive: true });
});

test("--witnesses tells how each state and transition is reached first", async () => {
  const { out, code } = await muster("agreement", "--witnesses");
  assert.equal(code, 0);
  assert.match(
    out,
    /\nrank\.committed, by rank\/0, after 4 steps\n {2}rank\/0: drained\n {2}rank\/1: drained\n/,
  );
});

test("--coverage tells what the check never met", async () => {
  const { out, code } = await muster("rank", "--coverage");
  assert.equal(code, 0);
  assert.match(out, /engine: states 11 of 12, transitions 95 of 118/);
  assert.match(out, /never isStrict yes/);
});
