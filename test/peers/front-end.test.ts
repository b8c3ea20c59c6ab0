import assert from "node:assert/strict";
import { test } from "node:test";
import {
  finished,
  type FrontEnd,
  frontEnd,
  heard,
  pick,
  score,
  send,
} from "../../src/peers/front-end.ts";

test("ten requests before any statistics go to four engines as 3, 3, 2, 2", () => {
  let front = frontEnd(4);
  const got = [0, 0, 0, 0];
  for (let i = 0; i < 10; i++) {
    const engine = pick(front);
    got[engine]!++;
    front = send(front, engine).front;
  }
  assert.deepEqual(got, [3, 3, 2, 2]);
});

test("only the first request wakes, and names the engine that need not be woken", () => {
  const first = send(frontEnd(2), 1);
  assert.deepEqual(first.wake, { exclude: 1, wave: 0 });
  assert.equal(send(first.front, 0).wake, null);
});

test("a publish without counts moves wave and run state and keeps the loads", () => {
  const loads = [{ waiting: 1, running: 2 }, { waiting: 0, running: 0 }];
  const counted = heard(frontEnd(2), { counts: loads, wave: 3, running: true });
  const moved = heard(counted, { counts: null, wave: 4, running: false });
  assert.deepEqual([moved.wave, moved.running, moved.loads], [4, false, loads]);
});

test("a front-end of later ranks cuts out its own range", () => {
  const counts = [1, 2, 3, 4].map((running) => ({ waiting: 0, running }));
  const front = heard(frontEnd(2), { counts, wave: 0, running: true }, 2);
  assert.deepEqual(front.loads.map((l) => l.running), [3, 4]);
});

test("waiting requests weigh more on a full cache", () => {
  const counts = [
    { waiting: 2, running: 0, kvCacheUsage: 1 },
    { waiting: 2, running: 4, kvCacheUsage: 0.4 },
  ];
  const front = heard(frontEnd(2), { counts, wave: 0, running: true });
  assert.deepEqual([score(front, 0), score(front, 1)], [8, 6]);
  assert.equal(pick(front), 1);
});

test("what a front-end has under way counts until it is done", () => {
  let front: FrontEnd = frontEnd(2, 2);
  front = send(front, 0).front;
  assert.equal(score(front, 0), 2, "two clients are expected to do alike");
  assert.equal(score(finished(front, 0), 0), 0);
});
