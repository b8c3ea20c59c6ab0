import assert from "node:assert/strict";
import { test } from "node:test";
import { Decoder } from "@msgpack/msgpack";
import fc from "fast-check";
import { encode, Ext, Float, fromHex, toHex, UnencodableError } from "../../src/protocol/mod.ts";
import type { Encodable } from "../../src/protocol/mod.ts";
import { CONTROL_LIMITS, readAll } from "../../src/protocol/msgpack-reader.ts";
import { decoded } from "../../src/protocol/refusal.ts";

const read = (hex: string) => decoded("test", () => readAll(fromHex(hex)));
const refusalOf = (hex: string) => {
  const answer = read(hex);
  assert.equal(answer.ok, false, `${hex} was not refused`);
  return answer.ok ? undefined! : answer.refusal;
};

test("integers take their shortest form, and 64 bits are bigint only where the width demands it", () => {
  const cases: [Encodable, string][] = [
    [0, "00"],
    [-0, "00"],
    [127, "7f"],
    [128, "cc80"],
    [65535, "cdffff"],
    [65536, "ce00010000"],
    [2 ** 32, "cf0000000100000000"],
    [2 ** 53 - 1, "cf001fffffffffffff"],
    [2n ** 53n, "cf0020000000000000"],
    [2n ** 64n - 1n, "cfffffffffffffffff"],
    [7n, "07"],
    [-1, "ff"],
    [-33, "d0df"],
    [-(2n ** 63n), "d38000000000000000"],
  ];
  for (const [value, hex] of cases) {
    assert.equal(toHex(encode(value)), hex);
    const back = read(hex);
    assert.ok(back.ok);
    assert.equal(back.value, value === 7n ? 7 : Object.is(value, -0) ? 0 : value);
  }
});

test("a float is written as a float, also when it is whole, at any depth", () => {
  assert.equal(toHex(encode(new Float(0))), "cb0000000000000000");
  assert.equal(
    toHex(encode({ a: [new Float(1), 1], b: "x" })),
    "82a16192cb3ff000000000000001a162a178",
  );
  const back = read("cb3ff0000000000000");
  assert.ok(back.ok && back.value instanceof Float && back.value.value === 1);
});

test("what has no faithful encoding is refused with its place", () => {
  const cases: [unknown, string, RegExp][] = [
    [{ a: { b: undefined } }, "a.b", /undefined has no encoding/],
    [[1, new Map()], "[1]", /a Map is not a plain map/],
    [{ id: 2n ** 64n }, "id", /more than 64 bits/],
    [-(2n ** 63n) - 1n, "", /more than 64 bits/],
    [{ x: 0.5 }, "x", /not a safe integer/],
    [{ x: 2 ** 53 }, "x", /not a safe integer/],
    [Number.NaN, "", /not a safe integer/],
    [["\ud800"], "[0]", /lone surrogate/],
    [{ f: () => 1 }, "f", /function has no encoding/],
    [new Date(0), "", /a Date is not a plain map/],
    [new Ext(128, new Uint8Array(1)), "", /not an extension type/],
  ];
  for (const [value, at, why] of cases) {
    assert.throws(() => encode(value as Encodable), (error: unknown) => {
      assert.ok(error instanceof UnencodableError);
      assert.equal(error.at, at);
      assert.match(error.message, why);
      return true;
    });
  }
  let deep: Encodable = 1;
  for (let i = 0; i < 65; i++) deep = [deep];
  assert.throws(() => encode(deep), /nested deeper than 64/);
});

test("what is not MessagePack is refused with the byte", () => {
  assert.deepEqual(refusalOf("c1"), {
    code: "malformed",
    at: "byte 0",
    expected: "a MessagePack value",
    got: "the reserved opcode 0xc1",
    text: "test at byte 0: expected a MessagePack value, got the reserved opcode 0xc1",
  });
  assert.equal(
    refusalOf("").text,
    "test at byte 0: expected 1 more bytes, got the end of the frame",
  );
  assert.equal(
    refusalOf("0102").text,
    "test at byte 1: expected the end of the message, got 1 more bytes",
  );
  assert.equal(
    refusalOf("a2c328").text,
    "test at byte 1: expected text in UTF-8, got bytes that are not",
  );
  assert.equal(refusalOf("ddffffffff").code, "malformed");
  assert.equal(refusalOf("dfffffffff").code, "malformed");
  assert.equal(refusalOf("c6ffffffff00").code, "malformed");
  assert.equal(refusalOf("dbffffffff00").code, "malformed");
  assert.equal(refusalOf("91".repeat(65) + "00").code, "too-large");
  assert.equal(refusalOf("91".repeat(200_000) + "00").code, "too-large");
  assert.ok(read("91".repeat(64) + "00").ok);
  const big = decoded("test", () => readAll(new Uint8Array(CONTROL_LIMITS.maxBytes + 1)));
  assert.ok(!big.ok && big.refusal.code === "too-large");
});

test("text keeps a byte order mark, and binary values are copies of the frame", () => {
  const bom = read("a4efbbbf61");
  assert.ok(bom.ok);
  assert.equal(bom.value, "\ufeffa");
  const frame = fromHex("c4020102");
  const answer = decoded("test", () => readAll(frame));
  frame.fill(0xff);
  assert.ok(answer.ok);
  assert.deepEqual(answer.value, Uint8Array.of(1, 2));
});

test("extensions are carried as they are, and maps keep keys that are not text", () => {
  for (
    const hex of ["d4030a", "d8ff" + "00".repeat(16), "c70303010203", "c8010005" + "07".repeat(256)]
  ) {
    const answer = read(hex);
    assert.ok(answer.ok && answer.value instanceof Ext);
    assert.equal(toHex(encode(answer.value)), hex);
  }
  const map = read("8201a161c2a162");
  assert.ok(map.ok && map.value instanceof Map);
  assert.deepEqual([...map.value], [[1, "a"], [false, "b"]]);
  const proto = encode(JSON.parse('{"__proto__":1}'));
  assert.equal(toHex(proto), "81a95f5f70726f746f5f5f01");
});

/** A value of every kind, with what the strict reader gives back for it. */
const anyValue = fc.letrec<{ value: Encodable }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constant(null),
    fc.boolean(),
    fc.maxSafeInteger(),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
    fc.string({ unit: "grapheme" }),
    fc.double().map((n) => new Float(n)),
    fc.uint8Array({ maxLength: 300 }),
    fc.tuple(fc.integer({ min: -128, max: 127 }), fc.uint8Array({ minLength: 1, maxLength: 20 }))
      .filter(([type]) => type !== -1)
      .map(([type, data]) => new Ext(type, data)),
    fc.array(tie("value"), { maxLength: 20 }),
    fc.dictionary(fc.string(), tie("value"), { maxKeys: 20 }),
  ),
})).value;

test("what is written reads back and writes the same bytes again; the library reads the same value", () => {
  const library = new Decoder({ useBigInt64: true, mapKeyConverter: (key) => String(key) });
  const plain = (value: unknown, theirs: boolean): unknown => {
    if (value instanceof Float) return value.value;
    if (typeof value === "bigint") {
      return Number.isSafeInteger(Number(value)) ? Number(value) : value;
    }
    if (value instanceof Ext) return { type: value.type, data: [...value.data] };
    if (value instanceof Uint8Array) return { bytes: [...value] };
    if (Array.isArray(value)) return value.map((item) => plain(item, theirs));
    if (value instanceof Map) {
      return [...value].map(([k, v]) => [k, plain(v, theirs)]).sort();
    }
    if (typeof value === "object" && value !== null) {
      if ("type" in value && "data" in value && value.data instanceof Uint8Array) {
        return { type: value.type, data: [...value.data] };
      }
      return Object.entries(value).map(([k, v]) => [k, plain(v, theirs)]).sort();
    }
    return value;
  };
  const again = (value: unknown): Encodable =>
    value instanceof Map
      ? Object.fromEntries([...value].map(([k, v]) => [k, again(v)]))
      : Array.isArray(value)
      ? value.map(again)
      : value as Encodable;
  fc.assert(
    fc.property(anyValue, (value) => {
      const bytes = encode(value);
      const back = decoded("test", () => readAll(bytes));
      assert.ok(back.ok);
      assert.deepEqual(encode(again(back.value)), bytes);
      if (!toHex(bytes).includes("5f5f70726f746f5f5f")) { // the library refuses the key __proto__
        assert.deepEqual(plain(back.value, false), plain(library.decode(bytes), true));
      }
    }),
    { numRuns: 2000, seed: 11 },
  );
});
