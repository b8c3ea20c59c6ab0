import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeRoom, moveToEarlier } from "../../src/journal/stores/earlier.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { type Header, JournalReader } from "../../src/journal/mod.ts";

function scratch(body: (directory: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const directory = mkdtempSync(join(tmpdir(), "muster-earlier-"));
    try {
      await body(directory);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  };
}

const header = (run: string, fence: number, first: number): Header => ({
  journal: "muster",
  format: 1,
  run,
  fence,
  first,
  at: 0,
  machines: {},
});

/** A run of two owners, with a snapshot and the output of its processes. */
async function record(directory: string, run: string): Promise<void> {
  let seq = 0;
  for (let owner = 0; owner < 2; owner++) {
    const journal = await new FileStore(directory).own();
    await journal.begin(header(run, journal.fence, seq + 1));
    seq++;
    const head = { seq, fence: journal.fence, at: seq, to: "a", digest: "0".repeat(32) };
    journal.append(head, '{"type":"b"}');
    journal.write();
    await journal.close();
  }
  writeFileSync(join(directory, "snapshot-000000000001.json"), "a cache");
  mkdirSync(join(directory, "logs"), { recursive: true });
  writeFileSync(join(directory, "logs", "engine-0.log"), "its last words\n");
}

const MOVED = /\.jsonl$|^snapshot-|^logs$/;
const runsIn = (directory: string): string[] => readdirSync(join(directory, "earlier")).sort();

test(
  "a run that has ended is moved with all that is its own, and the next owner has a higher fence",
  scratch(async (directory) => {
    await record(directory, "first");
    assert.equal(await makeRoom(directory, () => true), join(directory, "earlier", "first"));
    assert.deepEqual(readdirSync(join(directory, "earlier", "first")).sort(), [
      "000001-000000000001.jsonl",
      "000002-000000000002.jsonl",
      "logs",
      "snapshot-000000000001.json",
    ]);
    const moved = new JournalReader(new FileStore(join(directory, "earlier", "first")).segments());
    assert.deepEqual([moved.header?.run, moved.heads.length], ["first", 2]);
    assert.deepEqual(new FileStore(directory).segments(), []);
    const next = await new FileStore(directory).own();
    assert.equal(next.fence, 4);
    await next.close();
  }),
);

test(
  "a run that goes on stays, and an empty directory has nothing to move",
  scratch(async (directory) => {
    assert.equal(await makeRoom(directory, () => assert.fail("there is no run")), undefined);
    await record(directory, "first");
    assert.equal(await makeRoom(directory, () => false), undefined);
    assert.equal(new FileStore(directory).segments().length, 2);
    assert.equal(existsSync(join(directory, "earlier")), false);
  }),
);

test(
  "whoever holds the journal keeps it",
  scratch(async (directory) => {
    await record(directory, "first");
    const holder = await new FileStore(directory).own();
    await assert.rejects(makeRoom(directory, () => true), { code: "journal-locked" });
    await holder.close();
    assert.equal(new FileStore(directory).segments().length, 2);
  }),
);

test(
  "a crash at any moment of the move loses nothing, and the next start completes it",
  scratch(async (directory) => {
    const points: string[] = [];
    await record(directory, "watched");
    await moveToEarlier(directory, "watched", (point) => points.push(point));
    assert.equal(points.length, 5);
    for (const [i, point] of points.entries()) {
      const run = `run-${i}`;
      await record(directory, run);
      let seen = 0;
      await assert.rejects(
        moveToEarlier(directory, run, () => {
          if (seen++ === i) throw new Error(`crash at ${point}`);
        }),
        /crash at/,
      );
      // Only the last crash comes after all of it.
      await makeRoom(directory, () => assert.fail("it was asked before the crash"));
      assert.deepEqual(readdirSync(directory).filter((name) => MOVED.test(name)), []);
      assert.equal(readdirSync(join(directory, "earlier", run)).length, 4);
    }
  }),
);

test(
  "the last eight runs are kept",
  scratch(async (directory) => {
    for (let i = 0; i < 10; i++) {
      await record(directory, `run-${i}`);
      await moveToEarlier(directory, `run-${i}`);
      // Directories that were changed within one tick of the file system's clock have no order.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.deepEqual(runsIn(directory), [2, 3, 4, 5, 6, 7, 8, 9].map((i) => `run-${i}`));
  }),
);
