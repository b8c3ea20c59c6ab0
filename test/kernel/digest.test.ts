import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hashText, hex, mix, ZERO } from "../../src/kernel/hash.ts";
import { type EffectId, effectsDigest, rankOf, type Stamped } from "../../src/kernel/mod.ts";

const name = fc.oneof(fc.string(), fc.constantFrom("rank/3/engine", 'a "b"', "back\\slash", "é"));
const id = fc.tuple(fc.nat(), fc.nat()).map(([seq, n]): EffectId => `${seq}.${n}`);
const thing = fc.record({ type: fc.constantFrom("x", "y"), of: fc.jsonValue() });
const whole = fc.nat({ max: 2 ** 48 });

/** Effects of every kind, as a fold makes them. */
const effect: fc.Arbitrary<Stamped> = fc.tuple(id, name).chain(([id, from]) =>
  fc.oneof<fc.Arbitrary<Stamped>[]>(
    thing.map((effect) => ({ id, from, kind: "message", effect })),
    fc.tuple(thing, name).map(([effect, slot]) => ({ id, from, kind: "call", effect, slot })),
    fc.constant<Stamped>({ id, from, kind: "abandon", call: id }),
    fc.tuple(name, thing).map(([key, resource]) => ({ id, from, kind: "hold", key, resource })),
    name.map((key) => ({ id, from, kind: "release", key })),
    fc.tuple(name, whole, whole).map(([timer, generation, dueAt]) => ({
      id,
      from,
      kind: "arm",
      timer,
      generation,
      dueAt,
    })),
    fc.tuple(name, whole).map(([timer, generation]) => ({
      id,
      from,
      kind: "disarm",
      timer,
      generation,
    })),
  )
);

test("the digest of effects is that of their JSON, in order", () => {
  fc.assert(
    fc.property(fc.array(effect, { maxLength: 8 }), (effects) => {
      const expected = effects.reduce((h, e) => mix(h, hashText(JSON.stringify(e))), ZERO);
      assert.equal(effectsDigest(effects), hex(expected));
    }),
    { numRuns: 2000 },
  );
});

test("hashes are those of journals of format 1", () => {
  assert.deepEqual(["", "a", "startup", "é"].map((text) => hex(hashText(text))), [
    "3318734c52a5c32e",
    "f5f33ad949bc2586",
    "9de80d0b57744c3e",
    "0b971a4b8da218f8",
  ]);
});

test("the rank in an instance's id", () => {
  const ids = [
    "rank/0/engine",
    "rank/1023/scaling/4",
    "rank/7",
    "rank//engine",
    "rank/x/engine",
    "process/rank/3/e",
  ];
  assert.deepEqual(ids.map(rankOf), [0, 1023, undefined, undefined, undefined, undefined]);
});
