/** Journals that earlier versions wrote: today's must read them, and come to the same. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { differenceText, JournalReader, replay, verify } from "../../src/journal/mod.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { clusterKernel } from "../../src/machines/mod.ts";
import { StatusFold } from "../../src/view/mod.ts";
import { kernel } from "../kernel/fixture.ts";

const golden = (name: string) => new FileStore(`test/golden/${name}`).segments();

test("format 1: a checkpoint, three owners, escaped text, and every digest as it was recorded", () => {
  const segments = golden("format-1");
  const { problems, records, seq, leftOut } = verify(segments);
  assert.deepEqual(leftOut.map((l) => [l.place.line, l.why]), [[4, "torn"]]);
  assert.deepEqual([problems, records, seq], [[], 7, 10]);
  const reader = new JournalReader(segments);
  assert.equal(reader.checkpoint!.configuration["note"], "größer \u{1F600}");
  assert.deepEqual(reader.heads.map((h) => [h.header.fence, h.header.first]), [
    [1, 4],
    [2, 5],
    [3, 9],
  ]);
  const { fold, difference } = replay(kernel(), reader, { check: true });
  assert.equal(difference, undefined);
  const states = [...fold.system().instances].map((i) => [i.id, i.state.snapshot.value]);
  assert.deepEqual(states, [
    ["startup", "failed"],
    ["rank/0/engine", "ready"],
    ["rank/1/engine", "connected"],
    ["rank/2/engine", "late"],
  ]);
});

test("a cluster of version 0.1 forms up, runs a wave and stops, and every digest is as it was recorded", () => {
  const fold = new StatusFold();
  const { difference, records } = replay(
    clusterKernel(),
    new JournalReader(golden("cluster-0.1")),
    {
      check: true,
      each: (applied) => fold.apply(applied),
    },
  );
  assert.equal(
    difference,
    undefined,
    difference &&
      `${differenceText(difference)}. Runs that were recorded before cannot be gone on with by ` +
        "these charts. Where that is meant: say so in CHANGELOG.md, remove test/golden/cluster-0.1 and run scripts/golden.ts",
  );
  assert.equal(records, 27);
  const { phase, blocks, failure } = fold.status();
  assert.deepEqual([phase, blocks, failure], ["stopped", { sum: 33, min: 10, max: 12 }, null]);
});
