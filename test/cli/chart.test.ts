import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Command } from "commander";
import { chartModel, toMermaid, toScxml } from "../../src/charts/mod.ts";
import { chartCommand } from "../../src/cli/commands/chart.ts";
import { sequenceCommand } from "../../src/cli/commands/sequence.ts";
import { machines } from "../../src/machines/mod.ts";
import { failedRun } from "../console/fixture.ts";

interface Outcome {
  readonly out: string;
  readonly err: string;
  readonly code: number;
}

/** Runs `muster chart` in this process with its output caught. */
async function chart(...args: string[]): Promise<Outcome> {
  let out = "";
  let err = "";
  const program = new Command("muster").exitOverride().configureOutput({
    writeOut: (text) => out += text,
    writeErr: (text) => err += text,
  });
  chartCommand(program);
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    await program.parseAsync(["node", "muster", "chart", ...args]);
    return { out, err, code: Number(process.exitCode) };
  } catch (error) {
    return { out, err, code: (error as { exitCode?: number }).exitCode ?? 99 };
  } finally {
    process.exitCode = before;
  }
}

/** Runs `muster sequence` in this process. */
async function sequence(...args: string[]): Promise<string> {
  let out = "";
  const program = new Command("muster").exitOverride().configureOutput({
    writeOut: (text) => out += text,
  });
  sequenceCommand(program);
  await program.parseAsync(["node", "muster", "sequence", ...args]);
  return out;
}

const folder = mkdtempSync(join(tmpdir(), "muster-chart-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

test("muster chart engine draws it in the terminal; --format gives the other formats", async () => {
  const { out, code } = await chart("engine");
  assert.equal(code, 0);
  assert.match(out, /^╭─ engine ─/);
  assert.equal(
    (await chart("engine", "--format", "scxml")).out,
    toScxml(chartModel(machines["engine"]!)),
  );
});

test("--check passes on a fresh file, fails on drift and on a missing file, and writes nothing", async () => {
  const path = join(folder, "engine.mmd");
  const args = ["engine", "-f", "mermaid", "--out", path];
  assert.deepEqual((await chart(...args, "--check")).code, 1);
  assert.equal((await chart(...args)).code, 0);
  assert.deepEqual(await chart(...args, "--check"), { out: "", err: "1 up to date\n", code: 0 });
  writeFileSync(path, "stale");
  const stale = await chart(...args, "--check");
  assert.deepEqual([stale.code, stale.err], [1, `${path} differs from the chart of today\n`]);
  assert.equal(readFileSync(path, "utf8"), "stale");
});

test("all writes one file a machine", async () => {
  const { code, err } = await chart("all", "-f", "mermaid", "-o", join(folder, "all"));
  assert.equal(code, 0);
  assert.equal(err.trim().split("\n").length, Object.keys(machines).length);
});

test("a machine of the user's own module is drawn, and mistakes are answered with what there is", async () => {
  const xstate = import.meta.resolve("xstate");
  const path = join(folder, "mine.mjs");
  writeFileSync(
    path,
    `import { createMachine } from ${JSON.stringify(xstate)};
     export const door = createMachine({ id: "door", initial: "shut", states: { shut: { on: { open: "open" } }, open: {} } });
     export const other = createMachine({ id: "other" });
     export const number = 7;`,
  );
  const mine = await chart(`${path}#door`, "-f", "mermaid");
  assert.match(mine.out, /door_shut --> door_open : open/);
  assert.match((await chart(path)).err, /exports several machines: say .*#door or .*#other/);
  assert.match(
    (await chart(`${path}#window`)).err,
    /exports no window: it has door, number, other/,
  );
  assert.match((await chart(`${path}#number`)).err, /this is a number, not an XState v5 machine/);
  assert.match((await chart("./nowhere.js")).err, /nowhere.js cannot be loaded/);
  assert.match((await chart("enigne")).err, /there is no machine enigne: use engine, /);
  assert.match((await chart("engine", "-f", "png")).err, /there is no chart format "png"/);
  assert.match((await chart()).err, /name a machine, or ask for --list/);
  assert.equal((await chart("enigne")).code, 2);
});

test("the text of mermaid from the command equals the library's", async () => {
  const { out } = await chart("startup", "-f", "mermaid");
  assert.equal(out, toMermaid(chartModel(machines["startup"]!)));
});

test("--journal shows what a recorded run visited and took, and says its coverage", async () => {
  const file = join(folder, "run.jsonl");
  writeFileSync(file, failedRun().text());
  const { out, err } = await chart("engine", "--journal", file, "--instance", "rank/4/engine");
  assert.match(err, /^engine: 4 of \d+ states and \d+ of \d+ transitions were seen$/m);
  assert.match(out, /● lost ×1/);
  assert.match(out, /○ restarted \(never\)/);
  const early = await chart(
    "engine",
    "--journal",
    file,
    "--at",
    "12",
    "--instance",
    "rank/4/engine",
  );
  assert.match(early.out, /● awaited ×6/);
  const nobody = await chart("engine", "--journal", file, "--instance", "rank/9/engine");
  assert.match(nobody.err, /at that record there is no engine rank\/9\/engine/);
});

test("muster sequence draws a stretch of a journal, one line a step", async () => {
  const file = join(folder, "sequence.jsonl");
  writeFileSync(file, failedRun().text());
  await assert.rejects(sequence(file, "--from", "900"), {
    code: "journal-missing",
    message: /^there is no record from 900 to 959: the journal has records up to \d+$/,
  });
  const text = await sequence(file, "--from", "20");
  const lines = text.trimEnd().split("\n");
  assert.match(lines[0]!, /coordinator\s+engine 3\s+engine 4\s+process engine-0/);
  assert.match(text, /◀─+ ready blocks=7003 ─+┤/);
  assert.match(text, /⋮ 12\.5 s later/);
  assert.match(text, /✗ crash: exited, SIGKILL/);
  assert.match(await sequence(file, "--format", "mermaid"), /^sequenceDiagram\n/);
  assert.match(await sequence(file, "--format", "svg", "--to", "5"), /^<svg /);
  assert.doesNotMatch(await sequence(file, "--instance", "rank/3"), /engine 4/);
});

test("--checked shows what the check of a model reached", async () => {
  const { out, err } = await chart("engine", "--checked", "startup");
  assert.match(
    err,
    /^engine: \d+ of \d+ states and \d+ of \d+ transitions in \d+ states of startup \(ok\)$/m,
  );
  assert.match(out, /ready ×\d+/);
  assert.match(
    (await chart("engine", "--checked", "nowhere")).err,
    /there is no model nowhere: startup/,
  );
  const other = await chart("engine", "--checked", "two-phase-commit");
  assert.match(other.err, /the model two-phase-commit does not run engine/);
});
