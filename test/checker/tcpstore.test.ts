import assert from "node:assert/strict";
import { test } from "node:test";
import { tcpStore } from "../../models/tcpstore.ts";
import { check, verdictText } from "../../src/checker/mod.ts";
import { serve } from "../../src/peers/tcpstore.ts";

for (
  const [ranks, crashes, states] of [[2, 0, 51], [3, 0, 276], [2, 1, 123], [3, 1, 792]] as const
) {
  test(`${ranks} ranks decide and meet through the store, with ${crashes} crashes: ${states} states`, () => {
    const verdict = check(tcpStore({ ranks, crashes }));
    assert.equal(verdict.outcome, "ok", verdictText(verdict));
    assert.equal(verdict.states, states);
    assert.equal(verdict.frontier, 0);
  });
}

test("a store whose compare_set overwrites is found out", () => {
  const verdict = check(tcpStore({
    ranks: 2,
    crashes: 0,
    serve: (store, from, request) =>
      request.op === "compareSet"
        ? [{ ...store, keys: { ...store.keys, [request.key]: request.desired } }, [
          { to: from, answer: { kind: "value", value: request.desired } },
        ]]
        : serve(store, from, request),
  }));
  assert.equal(verdict.outcome, "violated");
  assert.match(
    verdictText(verdict),
    /the decision is in the store for as long as anybody knows it/,
  );
});

test("a store that wakes a waiter at its first key is found out", () => {
  const verdict = check(tcpStore({
    ranks: 2,
    crashes: 0,
    serve: (store, from, request) => {
      if (request.op !== "wait") return serve(store, from, request);
      const there = request.keys.filter((key) => store.keys[key] !== undefined);
      return serve(store, from, { ...request, keys: there.length > 0 ? there : request.keys });
    },
  }));
  assert.equal(verdict.outcome, "violated");
  assert.match(verdictText(verdict), /nobody goes on before all ranks know/);
});

test("a store that forgets to wake lets a rank wait for ever", () => {
  const verdict = check(tcpStore({
    ranks: 2,
    crashes: 0,
    serve: (store, from, request) => {
      const [next, answers] = serve(store, from, request);
      return [next, answers.filter(({ to }) => to === from)];
    },
  }));
  assert.equal(verdict.outcome, "violated");
});
