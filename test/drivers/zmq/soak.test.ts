import assert from "node:assert/strict";
import { test } from "node:test";
import { CROWD, LONE, soak } from "./soak.ts";

test("10,000 round trips, every socket waiting before its peer is there: none is lost", async () => {
  assert.equal(await soak(2_000, LONE), 2_000);
  assert.equal(await soak(8_000, CROWD), 8_000);
});
