import assert from "node:assert/strict";
import { test } from "node:test";
import { pageIsFresh } from "../../scripts/console.ts";

test("the bundled page is that of today's sources (npm run console)", async () => {
  assert.ok(await pageIsFresh(), "src/console/page.generated.ts is stale: run npm run console");
});
