/** What happens to files: nothing that was not written is believed, and nothing is lost in silence. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  asciiJson,
  encodeHeader,
  encodeRecord,
  FORMAT,
  type Header,
  JournalError,
  JournalReader,
  type JournalRecord,
  type LeftOut,
  seal,
  type Segment,
} from "../../src/journal/mod.ts";
import type { KernelEvent } from "../../src/kernel/mod.ts";

const DIGEST = "0123456789abcdef0123456789abcdef";
const NAME = "000001-000000000001.jsonl";

const header = (over: Partial<Header> = {}): string =>
  encodeHeader({
    journal: "muster",
    format: FORMAT,
    run: "r",
    fence: 1,
    first: 1,
    at: 1000,
    machines: {},
    ...over,
  });

function line(seq: number, event: KernelEvent, fence = 1): string {
  return encodeRecord(
    { seq, fence, at: 1000 + seq, to: `rank/${seq % 4}/engine`, digest: DIGEST },
    asciiJson(event),
  );
}

const EVENTS: readonly KernelEvent[] = [
  { type: "hello", local: true },
  { type: "ready", blocks: 20_000, hash: "größer \u{1F600}" },
  { type: "malformed", reason: 'a "quoted" \\ reason' },
  { type: "exited", code: null, tail: ["last", "words"] },
];
const lines = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => line(i + 1, EVENTS[i % EVENTS.length]!));

const ascii = (text: string): Uint8Array => Uint8Array.from(text, (c) => c.charCodeAt(0));
const segment = (bytes: Uint8Array, name = NAME): Segment => ({
  name,
  bytes: bytes.length,
  // Small chunks, so that lines lie across their borders.
  *chunks(from = 0) {
    for (let i = from; i < bytes.length; i += 1000) yield bytes.subarray(i, i + 1000);
  },
});

interface Read {
  readonly records: readonly JournalRecord[];
  readonly leftOut: readonly LeftOut[];
  readonly error?: JournalError;
}
function read(...segments: Segment[]): Read {
  const records: JournalRecord[] = [];
  let reader: JournalReader | undefined;
  try {
    reader = new JournalReader(segments);
    for (const { record } of reader.records()) records.push(record);
    return { records, leftOut: reader.leftOut };
  } catch (error) {
    if (!(error instanceof JournalError)) throw error;
    return { records, leftOut: reader?.leftOut ?? [], error };
  }
}

/** Detected, or harmless, or the end was cut and that is said: everything else would be believing what was not written. */
function assertHonest(found: Read, written: readonly JournalRecord[], what: string): string {
  assert.deepEqual(found.records, written.slice(0, found.records.length), what);
  if (found.error !== undefined) {
    assert.match(found.error.code, /^journal-(damaged|format)$/, what);
    return "detected";
  }
  if (found.records.length < written.length) {
    assert.equal(found.leftOut.at(-1)?.why, "torn", what);
    return "cut";
  }
  return "harmless";
}

test("every torn prefix of the last three records is cut at the last whole one, and said", () => {
  const all = lines(12);
  const whole = read(segment(ascii(header() + all.join("")))).records;
  const kept = header() + all.slice(0, 9).join("");
  const tail = all.slice(9).join("");
  for (let cut = 0; cut <= tail.length; cut++) {
    const { records, leftOut, error } = read(segment(ascii(kept + tail.slice(0, cut))));
    assert.equal(error, undefined);
    const ends = [0, ...all.slice(9).map((_, i) => all.slice(9, 10 + i).join("").length)];
    const complete = ends.filter((end) => end <= cut).length - 1;
    assert.deepEqual(records, whole.slice(0, 9 + complete));
    const torn = cut - ends[complete]!;
    assert.deepEqual(
      leftOut.map(({ place, bytes, why }) => [place.line, bytes, why]),
      torn === 0 ? [] : [[11 + complete, torn, "torn"]],
    );
  }
});

test("every flipped bit of a 4 KiB journal is detected, cut with a report, or harmless", (t) => {
  let text = header();
  for (let seq = 1; text.length < 4096; seq++) text += line(seq, EVENTS[seq % EVENTS.length]!);
  const bytes = ascii(text);
  const written = read(segment(bytes)).records;
  const outcomes: Record<string, number> = {};
  for (let at = 0; at < bytes.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      bytes[at]! ^= 1 << bit;
      const outcome = assertHonest(read(segment(bytes)), written, `byte ${at}, bit ${bit}`);
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      bytes[at]! ^= 1 << bit;
    }
  }
  t.diagnostic(`${bytes.length} bytes, ${8 * bytes.length} flips: ${JSON.stringify(outcomes)}`);
  assert.equal(outcomes["harmless"], undefined);
});

test("random cuts, overwritten bytes and duplicated tails never make a record that was not written", () => {
  const text = header() + lines(30).join("");
  const written = read(segment(ascii(text))).records;
  const at = fc.nat(text.length);
  fc.assert(
    fc.property(
      fc.oneof(
        fc.record({ kind: fc.constant("cut" as const), from: at, to: at }),
        fc.record({ kind: fc.constant("again" as const), from: at, to: fc.constant(0) }),
        fc.record({ kind: fc.constant("bytes" as const), from: at, to: fc.nat(255) }),
      ),
      ({ kind, from, to }) => {
        const damaged = kind === "cut"
          ? text.slice(0, Math.min(from, to)) + text.slice(Math.max(from, to))
          : kind === "again"
          ? text + text.slice(from)
          : text.slice(0, from) + String.fromCharCode(to) + text.slice(from + 1);
        const found = read(segment(ascii(damaged)));
        // A header that is cut away with everything behind it is a journal that never began.
        if (found.records.length === 0 && found.error === undefined) return;
        assertHonest(found, written, `${kind} ${from} ${to}`);
      },
    ),
    { numRuns: 3000, seed: 42 },
  );
});

test("damage in the middle names file, line and byte offset", () => {
  const all = lines(5);
  const before = header().length + all[0]!.length + all[1]!.length;
  const text = header() + all.join("");
  const broken = text.slice(0, before + 40) + "#" + text.slice(before + 41);
  const { error } = read(segment(ascii(broken)));
  assert.deepEqual(error!.place, { file: NAME, line: 4, offset: before });
  assert.match(error!.message, /its CRC does not match \(000001-.*jsonl, line 4, byte \d+\)/);
});

test("an unknown format is refused with what to do", () => {
  const { error } = read(segment(ascii(header({ format: 7 }))));
  assert.equal(error!.code, "journal-format");
  assert.match(error!.message, /has format 7, this version reads 1/);
});

test("records of a lower fence do not count from where the next owner began", () => {
  const [a, b, c, d] = lines(4) as [string, string, string, string];
  const first = segment(ascii(header() + a + b + c + d + "{half"), NAME);
  const next = segment(
    ascii(header({ fence: 2, first: 3 }) + line(3, { type: "mine" }, 2)),
    "000002-000000000003.jsonl",
  );
  const { records, leftOut, error } = read(next, first);
  assert.equal(error, undefined);
  assert.deepEqual(records.map((r) => [r.seq, r.fence]), [[1, 1], [2, 1], [3, 2]]);
  assert.deepEqual(leftOut.map((l) => [l.place.line, l.bytes, l.why]), [
    [4, c.length + d.length + 5, "lower-fence"],
  ]);
});

test("a whole segment of a lower fence that begins after the next owner does not count", () => {
  const mine = segment(
    ascii(header({ fence: 2, first: 1 }) + line(1, { type: "mine" }, 2)),
    "000002-000000000001.jsonl",
  );
  const stray = segment(ascii(header({ first: 9 }) + line(9, { type: "stray" })), "stray");
  const { records, leftOut } = read(stray, mine);
  assert.deepEqual(records.map((r) => r.event.type), ["mine"]);
  assert.deepEqual(leftOut.map((l) => l.why), ["lower-fence"]);
});

test("missing, repeated and foreign records are damage", () => {
  const [a, b, c] = lines(3) as [string, string, string];
  const why = (...text: string[]) => read(segment(ascii(text.join("")))).error?.message ?? "";
  assert.match(why(header(), a, c), /record 3 follows record 1/);
  assert.match(why(header(), a, b, b), /record 2 follows record 2/);
  assert.match(why(header(), a, line(2, { type: "x" }, 5)), /of fence 5 in a segment of fence 1/);
  assert.match(why(header({ first: 4 })), /begins with record 4 and no checkpoint/);
  assert.match(why(header(), seal('{"seq":1,"to":7')), /not a record/);
  assert.match(why(seal('{"seq":1,"to":7')), /not a journal's header/);
  const other = segment(ascii(header({ fence: 2, first: 2, run: "s" })), "x");
  assert.match(read(segment(ascii(header() + a)), other).error!.message, /belongs to run s/);
  const gap = segment(ascii(header({ fence: 2, first: 5 })), "x");
  assert.match(
    read(segment(ascii(header() + a)), gap).error!.message,
    /records 2 to 4 are missing/,
  );
});

test("a segment whose header was never completed is left out, and the journal goes on before it", () => {
  const [a] = lines(1);
  const torn = segment(ascii(header({ fence: 2, first: 2 }).slice(0, 30)), "x");
  const { records, leftOut, error } = read(segment(ascii(header() + a)), torn);
  assert.equal(error, undefined);
  assert.equal(records.length, 1);
  assert.deepEqual(leftOut.map((l) => [l.place.file, l.why]), [["x", "torn"]]);
});
