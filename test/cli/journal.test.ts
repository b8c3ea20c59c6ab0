/** `muster log`, `replay` and `fork`, as a shell sees them. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test, type TestContext } from "node:test";
import { Command } from "commander";
import { forkCommand } from "../../src/cli/commands/fork.ts";
import { logCommand } from "../../src/cli/commands/log.ts";
import { replayCommand } from "../../src/cli/commands/replay.ts";
import { Host } from "../../src/host/mod.ts";
import { discard } from "../../src/host/mod.ts";
import { JournalError } from "../../src/journal/mod.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { clusterKernel, effects } from "../../src/machines/mod.ts";
import { configuration } from "../machines/fixture.ts";
import { ManualClock } from "../host/world.ts";

/** Runs a command line in this process. */
async function muster(...args: string[]): Promise<{ out: string; code: number }> {
  const program = new Command().exitOverride();
  logCommand(program);
  replayCommand(program);
  forkCommand(program);
  let out = "";
  const write = process.stdout.write;
  const before = process.exitCode;
  process.exitCode = 0;
  // Ours are texts; a test runner's own messages pass.
  process.stdout.write =
    ((chunk: unknown, ...rest: never[]) =>
      typeof chunk === "string"
        ? (out += chunk, true)
        : write.call(process.stdout, chunk as never, ...rest)) as typeof write;
  try {
    await program.parseAsync(args, { from: "user" });
    return { out, code: Number(process.exitCode ?? 0) };
  } finally {
    process.stdout.write = write;
    process.exitCode = before;
  }
}

const RESOURCES = ["socket.handshake", "socket.bus", "socket.coordinator", "keeper"];

/** A journal of two ranks, of which one says HELLO. */
async function journal(t: TestContext): Promise<string> {
  const path = mkdtempSync(join(tmpdir(), "muster-cli-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  const host = await Host.open({
    kernel: clusterKernel(),
    journal: new FileStore(path),
    drivers: [discard(Object.keys(effects), RESOURCES)] as never,
    configuration: configuration(),
    clock: new ManualClock(),
  });
  await host.submit("startup", {
    type: "bound",
    socket: "handshake",
    endpoints: { bind: "tcp://127.0.0.1:29550" },
  });
  await host.submit("rank/1/engine", { type: "hello", local: true, headless: false });
  await host.submit("rank/0/engine", { type: "nonsense" });
  await host.close();
  return path;
}
const SEGMENT = "000001-000000000001.jsonl";

test("log tail: the last records, one a line", async (t) => {
  const { out, code } = await muster("log", "tail", await journal(t), "-n", "2");
  assert.equal(code, 0);
  assert.deepEqual(out.trimEnd().split("\n"), [
    "     3  00:16:40.000  rank/1/engine       hello  local=true headless=false",
    "     4  00:16:40.000  rank/0/engine       nonsense",
  ]);
});

test("log show: one record with everything that it led to; filters; JSON lines", async (t) => {
  const path = await journal(t);
  const one = await muster("log", "show", path, "3");
  assert.match(one.out, /rank\/1\/engine {7}awaited ▸ connected/);
  assert.match(one.out, /→ message handshake\.init {2}3\.\d of rank\/1\/engine/);
  assert.match(one.out, /→ timer connectDeadline off/);
  const noted = await muster("log", "show", path, "--type", "nonsense", "--effects");
  assert.match(noted.out, /! unexpected: nonsense at rank\/0\/engine/);
  const json = await muster("log", "show", path, "--instance", "rank/1", "--json");
  assert.equal(JSON.parse(json.out).seq, 3);
  await assert.rejects(
    muster("log", "show", path, "40"),
    /there is no record 40: the journal has records 1 to 4/,
  );
});

test("log verify and repair: what is wrong, where, and what can be kept", async (t) => {
  const path = await journal(t);
  const good = await muster("log", "verify", path);
  assert.deepEqual([good.code, /✓ every record is what was written/.test(good.out)], [0, true]);
  const file = join(path, SEGMENT);
  const text = readFileSync(file, "latin1");
  writeFileSync(file, text.replace('"type":"hello"', '"type":"hallo"'), "latin1");
  const bad = await muster("log", "verify", path);
  assert.equal(bad.code, 1);
  assert.match(bad.out, /✗ after record 2 nothing can be believed:/);
  assert.match(
    bad.out,
    /000001-000000000001\.jsonl, line 4, byte \d+ {2}the line is not what was written/,
  );
  const plan = await muster("log", "repair", path);
  assert.equal(plan.code, 1);
  assert.match(plan.out, /the journal would end with record 2; --yes does it/);
  const done = await muster("log", "repair", path, "--yes");
  assert.deepEqual([done.code, /✓ done: the journal ends with record 2/.test(done.out)], [0, true]);
  assert.equal((await muster("log", "verify", path)).code, 0);
});

test("replay: the state at a record, the check, and where another run differs", async (t) => {
  const path = await journal(t);
  const at = await muster("replay", path, "--at", "2");
  assert.match(at.out, /after record 2\n {2}rank\/0\/engine, rank\/1\/engine {2}awaited/);
  const check = await muster("replay", path, "--check");
  assert.deepEqual([check.code, check.out.trimEnd().split("\n").at(-1)], [
    0,
    "✓ every state and every effect is the recorded one (4 records)",
  ]);
  const json = JSON.parse((await muster("replay", path, "--json")).out);
  assert.deepEqual([json.records, json.difference, json.system.seq], [4, null, 4]);

  const other = join(path, "fork");
  const forked = await muster("fork", path, "--at", "3", "-o", other);
  assert.match(forked.out, /records up to 3 of run/);
  assert.equal((await muster("replay", other, "--check")).code, 0);
  const diff = await muster("replay", path, "--diff", other);
  assert.deepEqual([diff.code, diff.out.split("\n")[0]], [1, "✗ one of them ends before record 4"]);
  const same = await muster("replay", path, "--diff", other, "--at", "3");
  assert.deepEqual([same.code, same.out], [0, "✓ 3 records are the same\n"]);
});

test("replay --check names the first record that is not what it was", async (t) => {
  const path = await journal(t);
  const { seal } = await import("../../src/journal/mod.ts");
  const file = join(path, SEGMENT);
  const lines = readFileSync(file, "latin1").split("\n");
  lines[3] = seal(lines[3]!.slice(0, -18).replace('"local":true', '"local":false')).trimEnd();
  writeFileSync(file, lines.join("\n"), "latin1");
  assert.equal((await muster("log", "verify", path)).code, 0, "its CRC is right");
  const { out, code } = await muster("replay", path, "--check");
  assert.equal(code, 1);
  assert.match(out, /✗ record 3 leads to another state than when it was recorded/);
  const json = await muster("replay", path, "--check", "--json");
  assert.equal(json.code, 1);
  assert.equal(JSON.parse(json.out).difference.seq, 3);
});

test("log export: one piece that is a journal again, or plain inputs", async (t) => {
  const path = await journal(t);
  const file = join(path, "all.jsonl");
  await muster("log", "export", path, "-o", file);
  assert.equal((await muster("replay", file, "--check")).code, 0);
  const inputs = JSON.parse((await muster("log", "export", path, "-f", "json")).out);
  assert.deepEqual(Object.keys(inputs[3]), ["seq", "at", "to", "event"]);
});

test("no journal there: said with where one may be", async () => {
  await assert.rejects(
    muster("replay", "/nowhere"),
    (e: JournalError) =>
      e.code === "journal-missing" && /there is no journal at \/nowhere/.test(e.message),
  );
});
