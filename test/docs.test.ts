import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { pages } from "../scripts/docs.ts";

for (const [path, page] of Object.entries(pages)) {
  test(`${path} is that of today's tables (npm run docs)`, () => {
    assert.equal(readFileSync(path, "utf8"), page());
  });
}
