/** Sixty-four engines report ten thousand times a second: publishing keeps its pace, and neither memory nor journal grows. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Muster } from "../e2e/support.ts";
import { missing, peer } from "./python.ts";

const SECONDS = Number(process.env["FLOOD_SECONDS"] ?? 30);
const INTERVAL_MS = 100;

const journalBytes = (folder: string): number =>
  readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
const residentKb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test(
  `10,000 statistics a second from 64 engines for ${SECONDS} seconds`,
  { skip: missing },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "muster-flood-"));
    const coordinator = new Muster([
      "coordinator",
      "--engines",
      "64",
      "--interval-ms",
      String(INTERVAL_MS),
      "--journal",
      join(folder, "journal"),
    ]);
    try {
      const [, front] = await coordinator.said(/front-ends: (\S+)/);
      const [, back, reports] = await coordinator.said(/engines: (\S+), reports (\S+)/);
      const flood = peer("stats_flood.py", back!, reports!, front!, 64, 10_000, SECONDS);
      await Promise.race([coordinator.said(/paused, wave 0, 64 engines/), flood.output]);
      await sleep(SECONDS * 300);
      const measured = () => ({
        journal: journalBytes(join(folder, "journal")),
        memory: residentKb(coordinator.child.pid!),
      });
      const early = measured();
      await sleep(SECONDS * 500);
      const late = measured(); // before the engines leave, which is an input
      const result = JSON.parse(await flood.output);
      t.diagnostic(`${JSON.stringify(result)}, ${early.memory} KB then ${late.memory} KB resident`);
      assert.ok(result.sent >= 0.9 * 10_000 * SECONDS, `only ${result.sent} were sent`);
      assert.equal(result.rows, 64);
      assert.equal(result.columns, 3);
      assert.ok(result.published >= (SECONDS * 1000) / (2 * INTERVAL_MS), `${result.published}`);
      assert.ok(result.gap50 <= 2 * INTERVAL_MS, `gaps of ${result.gap50} ms`);
      const crowded = loadavg()[0]! > 2 * cpus().length;
      if (crowded) t.diagnostic("the machine has other work: only the median gap is judged");
      else assert.ok(result.gap95 <= 2 * INTERVAL_MS, `a gap of ${result.gap95} ms`);
      assert.equal(late.journal, early.journal, "statistics are no inputs");
      assert.ok(late.memory < 1.3 * early.memory, `${early.memory} KB became ${late.memory} KB`);
    } finally {
      coordinator.kill("SIGTERM");
      await coordinator.ended;
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
