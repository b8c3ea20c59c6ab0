import assert from "node:assert/strict";
import { test } from "node:test";
import { check, type Verdict, verdictText } from "../../src/checker/mod.ts";
import { startup, type StartupOptions } from "../../models/startup.ts";

function holds(options: StartupOptions, states: number): void {
  const verdict: Verdict = check(startup(options));
  assert.equal(verdict.outcome, "ok", verdictText(verdict));
  assert.equal(verdict.states, states);
  assert.equal(verdict.frontier, 0);
}

for (const [engines, states] of [[1, 139], [2, 2147], [3, 33824], [4, 482255]] as const) {
  test(`start-up of ${engines} remote engines, 1 crash and 1 timeout: every property holds in ${states} states`, () =>
    holds({ engines }, states));
}

for (const [engines, states] of [[1, 99], [2, 2752], [3, 60410]] as const) {
  test(`start-up of ${engines} launched engines, 1 crash and 1 timeout: every property holds in ${states} states`, () =>
    holds({ engines, launched: true }, states));
}

test("the coordinator may crash at any moment of a start-up, with any part of a step's effects lost", () => {
  holds({ engines: 2, coordinatorCrashes: 1 }, 14853);
  holds({ engines: 2, launched: true, coordinatorCrashes: 1, spawnFailures: 1 }, 40022);
});

test("a coordinator that came back adopts each engine that answers, and an engine that does not is its failure", () => {
  holds({ engines: 2, coordinatorCrashes: 1, silences: 1 }, 18344);
  holds({ engines: 2, launched: true, coordinatorCrashes: 1, silences: 1 }, 41734);
  holds({ engines: 1, coordinatorCrashes: 2, silences: 1, timeouts: undefined }, 1534);
});

test("a start-up ends in every run when deadlines pass some day", () => {
  holds({ engines: 2, timeouts: undefined }, 6143);
  holds({ engines: 2, launched: true, timeouts: undefined }, 9226);
});

test("nonsense in a rank's name is refused, counted once, and ends nothing that can go on", () => {
  holds({ engines: 1, nonsense: 2 }, 8154);
  holds({ engines: 2, nonsense: 1 }, 20833);
});

test("an operator who stops everything, at any moment, finds everything stopped", () => {
  holds({ engines: 2, launched: true, stops: true }, 53793);
  holds(
    { engines: 1, launched: true, stops: true, spawnFailures: 1, coordinatorCrashes: 1 },
    2995,
  );
});
