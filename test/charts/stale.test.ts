import assert from "node:assert/strict";
import { test } from "node:test";
import { chartFiles, staleFiles } from "../../scripts/charts.ts";

test("models/charts holds the chart of every machine as it is today (npm run charts)", async () => {
  assert.deepEqual(staleFiles(await chartFiles()), []);
});
