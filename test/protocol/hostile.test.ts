import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as protocol from "../../src/protocol/mod.ts";
import type { Decoded } from "../../src/protocol/mod.ts";
import { decodeBackFrame } from "../../src/protocol/coordinator-bus.ts";
import { vector, vectorNames } from "./vectors.ts";

/** Every decoder of the room, on frames. */
const DECODERS: readonly ((frames: Uint8Array[]) => Decoded<unknown>)[] = [
  protocol.decodeHandshakeFrames,
  protocol.decodeEngineOutputs,
  protocol.decodeEngineRequest,
  protocol.decodeFrontFrame,
  protocol.decodePublish,
  protocol.decodeCoordinatorFrames,
  decodeBackFrame,
  ...[
    protocol.decodeEngineHandshake,
    protocol.decodeInit,
    protocol.decodeScaleUpInit,
    protocol.decodeIdentity,
    protocol.decodeFirstFrame,
    protocol.decodeUtilityCall,
    protocol.addFacts,
    protocol.decodeRequestOutputs,
    protocol.decodeReconfigureRequest,
    protocol.decodeStoreText,
    protocol.decodeStoreDecimal,
    protocol.decodeStoreEpoch,
    protocol.decodeStorePhase,
  ].map((decode) => (frames: Uint8Array[]) => decode(frames[0] ?? new Uint8Array(0))),
];

const original = fc.constantFrom(...vectorNames).map(vector);
/** A real message with some bytes changed, cut, doubled or put in. */
const mutated = fc.tuple(
  original,
  fc.array(fc.tuple(fc.nat(1000), fc.integer({ min: 0, max: 255 })), { maxLength: 4 }),
  fc.option(fc.nat(1000)),
  fc.uint8Array({ maxLength: 3 }),
).map(([bytes, changes, cut, tail]) => {
  const copy = Uint8Array.from([...bytes, ...tail]);
  for (const [at, byte] of changes) if (copy.length > 0) copy[at % copy.length] = byte;
  return cut === null ? copy : copy.subarray(0, cut % (copy.length + 1));
});
const frame = fc.oneof(
  mutated,
  fc.uint8Array({ maxLength: 64 }),
  fc.constantFrom("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02\x00").map((text) =>
    new TextEncoder().encode(text)
  ),
  fc.constantFrom(0x00, 0x01, 0x92).map((byte) => new Uint8Array(300).fill(byte)),
);

test("30,000 hostile frames through every decoder: a value or a refusal, never an exception", () => {
  let values = 0;
  let refusals = 0;
  fc.assert(
    fc.property(fc.array(frame, { minLength: 1, maxLength: 3 }), (frames) => {
      for (const decode of DECODERS) {
        const answer = decode(frames);
        if (answer.ok) values++;
        else {
          refusals++;
          assert.ok(answer.refusal.text.length > 0 && answer.refusal.text.length < 1000);
        }
        assert.deepEqual(JSON.parse(JSON.stringify(answer)), answer, "an answer is a JSON value");
      }
    }),
    { numRuns: 15_000, seed: 20 },
  );
  assert.ok(values > 5_000, `${values} values`);
  assert.ok(refusals > 200_000, `${refusals} refusals`);
});

test("a mutated handshake that is accepted means what it says when it is written again", () => {
  fc.assert(
    fc.property(mutated, (bytes) => {
      const answer = protocol.decodeEngineHandshake(bytes);
      if (!answer.ok) return;
      const again = protocol.decodeEngineHandshake(protocol.encodeEngineHandshake(answer.value));
      assert.deepEqual(again, answer);
    }),
    { numRuns: 5_000, seed: 21 },
  );
});
