import assert from "node:assert/strict";
import { test } from "node:test";
import { firstDifference } from "../../src/console/model/compare.ts";
import { changesOf } from "../../src/console/model/difference.ts";
import { linesOf, readDropped } from "../../src/console/model/load.ts";
import { whatNext } from "../../src/console/model/next.ts";
import { ALL_ROWS, rowsOf } from "../../src/console/model/rows.ts";
import { MARK, RunHistory } from "../../src/console/model/run.ts";
import { verdictOf } from "../../src/console/model/verdict.ts";
import { JournalError, type JournalRecord } from "../../src/journal/mod.ts";
import { stateDigest, SYSTEM } from "../../src/kernel/mod.ts";
import { clusterKernel } from "../../src/machines/mod.ts";
import { failedRun, formedRun, formingRun, longRun, type RecordedRun } from "./fixture.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const records = (run: RecordedRun): readonly JournalRecord[] =>
  readDropped([{ name: "a.jsonl", bytes: bytes(run.text()) }]).records;

function historyOf(run: RecordedRun): RunHistory {
  const history = new RunHistory(clusterKernel());
  history.append(records(run));
  return history;
}

test("every moment of a run is the fold of its prefix, whichever way it is reached", () => {
  const run = longRun(1700, 3);
  const all = records(run);
  const history = historyOf(run);
  for (const seq of [0, 1, 7, 499, 500, 501, 1000, 1234, 1699, 1700]) {
    const plain = new RunHistory(clusterKernel());
    plain.append(all.slice(0, seq));
    const [a, b] = [history.at(seq), plain.at(seq)];
    assert.equal(stateDigest(a.system), stateDigest(b.system), `state at ${seq}`);
    assert.deepEqual(a.status, b.status, `status at ${seq}`);
    assert.deepEqual(a.tracker.overlay("engine"), b.tracker.overlay("engine"), `counts at ${seq}`);
    assert.equal(a.applied?.input.seq, seq === 0 ? undefined : seq);
  }
  assert.equal(history.divergence, undefined);
});

test("records that come again after a reconnect are skipped, later ones go on", () => {
  const all = records(formedRun(3));
  const history = new RunHistory(clusterKernel());
  history.append(all.slice(0, 6));
  history.append(all.slice(3));
  assert.equal(history.last, all.length);
  assert.equal(history.at(history.last).status.phase, "formed");
});

test("problems are marked and found forwards and backwards", () => {
  const run = failedRun();
  const history = historyOf(run);
  assert.deepEqual(history.marks.flatMap((m, i) => m & MARK.failure ? [i + 1] : []), [21]);
  assert.equal(history.seek(1, MARK.failure, 1), 21);
  assert.equal(history.seek(21, MARK.failure, 1), undefined);
  run.say("rank/0/engine", { type: "mystery" });
  assert.equal(historyOf(run).seek(22, MARK.note, -1), undefined);
  assert.equal(historyOf(run).seek(21, MARK.note, 1), 22);
});

test("a record that leads elsewhere than when it was written is said; the fold goes on with today's charts", () => {
  const all = records(formedRun(2)).map((r) => r.seq === 9 ? { ...r, digest: "0".repeat(32) } : r);
  const history = new RunHistory(clusterKernel());
  history.append(all);
  assert.equal(history.divergence?.seq, 9);
  assert.match(history.divergence!.text, /lead to something else than was recorded/);
  assert.equal(history.at(Infinity).status.phase, "formed");
});

test("a record that cannot be applied ends the fold, with the reason", () => {
  const all = records(formedRun(2));
  const history = new RunHistory(clusterKernel());
  history.append([
    ...all.slice(0, 5),
    { ...all[5]!, to: SYSTEM, event: { type: "configured" } },
    ...all.slice(6),
  ]);
  assert.deepEqual([history.divergence?.seq, history.divergence?.ends], [6, true]);
  assert.match(history.divergence!.text, /^record 6 cannot be applied by today's charts: /);
  assert.equal(history.at(99).seq, 5);
  assert.equal(history.records.length, all.length);
});

test("the verdict says in one sentence how it stands, and what to do", () => {
  const at = (run: RecordedRun) => {
    const moment = historyOf(run).at(Infinity);
    return verdictOf(moment.status, moment.at);
  };
  const failed = at(failedRun());
  assert.deepEqual([failed.level, failed.title, failed.seq], ["bad", "Failed", 21]);
  assert.match(failed.sentence, /^Rank 4 \(process engine-4, pid 4704\) was killed by SIGKILL/);
  assert.match(failed.remedy!, /^Find out who killed it/);
  const forming = at(formingRun());
  assert.equal(forming.level, "working");
  assert.equal(
    forming.sentence,
    "4 of 6 ranks are ready after 12.3 s; waiting for HELLO of rank 5 and READY of rank 4.",
  );
  assert.deepEqual(forming.also, [
    "3 × a stranger on the handshake socket (http: GET / HTTP/1.1).",
  ]);
  assert.deepEqual(at(formedRun(8)).sentence, "All 8 ranks are ready since 0 ms.");
});

test("rows: every word must occur, problems can be singled out, pauses are one line", () => {
  const history = historyOf(failedRun());
  const rows = (part: Partial<typeof ALL_ROWS>) =>
    rowsOf(history.records, history.marks, { ...ALL_ROWS, ...part });
  assert.equal(rows({}).length, 21 + 2);
  assert.deepEqual(rows({}).filter((r) => "gap" in r), [
    { gap: "7 s later", before: 16 },
    { gap: "12.5 s later", before: 21 },
  ]);
  assert.deepEqual(rows({ text: "rank/3 READY", gaps: false }), [{ index: 19 }]);
  assert.deepEqual(rows({ problems: true, gaps: false }), [{ index: 20 }]);
  assert.deepEqual(rows({ text: "sigkill", gaps: false }), [{ index: 20 }]);
});

test("what a record changed: states and members of contexts, by path", () => {
  const history = historyOf(formingRun());
  const changes = changesOf(history.at(20).applied!);
  assert.deepEqual(changes[0], {
    instance: "rank/3/engine",
    what: "state",
    before: "connected",
    after: "ready",
  });
  assert.ok(changes.some((c) => c.instance === "startup" && c.what === "blocks.sum"));
});

test("what next: open transitions with their guards, and deadlines with the time left", () => {
  const moment = historyOf(formingRun()).at(Infinity);
  const next = whatNext(moment);
  const four = next.find((n) => n.instance === "rank/4/engine")!;
  assert.equal(four.state, "connected");
  assert.ok(
    four.possible.some((p) =>
      p.when === "ready" && p.guard === "declaresRight" && p.leads === "ready"
    ),
  );
  assert.ok(four.possible.some((p) => /^after readyDeadline \(in 19 min/.test(p.when)));
});

test("two runs: the first difference in words, whatever its kind", () => {
  const a = records(failedRun());
  assert.equal(firstDifference(a, a), undefined);
  assert.deepEqual(
    firstDifference(a, a.slice(0, 20))?.text,
    "The second run ends before record 21.",
  );
  const b = a.map((r) => r.seq === 20 ? { ...r, event: { ...r.event, blocks: 1 } } : r);
  assert.equal(
    firstDifference(a, b)?.text,
    "Record 20, ready to rank/3/engine: blocks is 7003 and 1.",
  );
  const c = a.map((r) => r.seq === 12 ? { ...r, digest: "f".repeat(32) } : r);
  assert.equal(firstDifference(a, c)?.kind, "result");
});

test("dropped files: other files are passed over, a torn end is told, damage has its place", () => {
  const text = failedRun().text();
  const torn = readDropped([
    { name: "1.jsonl", bytes: bytes(text.slice(0, -20)) },
    { name: "owner-000001", bytes: bytes("{}") },
  ]);
  assert.equal(torn.records.length, 20);
  assert.match(torn.remarks[0]!, /^The last \d+ bytes of 1\.jsonl \(line 22\) were being written/);
  assert.throws(
    () => readDropped([{ name: "x.txt", bytes: bytes("hello") }]),
    /no journal among x\.txt/,
  );
  const damaged = text.replace('"type":"strangers"', '"type":"strengers"');
  assert.throws(
    () => readDropped([{ name: "1.jsonl", bytes: bytes(damaged) }]),
    (error) => error instanceof JournalError && error.code === "journal-damaged",
  );
});

test("lines come out of a stream as they were, wherever it is cut", async () => {
  const text = "erste Zeile\nzweite: äöü ✗\n\nletzte ohne Ende";
  const all = bytes(text);
  for (let size = 1; size < all.length; size++) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let i = 0; i < all.length; i += size) controller.enqueue(all.slice(i, i + size));
        controller.close();
      },
    });
    const lines: string[] = [];
    for await (const line of linesOf(body)) lines.push(line);
    assert.deepEqual(lines, text.split("\n"), `in pieces of ${size}`);
  }
});
