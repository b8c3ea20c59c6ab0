/** Real processes that write one journal: killed again and again, and two at once. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test, type TestContext } from "node:test";
import { encodeRecord, JournalError, JournalReader } from "../../src/journal/mod.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { program } from "./program.ts";

/** `npm run test:crash` says 200. */
const ROUNDS = Number(process.env["MUSTER_CRASH_ROUNDS"] ?? 6);
const LIMIT = { timeout: 1_800_000 };
const WRITER = await program("writer.ts");

class Writer {
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
  out = "";
  #heard: (() => void)[] = [];

  constructor(directory: string, ...more: string[]) {
    const [command, ...rest] = WRITER;
    this.child = spawn(command!, [...rest, directory, ...more], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.child.stdout!.on("data", (text) => {
      this.out += text;
      for (const heard of this.#heard.splice(0)) heard();
    });
    this.ended = new Promise((resolve) => this.child.on("close", () => resolve()));
  }

  async said(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.out)) {
      await Promise.race([
        new Promise<void>((resolve) => this.#heard.push(resolve)),
        this.ended.then(() => {
          if (!pattern.test(this.out)) throw new Error(`ended without ${pattern}: ${this.out}`);
        }),
      ]);
    }
  }

  signal(signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
    const { exitCode, signalCode } = this.child;
    assert.ok(
      exitCode === null && signalCode === null,
      `it ended by itself: ${this.out.slice(-300)}`,
    );
    process.kill(this.child.pid!, signal);
  }

  /** The last record that it called safe. */
  get safe(): number {
    return Number(/(?:^|\n)safe (\d+)\n[^\n]*$/.exec(this.out)?.[1] ?? 0);
  }
}

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "muster-owners-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
function recordsIn(path: string): { seq: number; fence: number }[] {
  const reader = new JournalReader(new FileStore(path).segments());
  return [...reader.records()].map(({ record }) => {
    assert.equal(record.event["seq"], record.seq);
    assert.equal((record.event["padding"] as string).length, (record.seq * 37) % 300);
    return { seq: record.seq, fence: record.fence };
  });
}

test(
  `${ROUNDS} rounds of SIGKILL on a writing process lose no record that was called safe`,
  LIMIT,
  async (t) => {
    const path = directory(t);
    let torn = 0;
    let safe = 0;
    for (let round = 1; round <= ROUNDS; round++) {
      const writer = new Writer(path);
      await writer.said(/safe \d+\n/);
      await new Promise((resolve) => setTimeout(resolve, (round * 13) % 40));
      writer.signal("SIGKILL");
      await writer.ended;
      assert.ok(writer.safe > safe, `round ${round} wrote something`);
      safe = writer.safe;
      const reader = new JournalReader(new FileStore(path).segments());
      for (const _ of reader.records());
      torn += reader.leftOut.filter((l) => l.why === "torn").length;
      assert.ok(
        reader.seq >= safe,
        `round ${round}: record ${safe} was called safe, ${reader.seq} is last`,
      );
      assert.equal(reader.header!.fence, round);
    }
    const records = recordsIn(path);
    assert.deepEqual(records.map((r) => r.seq), records.map((_, i) => i + 1));
    t.diagnostic(`${records.length} records by ${ROUNDS} owners, ${torn} torn ends`);
  },
);

test(
  "an owner that was stopped, replaced and continued finds that it has lost the journal",
  LIMIT,
  async (t) => {
    const path = directory(t);
    const first = new Writer(path);
    await first.said(/safe \d+\n/);
    first.signal("SIGSTOP");
    await assert.rejects(
      new FileStore(path).own(),
      (e: JournalError) =>
        e.code === "journal-locked" && e.message.includes(`process ${first.child.pid}`),
      "a stopped holder lives",
    );
    const second = new Writer(path, "force");
    await second.said(/safe \d+\n/);
    first.signal("SIGCONT");
    await first.ended;
    assert.match(first.out, /failed journal-lost\n$/);
    second.signal("SIGKILL");
    await second.ended;

    const records = recordsIn(path);
    const from = Number(/owns 2 from (\d+)/.exec(second.out)![1]);
    assert.deepEqual(records.map((r) => r.seq), records.map((_, i) => i + 1));
    assert.ok(records.filter((r) => r.fence === 1).every((r) => r.seq < from));
    assert.ok(records.some((r) => r.fence === 2 && r.seq === second.safe));
  },
);

test("what the replaced owner still writes into its own segment is left out", LIMIT, async (t) => {
  const path = directory(t);
  const first = new Writer(path);
  await first.said(/safe \d+\n/);
  first.signal("SIGKILL");
  await first.ended;
  const kept = recordsIn(path).length;
  const second = new Writer(path);
  await second.said(/safe \d+\n/);
  second.signal("SIGKILL");
  await second.ended;
  const before = recordsIn(path);

  const segment = join(path, readdirSync(path).find((name) => name.startsWith("000001-"))!);
  const late = { seq: kept + 1, fence: 1, at: 9, to: "x", digest: "0".repeat(32) };
  appendFileSync(segment, encodeRecord(late, '{"type":"written","late":true}'));
  assert.deepEqual(recordsIn(path), before);
});

test("a holder of another boot is dead, one of another machine may live", async (t) => {
  const path = directory(t);
  const journal = await new FileStore(path).own();
  await journal.close();
  const owner = (over: object) =>
    writeFileSync(
      join(path, "owner-000001"),
      JSON.stringify({ ...HOLDER, fence: 1, released: false, ...over }),
    );
  const { self } = await import("../../src/journal/stores/holder.ts");
  const HOLDER = self();
  const taken = async () => {
    const again = await new FileStore(path).own();
    const { fence } = again;
    await again.close();
    rmSync(join(path, `owner-00000${fence}`));
    return fence;
  };
  owner({});
  await assert.rejects(taken(), /which runs: stop it first/);
  owner({ start: "1" });
  assert.equal(await taken(), 2, "the pid was given to another process");
  owner({ boot: "another" });
  assert.equal(await taken(), 2, "of another boot");
  owner({ host: "elsewhere" });
  await assert.rejects(taken(), /cannot be told from here whether it runs/);
  owner({ namespace: "pid:[1]" });
  await assert.rejects(taken(), /cannot be told from here/);
  writeFileSync(join(path, "owner-000001"), "half");
  await assert.rejects(taken(), /does not say who holds the journal/);
});
