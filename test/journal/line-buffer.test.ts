import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { asciiJson, encodeRecord } from "../../src/journal/mod.ts";
import { LineBuffer } from "../../src/journal/stores/line-buffer.ts";

const record = fc.record({
  seq: fc.oneof(fc.nat(), fc.nat({ max: Number.MAX_SAFE_INTEGER })),
  fence: fc.nat(),
  at: fc.constantFrom(0, 7, 1_800_000_000_000, 1_800_000_000_001, Number.MAX_SAFE_INTEGER),
  to: fc.oneof(fc.constantFrom("", "startup", "rank/3/engine"), fc.string({ unit: "binary" })),
  digest: fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 32, maxLength: 32 }),
});
const event = fc.record({
  type: fc.string({ unit: "grapheme" }),
  text: fc.string({ maxLength: 300 }),
});

test("records put into a buffer are the bytes of their lines, whatever they say", () => {
  const buffer = new LineBuffer();
  fc.assert(
    fc.property(fc.array(fc.tuple(record, event.map(asciiJson)), { maxLength: 9 }), (records) => {
      buffer.clear();
      const lines = records.map(([head, text]) => encodeRecord(head, text));
      assert.deepEqual(
        records.map(([head, text]) => buffer.put(head, text)),
        lines.map((line) => line.length),
      );
      assert.equal(new TextDecoder().decode(buffer.bytes()), lines.join(""));
    }),
    { numRuns: 500 },
  );
});

test("numbers are written in decimal at every length", () => {
  const buffer = new LineBuffer();
  for (let seq = 1; seq <= Number.MAX_SAFE_INTEGER; seq *= 10) {
    for (const n of [seq - 1, seq, 2 ** 31 - 1, 2 ** 31]) {
      const head = { seq: n, fence: 1, at: 1, to: "x", digest: "0".repeat(32) };
      buffer.clear();
      buffer.put(head, "{}");
      assert.equal(new TextDecoder().decode(buffer.bytes()), encodeRecord(head, "{}"));
    }
  }
});

test("a record that is larger than the buffer makes it larger and keeps what is in it", () => {
  const buffer = new LineBuffer();
  const head = { seq: 1, fence: 1, at: 1, to: "é".repeat(50_000), digest: "0".repeat(32) };
  const lines = [100, 70_000, 300_000].map((length) => {
    const text = asciiJson({ type: "x", text: "y".repeat(length) });
    buffer.put(head, text);
    return encodeRecord(head, text);
  });
  assert.equal(new TextDecoder().decode(buffer.bytes()), lines.join(""));
});
