/**
 * What the original's start-up does, executed scenario by scenario, and what ours answers with `strict: "upstream"`:
 * the same class of outcome. Without it the outcome is the one beside it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Overrides, Run } from "./fixture.ts";

const both: Overrides = { comparesHashes: true, parallelConfigHash: "H" };
const remote = (headless: boolean, mode: "internal" | "external"): Overrides => ({
  mode,
  ranks: [
    { rank: 0, local: true, headless: false },
    { rank: 1, local: false, headless },
  ],
});
const malformed = (reason: string) => (run: Run) =>
  run.say("rank/0/engine", { type: "malformed", reason });

/** Name, configuration, what happens, and the failure code in each strictness (null: none). */
const cases: [string, Overrides, (run: Run) => unknown, string | null, string | null][] = [
  [
    "H1 two local engines form up",
    {},
    (r) => {
      for (const n of [0, 1]) r.hello(n);
      for (const n of [0, 1]) r.ready(n, { blocks: 25 });
      assert.equal(r.value("startup"), "formed");
      assert.equal(r.startup.blocks?.sum, 50);
    },
    null,
    null,
  ],
  [
    "H2 unknown identity",
    {},
    (r) =>
      r.say("startup", {
        type: "strangers",
        kind: "rank",
        count: 1,
        sample: "rank 7, which is not awaited here",
      }),
    "stranger",
    null,
  ],
  [
    "H3 remote claims local",
    remote(true, "internal"),
    (r) => r.hello(1, true, true),
    "engine-refused",
    null,
  ],
  [
    "H5 remote headless behind an external load balancer",
    remote(false, "external"),
    (r) => r.hello(1, false, true),
    "engine-refused",
    null,
  ],
  ["H6 READY before HELLO", {}, (r) => r.ready(0), "engine-refused", null],
  ["H7 duplicate HELLO", {}, (r) => [r.hello(0), r.hello(0)], "engine-refused", null],
  [
    "H8 duplicate READY",
    {},
    (r) => [r.hello(0), r.ready(0), r.ready(0)],
    "engine-refused",
    null,
  ],
  [
    "H9 hash mismatch",
    both,
    (r) => [r.hello(0), r.ready(0, { hash: "X" })],
    "configuration-mismatch",
    "configuration-mismatch",
  ],
  [
    "H10 hash absent",
    both,
    (r) => [r.hello(0), r.ready(0)],
    "configuration-mismatch",
    null,
  ],
  [
    "H11 num_gpu_blocks nil",
    {},
    (r) => [r.hello(0), r.ready(0, { blocks: null })],
    "configuration-mismatch",
    null,
  ],
  [
    "H13 extra frame",
    {},
    (r) => r.say("startup", { type: "strangers", kind: "frames", count: 1, sample: "3" }),
    "stranger",
    null,
  ],
  ["H14 missing key local", {}, malformed("local is missing"), "engine-refused", null],
  ["H15 bad msgpack", {}, malformed("not msgpack"), "engine-refused", null],
  [
    "H17 unknown status",
    {},
    (r) => r.say("rank/0/engine", { type: "malformed", reason: "no such status", status: "BYE" }),
    "engine-refused",
    null,
  ],
  [
    "H18 statistics address adopted",
    {},
    (r) => {
      r.hello(0);
      r.ready(0, { statsAddress: "tcp://a:1" });
      assert.equal(r.startup.statsAddress, "tcp://a:1");
    },
    null,
    null,
  ],
  [
    "H22 READY flips local",
    {},
    (r) => [r.hello(0), r.ready(0, { local: false })],
    "engine-refused",
    null,
  ],
];

for (const [name, overrides, happens, upstream, ours] of cases) {
  test(`${name}: ${upstream ?? "goes on"} as upstream, ${ours ?? "goes on"} by ours`, () => {
    for (const [strict, expected] of [["upstream", upstream], ["muster", ours]] as const) {
      const run = new Run({ ...overrides, strict });
      happens(run);
      assert.equal(run.startup.failure?.code ?? null, expected, strict);
    }
  });
}
