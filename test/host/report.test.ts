import assert from "node:assert/strict";
import { test } from "node:test";
import { recoveredText, type RecoveryReport, reportText } from "../../src/host/mod.ts";

const report: RecoveryReport = {
  run: "r1",
  fence: 3,
  fresh: false,
  from: 4000,
  replayed: 711,
  tookMs: 9,
  downMs: 12_340,
  leftOut: [
    { place: { file: "a.jsonl", line: 9, offset: 800 }, bytes: 55, why: "torn" },
    { place: { file: "b.jsonl", line: 2, offset: 90 }, bytes: 1, why: "lower-fence" },
  ],
  held: 3,
  overdue: 1,
  owed: [
    { call: "4700.0", instance: "process/x", effect: "process.spawn", done: "repeated" },
    { call: "4701.0", instance: "rank/1/scaling/e", effect: "engine.call", done: "asked" },
  ],
  forgetful: ["status"],
};

test("the report says what was replayed, in what time, what was cut and what is owed", () => {
  assert.equal(
    reportText(report),
    `run r1 goes on (fence 3) after 12.3 s away
  replayed   711 inputs in 9 ms, from the state after input 4000
  left out   55 bytes of a.jsonl from byte 800: a record that was never completed
  left out   1 byte of b.jsonl from byte 90: written after the journal was taken over
  restored   3 resources
  owed       2 calls
    4700.0 process.spawn of process/x: repeated
    4701.0 engine.call of rank/1/scaling/e: asked
  the view "status" begins anew: it cannot read what the checkpoint has of it`,
  );
  assert.equal(reportText({ ...report, fresh: true }), "run r1 begins (fence 3)");
});

test("after the grace one line says what was done", () => {
  assert.equal(
    recoveredText(report),
    "recovered: 1 timer overdue, 2 calls owed: process.spawn of process/x (4700.0) repeated, " +
      "engine.call of rank/1/scaling/e (4701.0) asked",
  );
  assert.equal(
    recoveredText({ ...report, overdue: 0, owed: [] }),
    "recovered: 0 timers overdue, 0 calls owed",
  );
});
