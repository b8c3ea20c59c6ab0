/** A check that takes long: what is seen of it, and how it is ended. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { test } from "node:test";
import { Estimate, progressLine, Watch } from "../../src/cli/check/watch.ts";
import type { Progress } from "../../src/checker/mod.ts";

const at = (seconds: number, states: number, frontier: number): Progress => ({
  states,
  generated: 5 * states,
  depth: 12,
  frontier,
  seconds,
});

test("the time left is told once there are fewer new states than were left", () => {
  const growing = new Estimate();
  assert.equal(growing.of(at(1, 1000, 800)), undefined);
  assert.equal(growing.of(at(2, 2000, 1700)), undefined);
  const ending = new Estimate();
  ending.of(at(1, 2000, 1000));
  // 1,000 states were left in a second, and led to 500 new ones.
  assert.deepEqual(ending.of(at(2, 2500, 500)), { least: 0.5, about: 1 });
});

test("a line of progress has states, depth, frontier, rate, time and what is left", () => {
  const estimate = new Estimate();
  const first = progressLine(at(1, 2000, 1000), undefined, estimate);
  assert.match(first, /^2,000 states, depth 12, frontier 1,000, 2,000 states a second, 1\.0 s, /);
  assert.match(first, /still growing$/);
  assert.match(
    progressLine(at(2, 2500, 500), undefined, estimate),
    /about 1 s more \(1 at least\)$/,
  );
  assert.match(progressLine(at(1, 2000, 1), 4000, new Estimate()), /at most 1 s more$/);
});

test("where nobody sees a screen a line is written after two seconds, and then every ten", () => {
  let written = "";
  const watch = new Watch("m", { screen: { live: false, write: (t) => void (written += t) } });
  for (let s = 1; s <= 25; s++) watch.onProgress(at(s, 1000 * s, 500));
  watch.end();
  const lines = written.trimEnd().split("\n");
  assert.deepEqual(lines.map((l) => /^m: ([\d,]+) states/.exec(l)?.[1]), [
    "2,000",
    "12,000",
    "22,000",
  ]);
});

const BIG = ["two-phase-commit", "--managers", "11", "--no-symmetry"];
const runtime = "Deno" in globalThis ? ["run", "-A"] : ["--import", "tsx"];

function musterCheck(...args: string[]): { child: ChildProcess; ended: Promise<[number, string]> } {
  const child = spawn(
    process.execPath,
    [...runtime, "src/cli/main.ts", "check", ...args],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  let out = "";
  child.stdout!.on("data", (chunk) => out += chunk);
  const ended = new Promise<[number, string]>((done) =>
    child.once("close", (code) => done([code ?? -1, out]))
  );
  return { child, ended };
}

test("Ctrl-C ends a search with what was explored until then", async () => {
  const { child, ended } = musterCheck(...BIG);
  const [line] = await once(child.stderr!, "data");
  assert.match(String(line), /^two-phase commit with 11 resource managers: [\d,]+ states, depth/);
  process.kill(child.pid!, "SIGINT");
  const [code, out] = await ended;
  assert.equal(code, 130);
  assert.match(out, /^inconclusive: .*: nothing was found until the search was ended/);
  assert.match(out, /bounds .*; interrupted/);
  assert.match(out, /frontier +[\d,]+ states found, but not left/);
});
