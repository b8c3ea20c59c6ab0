import fc from "fast-check";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { NotificationFlow } from "../../src/machines/mod.ts";
import { finished, GPU, left, placed, Run } from "./ray-scaling-world.ts";

/** One thing that happens: an outcome of an open call, good or bad, or a word from outside. */
const happening = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant("good" as const), n: fc.nat({ max: 9 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("bad" as const), n: fc.nat({ max: 9 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("joined" as const), n: fc.nat({ max: 6 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("init" as const), n: fc.nat({ max: 6 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("weights" as const), n: fc.nat({ max: 6 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("left" as const), n: fc.nat({ max: 6 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("ready" as const, "finished" as const),
      n: fc.constant(0),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        "abort" as const,
        "deadline" as const,
        "settle" as const,
        "gone" as const,
      ),
      n: fc.nat({ max: 6 }),
    }),
  },
);
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

function happen(run: Run, { kind, n }: Happening): void {
  const slot = run.open[n % Math.max(1, run.open.length)];
  const timer = run.timers.find((t) => t.timer.includes(kind));
  switch (kind) {
    case "good":
      return slot === undefined ? undefined : run.good(slot);
    case "bad":
      return slot === undefined ? undefined : run.bad(slot);
    case "joined":
      return run.tell({ type: "joined", rank: n });
    case "init":
      return run.tell({ type: "notified", rank: n, kind: "NEW_CORE_ENGINES_INIT_READY" });
    case "weights":
      return run.tell({ type: "notified", rank: n, kind: "NEW_CORE_ENGINES_WEIGHTS_INIT_READY" });
    case "left":
      return run.tell(left(n));
    case "ready":
      return run.tell({ type: "enginesReady" });
    case "finished":
      return run.tell(finished);
    case "abort":
      return run.tell({ type: "abort", text: "operator" });
    case "gone":
      return run.tell({ type: "rankGone", rank: n, text: "exit 1" });
    case "deadline":
    case "settle":
      return timer === undefined ? undefined : run.fire(kind);
  }
}

/** Everything that is still awaited happens; on demand, one call that is open after the commit fails. */
function rest(run: Run, faulty: boolean): void {
  for (let i = 0; i < 20 && run.state !== '"serving"' && run.state !== '"broken"'; i++) {
    run.settle("commit");
    run.tell({ type: "enginesReady" });
    for (let rank = 0; rank < 7; rank++) {
      for (const kind of ["init", "weights", "joined"] as const) happen(run, { kind, n: rank });
    }
    run.settle("commit");
    if (faulty && run.context.stage === "committing" && run.open.length > 0) {
      run.bad(run.open[0]!);
    }
    run.settle();
    run.tell(finished);
    for (let rank = 0; rank < 7; rank++) run.tell(left(rank));
  }
}

test("property: whatever happens in whatever order, sizes change only through completed operations and nothing is left", () => {
  let [completed, failed, broken] = [0, 0, 0];
  fc.assert(
    fc.property(
      fc.constantFrom<NotificationFlow>("two-phase", "relay"),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 6 }),
      fc.array(happening, { maxLength: 60 }),
      fc.nat({ max: 4 }).map((n) => n === 0),
      (flow, size, target, happenings, faulty) => {
        const run = new Run({ placement: placed(size, 1), flow });
        run.free = [GPU("A", 4), GPU("B", 8)];
        run.tell({ type: "scale", operation: "op", target });
        const check = () => {
          const { placement, launches } = run.context;
          const through = run.answers.includes("op completed");
          assert.equal(placement.ranks.length, through ? target : size);
          assert.equal(launches.length, placement.ranks.length);
          const kept = Array.from({ length: Math.min(size, target) }, (_, r) => `first-r${r}`);
          assert.deepEqual(
            kept.filter((l) => run.stopped.has(l)),
            [],
            "a rank that stays is never stopped",
          );
        };
        for (const one of happenings) {
          happen(run, one);
          check();
        }
        rest(run, faulty);
        check();
        const ends = run.answers.filter((a) => /^op (completed|failed)/.test(a));
        assert.equal(ends.length, 1, `answered once: ${run.answers}`);
        assert.ok(['"serving"', '"broken"'].includes(run.state), run.state);
        if (run.state === '"broken"') return void broken++;
        if (ends[0] === "op completed") return void completed++;
        failed++;
        assert.deepEqual(
          [...run.stopped].sort(),
          [...run.started].sort(),
          "what was started is stopped",
        );
        assert.deepEqual([...run.held.keys()], []);
      },
    ),
    { numRuns: 600 },
  );
  assert.ok(completed > 50 && failed > 20 && broken > 3, `${completed} ${failed} ${broken}`);
});
