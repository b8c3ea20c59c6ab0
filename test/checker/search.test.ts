/** What makes the search fast leaves out look-ups and questions, never states or steps. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Checking } from "../../src/checker/check.ts";
import { defineModel, type Model, ModelError } from "../../src/checker/mod.ts";
import { SuccessorLists } from "../../src/checker/successor-lists.ts";
import { agreement } from "../../models/agreement.ts";
import { formation } from "../../models/formation.ts";
import { scaling } from "../../models/scaling.ts";
import { startup } from "../../models/startup.ts";
import { twoPhaseCommit } from "../../models/two-phase-commit.ts";
import { waves } from "../../models/waves.ts";

/** Everything that a search found: each state, the state it was reached from and by which step, in order. */
function found(model: Model, plain: boolean): unknown {
  const checking = new Checking(model, { symmetry: false, plain });
  const { states, generated, stutters, depth } = checking.run();
  const { table } = checking.search;
  let digest = 0;
  for (let i = 0; i < states; i++) {
    const column = checking.search.values(i).reduce(
      (h, v, c) => Math.imul(h ^ v * 31 + c, 0x85ebca6b),
      i,
    );
    digest = Math.imul(digest ^ column ^ table.parent[i]! * 7 ^ table.ordinal[i]!, 0xc2b2ae35);
  }
  return { states, generated, stutters, depth, digest };
}

const cases: readonly (readonly [string, Model])[] = [
  ["two-phase commit", twoPhaseCommit(6)],
  ["agreement", agreement({ ranks: 4 })],
  ["start-up of remote engines", startup({ engines: 2 })],
  ["start-up of launched engines", startup({ engines: 2, launched: true })],
  ["formation, whose components come up late", formation()],
  ["waves", waves({ engines: 2 })],
  ["scaling up with a crash", scaling({ target: 3, crashes: 1, timeouts: 0 })],
  ["scaling down with a crash", scaling({ target: 1, crashes: 1, timeouts: 0 })],
];

for (const [name, model] of cases) {
  test(`successors that are not looked up were there: ${name}`, () => {
    assert.deepEqual(found(model, false), found(model, true));
  });
}

for (const [name, model] of cases.slice(0, 4)) {
  test(`a search that forgets what it knows of successors finds the same: ${name}`, () => {
    const expected = found(model, false);
    const { get } = Object.getOwnPropertyDescriptor(SuccessorLists.prototype, "full")!;
    let asked = 0;
    Object.defineProperty(SuccessorLists.prototype, "full", {
      configurable: true,
      get: () => ++asked % 17 === 0,
    });
    try {
      assert.deepEqual(found(model, false), expected);
    } finally {
      Object.defineProperty(SuccessorLists.prototype, "full", { configurable: true, get: get! });
    }
    assert.ok(asked > 17, "it did forget");
  });
}

test("a rule that is no function of the state is found out", () => {
  let asked = 0;
  const model = defineModel({
    name: "moody",
    processes: {
      counter: {
        runs: {
          id: "counter",
          initial: () => ({ state: 0 }),
          step: (n) => ({ state: ((n as number) + 1) % 4 }),
        },
        may: [{ type: "next" }],
      },
      other: {
        runs: {
          id: "other",
          initial: () => ({ state: 0 }),
          step: (n) => ({ state: 1 - (n as number) }),
        },
        may: (w) => [{ type: asked++ % 2 === 0 ? `${w.at("counter")?.done}` : `${w.get("key")}` }],
      },
    },
  });
  assert.throws(() => new Checking(model).run(), (e: ModelError) => e.code === "bad-model");
});
