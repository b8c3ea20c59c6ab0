import assert from "node:assert/strict";
import { test } from "node:test";
import { LoadTable } from "../../src/peers/load-table.ts";

const report = (wave: number, step: number, waiting = 0, running = 0) => ({
  wave,
  step,
  waiting,
  running,
});

test("what is published belongs to one step: the rows before a newer step's first report", () => {
  const table = new LoadTable(2, true);
  table.record(0, report(0, 1, 1), 10);
  table.record(1, report(0, 1, 2), 10);
  table.record(0, report(0, 2, 5), 20);
  assert.equal(table.stepComplete, true);
  assert.deepEqual(table.take().map((r) => r.waiting), [1, 2]);
  assert.equal(table.changed, true, "the newer step is still to be published");
  assert.deepEqual(table.take().map((r) => r.waiting), [5, 2]);
  assert.equal(table.changed, false);
});

test("a report behind the last step is counted and taken all the same", () => {
  const table = new LoadTable(2, true);
  table.record(0, report(3, 7), 1);
  assert.equal(table.record(1, report(3, 6, 9), 1), "late");
  assert.equal(table.late, 1);
  assert.equal(table.take()[1]?.waiting, 9);
});

test("waves order before steps", () => {
  const table = new LoadTable(1, true);
  table.record(0, report(1, 1000), 1);
  assert.equal(table.record(0, report(2, 0), 1), "taken");
});

test("a rank that is not in the table is dropped and counted", () => {
  const table = new LoadTable(2, true);
  for (const engine of [2, 65_535, -1, 0.5]) {
    assert.equal(table.record(engine, report(0, 0), 1), "no-such-engine");
  }
  assert.equal(table.dropped, 4);
  assert.equal(table.changed, false);
});

test("growing appends empty rows, shrinking drops the last, repeats change nothing", () => {
  const table = new LoadTable(2, true);
  table.record(1, report(0, 0, 4), 5);
  table.resize(4);
  table.resize(4);
  assert.deepEqual(table.rows(8).map((r) => [r.waiting, r.ageMs]), [
    [0, null],
    [4, 3],
    [0, null],
    [0, null],
  ]);
  table.resize(1);
  assert.equal(table.size, 1);
  assert.equal(table.record(1, report(0, 1), 9), "no-such-engine");
});

test("without waves reports have no order", () => {
  const table = new LoadTable(1, false);
  table.record(0, report(0, 9), 1);
  assert.equal(table.record(0, report(0, 1), 1), "taken");
  assert.equal(table.stepComplete, false);
});
