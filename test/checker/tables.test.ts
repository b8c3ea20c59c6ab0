/** The parts of the search that remember: packed answers and tables of states. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Columns } from "../../src/checker/columns.ts";
import { Layout } from "../../src/checker/layout.ts";
import { NarrowTable } from "../../src/checker/narrow-table.ts";
import { PackedDecisions } from "../../src/checker/packed-decisions.ts";
import { StateTable } from "../../src/checker/state-table.ts";

for (const words of [2, 3, 5]) {
  test(`a table of states of ${words} words finds each under its number, however often it grew`, () => {
    const table = words === 2 ? new NarrowTable(4) : new StateTable(words, 4);
    const state = (i: number): Int32Array =>
      Int32Array.from({ length: words }, (_, k) => k === i % words ? i : 0);
    for (let i = 0; i < 5000; i++) assert.equal(table.add(state(i), i - 1, i), ~i);
    for (let i = 0; i < 5000; i++) {
      assert.equal(table.find(state(i)), i);
      assert.equal(table.add(state(i), 0, 0), i);
    }
    assert.equal(table.count, 5000);
    assert.equal(table.find(state(5000)), -1);
    assert.deepEqual([table.parent[4999], table.ordinal[4999]], [4998, 4999]);
  });
}

test("what is known stays known when a column is given more room, and new values are told apart", () => {
  const columns = new Columns();
  const [a, b] = [columns.of("a"), columns.of("b")];
  for (let value = 1; value < 4; value++) columns.admit(a, value);
  columns.admit(b, 1);
  const layout = new Layout(columns);
  const decisions = new PackedDecisions(layout);
  const packed = (values: number[]): Int32Array => {
    const words = new Int32Array(layout.words);
    layout.pack(values, words);
    return words;
  };
  assert.equal(decisions.learn(packed([3, 1]), 0, [a, b], () => 7), 7);
  const before = layout.fieldsOf(a).length;
  for (let value = 4; value < 200; value++) columns.admit(a, value);
  assert.ok(layout.place(a, 200));
  decisions.guard(layout.fieldsOf(a).slice(before));
  const [first, second] = packed([3, 1]);
  assert.equal(decisions.find(packed([3, 1]), 0), 7);
  assert.equal(decisions.findNarrow(first!, second!), 7);
  assert.equal(decisions.find(packed([199, 1]), 0), 0);
  assert.equal(decisions.learn(packed([199, 1]), 0, [a, b], () => 8), 8);
  assert.equal(decisions.learn(packed([2, 1]), 0, [a, b], () => 9), 9);
  assert.deepEqual([199, 3, 2].map((v) => decisions.find(packed([v, 1]), 0)), [8, 7, 9]);
  assert.equal(decisions.find(packed([199, 0]), 0), 0);
});

test("values of which the same can be said have one answer, found at the second value by what is known of the first", () => {
  const columns = new Columns();
  const [a, b] = [columns.of("a"), columns.of("b")];
  for (let value = 1; value < 100; value++) columns.admit(a, value);
  columns.admit(b, 1);
  const odd = columns.aspect(a, (value) => value % 2);
  const layout = new Layout(columns);
  const decisions = new PackedDecisions(layout);
  const packed = (values: number[]): Int32Array => {
    const words = new Int32Array(layout.words);
    layout.pack(values, words);
    return words;
  };
  const reads = [odd.number, b];
  assert.equal(decisions.learn(packed([3, 1]), 0, reads, () => 7), 7);
  assert.equal(decisions.learn(packed([4, 1]), 0, reads, () => 8), 8);
  assert.equal(decisions.learn(packed([97, 1]), 0, reads, () => assert.fail()), 7);
  assert.equal(decisions.learn(packed([97, 0]), 0, reads, () => 9), 9);
  assert.deepEqual([97, 3].map((v) => decisions.find(packed([v, 0]), 0)), [9, 9]);
  assert.equal(decisions.find(packed([5, 1]), 0), 0, "a value that was not met is asked for");
});
