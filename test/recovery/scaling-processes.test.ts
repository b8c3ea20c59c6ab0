/**
 * SIGKILL to a coordinator in the middle of scaling, with engines that are processes and stores that the keeper hosts. The next coordinator
 * on the same journal says what was owed and what it did about it, every rank ends with an outcome, and the cluster scales again.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test, type TestContext } from "node:test";
import { moduleCommand } from "../../src/drivers/keeper/self.ts";

const PROGRAM = moduleCommand(new URL("./scaling-program.ts", import.meta.url));

interface Told {
  readonly recovered: string | null;
  readonly owed: readonly string[];
  readonly outcome: string;
  readonly size: number;
  readonly again: string;
  readonly broken: string | null;
}

function run(...args: readonly string[]): Promise<{ signal: string | null; out: string }> {
  const [command, ...rest] = PROGRAM;
  const child = spawn(command!, [...rest, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (text) => out += text);
  return new Promise((resolve) => child.on("close", (_, signal) => resolve({ signal, out })));
}

function fresh(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "mk-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

interface Death {
  readonly from: number;
  readonly to: number;
  /** Of this record it dies. */
  readonly record: string;
  /** A call that was owed, and what became of it; null where it dies with nothing open. */
  readonly owed: RegExp | null;
  /** Also in the short run. */
  readonly always?: true;
}

const ASKED = /^engine\.call asked$/;
const WRITE = /^store\.write (asked|concluded)$/;

const deaths: readonly Death[] = [
  { from: 2, to: 3, record: '"type":"scaleAsked"', owed: /^store\.lookUp repeated$/ },
  { from: 2, to: 3, record: '"type":"drawn"', owed: /^store\.serve asked$/, always: true },
  { from: 2, to: 3, record: '"type":"written","store":"reconfig"', owed: WRITE },
  { from: 2, to: 3, record: '"type":"enginesReady"', owed: null },
  {
    from: 3,
    to: 2,
    record: '"type":"everyoneVoted"',
    owed: /^store\.decide (repeated|concluded)$/,
  },
  { from: 3, to: 2, record: '"type":"decided"', owed: WRITE },
  { from: 3, to: 2, record: '"method":"pause_scheduler"', owed: ASKED, always: true },
  // What other engines said meanwhile is lost, and nobody can ask for it: rank 0's limit ends it, and all engines start anew.
  { from: 3, to: 2, record: '"notification":"reconfigureFinished"', owed: WRITE },
  { from: 3, to: 2, record: '"type":"everyoneFinished"', owed: WRITE },
  { from: 2, to: 3, record: '"method":"resume_scheduler"', owed: ASKED },
];

/** `npm run test:crash` dies of each of these records. */
const every = process.env["MUSTER_CRASH_ROUNDS"] !== undefined;

for (const { from, to, record, owed } of deaths.filter((d) => every || d.always)) {
  test(`${from} to ${to} ranks, killed once ${record} is written: it goes on, and scales again`, {
    timeout: 180_000,
  }, async (t) => {
    const directory = fresh(t);
    const killed = await run(directory, String(from), String(to), record);
    assert.equal(killed.signal, "SIGKILL", killed.out);
    const { out } = await run(directory, String(from), String(to));
    const told = JSON.parse(out) as Told;
    t.diagnostic(`${told.recovered}; first ${told.outcome}`);
    assert.ok(
      owed === null ? told.owed.length === 0 : told.owed.some((o) => owed.test(o)),
      told.recovered ?? "nothing was recovered",
    );
    assert.equal(told.size, told.outcome === "completed" ? to : from);
    assert.equal(told.again, "completed");
    assert.equal(told.broken, null);
  });
}
