import assert from "node:assert/strict";
import { test } from "node:test";
import { EventTexts } from "../../src/journal/mod.ts";

test("an event that nobody can change is written and read once, others whenever they are said", () => {
  const texts = new EventTexts();
  const event: { type: string; blocks?: number | undefined } = { type: "ready", blocks: undefined };
  const kept = texts.saidBy(event);
  assert.deepEqual(kept, { text: '{"type":"ready"}', event: { type: "ready" } });
  event.blocks = 7;
  assert.deepEqual(texts.saidBy(event).text, '{"type":"ready","blocks":7}');

  const constant = Object.freeze({ ...event });
  assert.equal(texts.saidBy(constant), texts.saidBy(constant));
  assert.equal(texts.saidBy(constant).text, '{"type":"ready","blocks":7}');

  const nested = Object.freeze({ type: "ready", endpoints: { bind: "a" } });
  assert.equal(texts.saidBy(nested).text, '{"type":"ready","endpoints":{"bind":"a"}}');
  nested.endpoints.bind = "b";
  assert.equal(texts.saidBy(nested).text, '{"type":"ready","endpoints":{"bind":"b"}}');
});
