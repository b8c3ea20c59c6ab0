import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bytesOf,
  byteString,
  encodeReply,
  encodeRequest,
  encodeValidate,
  fromHex,
  hexOf,
  OPERATIONS,
  replyBytes,
  ReplyDecoder,
  replyShapeOf,
  REQUEST_LIMITS,
  RequestDecoder,
  StoreProtocolError,
  type StoreReply,
  type StoreRequest,
  textOf,
  utf8,
} from "../../src/protocol/tcpstore/mod.ts";
import { recorded, said } from "./tcpstore-recorded.ts";

const VALIDATE = "00cef7853c";

/** Reads a whole client stream, `cut` bytes at a time. */
function readAll(hex: string, cut: number): StoreRequest[] {
  const bytes = bytesOf(fromHex(hex));
  const decoder = new RequestDecoder();
  const requests: StoreRequest[] = [];
  for (let at = 0; at < bytes.length; at += cut) {
    decoder.push(bytes.subarray(at, at + cut));
    for (let r = decoder.next(); r !== undefined; r = decoder.next()) requests.push(r);
  }
  assert.equal(decoder.incomplete, false);
  return requests;
}

const refused = (hex: string, code: string, text: RegExp): void => {
  const decoder = new RequestDecoder();
  decoder.push(bytesOf(fromHex(hex)));
  assert.throws(() => {
    while (decoder.next() !== undefined);
  }, (error) => {
    assert(error instanceof StoreProtocolError);
    assert.equal(error.code, code);
    assert.match(error.message, text);
    return true;
  });
};

test("there are 18 operations beside VALIDATE, numbered without a gap", () => {
  assert.deepEqual(
    OPERATIONS.map((each) => each.code),
    Array.from({ length: 18 }, (_, i) => i + 1),
  );
  assert.equal(new Set(OPERATIONS.map((each) => each.op)).size, 18);
});

test("every recorded request of torch's client is read, and written again byte for byte", () => {
  let requests = 0;
  for (const row of recorded) {
    const hex = said(row, "C");
    if (hex === "") continue;
    const opened = hex.startsWith(VALIDATE) ? hex : VALIDATE + hex;
    for (const cut of [1, 7, 1440, hex.length]) {
      const read = readAll(opened, cut);
      const written = hexOf(encodeValidate() + read.map(encodeRequest).join(""));
      assert.equal(written, opened, row.op);
      if (cut === 1) requests += read.length;
    }
  }
  assert.equal(requests, 121);
});

test("every recorded reply of torch's servers is read, and written again byte for byte", () => {
  let replies = 0;
  for (const row of recorded) {
    const hex = said(row, "C");
    if (hex === "" || row.op === "add_on_nonint") continue;
    const requests = readAll(hex.startsWith(VALIDATE) ? hex : VALIDATE + hex, hex.length);
    // A wait that is cancelled has no reply of its own: none of these was woken while it was being cancelled.
    const asked = requests.filter((_, i) => requests[i + 1]?.op !== "cancelWait");
    for (const cut of [1, 5, 4096]) {
      const bytes = bytesOf(fromHex(said(row, "S")));
      const decoder = new ReplyDecoder();
      const read: StoreReply[] = [];
      const shapes = asked.map(replyShapeOf).filter((shape) => shape !== "none");
      for (let at = 0; at < bytes.length; at += cut) {
        decoder.push(bytes.subarray(at, at + cut));
        while (read.length < shapes.length) {
          const reply = decoder.next(shapes[read.length]!);
          if (reply === undefined) break;
          read.push(reply);
        }
      }
      assert.equal(read.length, shapes.length, row.op);
      assert.equal(decoder.available, 0, row.op);
      assert.equal(hexOf(read.map(encodeReply).join("")), said(row, "S"), row.op);
      for (const reply of read) assert.equal(replyBytes(reply), encodeReply(reply).length);
      if (cut === 1) replies += read.length;
    }
  }
  assert.equal(replies, 100);
});

test("a connection that does not start with VALIDATE is told apart by its first byte", () => {
  refused("474554202f20485454502f312e310d0a", "http", /looks like HTTP.*byte 0 of/);
  refused("160301020001", "tls", /TLS hello/);
  refused("0d01020304", "not-validated", /first byte 0x0d, expected VALIDATE/);
  refused("00deadbeef", "wrong-magic", /magic 0xefbeadde, expected 0x3c85f7ce/);
});

test("what is illegal later is refused where it stands", () => {
  refused(VALIDATE + VALIDATE, "validate-repeated", /only as the first request \(byte 5 of/);
  refused(VALIDATE + "07" + "13", "unknown-opcode", /opcode 0x13: operations end at 0x12 \(byte 6/);
  refused(VALIDATE + "ff", "unknown-opcode", /0xff/);
});

test("a limit is checked as soon as the length can be read, without the bytes it announces", () => {
  refused(VALIDATE + "03" + "0120000000000000", "key-too-long", /8193 bytes, at most 8192/);
  refused(
    VALIDATE + "03" + "0000000000000080",
    "key-too-long",
    /9223372036854776000 bytes/,
  );
  refused(
    VALIDATE + "0102000000000000002f780100800000000000",
    "value-too-long",
    /8388609 bytes, at most 8388608/,
  );
  refused(VALIDATE + "050100020000000000", "too-many-keys", /131073 keys, at most 131072/);
  refused(VALIDATE + "0bffffffffffffffff", "too-many-keys", /18446744073709552000 keys/);
});

test("what is exactly at a limit is taken: a key of 8192 bytes, a value of 8 MiB, 131072 keys", () => {
  const key = "k".repeat(8192);
  const value = "v".repeat(8 * 1024 * 1024);
  const keys = Array.from({ length: 131_072 }, () => "");
  const requests: StoreRequest[] = [{ op: "set", key, value }, { op: "check", keys }];
  const bytes = bytesOf(encodeValidate() + requests.map(encodeRequest).join(""));
  const decoder = new RequestDecoder();
  const read: StoreRequest[] = [];
  for (let at = 0; at < bytes.length; at += 65_536) {
    decoder.push(bytes.subarray(at, at + 65_536));
    for (let r = decoder.next(); r !== undefined; r = decoder.next()) read.push(r);
  }
  assert.deepEqual(read, requests);
});

test("a request of many values ends at the limit for a whole request", () => {
  const decoder = new RequestDecoder({ ...REQUEST_LIMITS, maxMessageBytes: 100 });
  const request: StoreRequest = {
    op: "multiSet",
    keys: ["a", "b"],
    values: ["x".repeat(60), "y".repeat(60)],
  };
  decoder.push(bytesOf(encodeValidate() + encodeRequest(request)));
  assert.throws(() => decoder.next(), /a request of at least 163 bytes, at most 100/);
});

test("what is held is what arrived, not what was announced", () => {
  const decoder = new RequestDecoder();
  const bytes = bytesOf(
    fromHex(VALIDATE + "0101000000000000002f0000800000000000" + "00".repeat(10)),
  );
  for (const byte of bytes) {
    decoder.push(Uint8Array.of(byte));
    assert.equal(decoder.next(), undefined);
  }
  assert.equal(decoder.held, 1 + 9 + 8 + 10);
});

test("chunks may be reused once the decoder asked for more", () => {
  const bytes = bytesOf(
    encodeValidate() + encodeRequest({ op: "set", key: "key", value: "value" }),
  );
  const chunk = new Uint8Array(1);
  const decoder = new RequestDecoder();
  let request: StoreRequest | undefined;
  for (const byte of bytes) {
    chunk[0] = byte;
    decoder.push(chunk);
    request = decoder.next();
  }
  assert.deepEqual(request, { op: "set", key: "key", value: "value" });
});

test("64-bit integers survive at their edges", () => {
  for (
    const delta of [
      "0",
      "-1",
      "255",
      "256",
      "4294967296",
      "9007199254740991",
      "9007199254740993",
      "-9007199254740993",
      "9223372036854775807",
      "-9223372036854775808",
    ]
  ) {
    const request: StoreRequest = { op: "add", key: "k", delta };
    assert.deepEqual(readAll(hexOf(encodeValidate() + encodeRequest(request)), 3), [request]);
  }
});

test("a reply that cannot be one is refused", () => {
  const next = (hex: string, shape: Parameters<ReplyDecoder["next"]>[0]): unknown => {
    const decoder = new ReplyDecoder();
    decoder.push(bytesOf(fromHex(hex)));
    return decoder.next(shape);
  };
  assert.throws(() => next("02", "flag"), /0x02 where 00 or 01 is due/);
  assert.throws(() => next("ffffffffffffffff", "keys"), /a count of -1/);
  assert.throws(() => next("ffffffffffffff00", "keys"), /72057594037927940 keys, at most 16777216/);
  assert.throws(() => next("0000001000000001", "value"), /at most 268435456 are taken/);
});

test("byte strings, text and hex turn into each other", () => {
  const every = byteString(Uint8Array.from({ length: 256 }, (_, i) => i));
  assert.equal(every.length, 256);
  assert.equal(every.charCodeAt(0x80), 0x80);
  assert.equal(fromHex(hexOf(every)), every);
  assert.deepEqual([...bytesOf(every)], Array.from({ length: 256 }, (_, i) => i));
  assert.equal(hexOf(utf8("ключ")), "d0bad0bbd18ed187");
  assert.equal(textOf(utf8("ключ\0")), "ключ\0");
  assert.throws(() => bytesOf("ключ"), /character 0 is U\+043a/);
  assert.throws(() => fromHex("abc"), RangeError);
});
