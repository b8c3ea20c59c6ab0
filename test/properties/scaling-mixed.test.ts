/**
 * One original rank among ours: which of the properties still hold, and for each that does not, the shortest schedule that
 * fast-check finds. All old ranks ours is `scaling.test.ts`.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { play as follow, twice } from "../../src/checker/mod.ts";
import { told } from "./scaling/schedule.ts";
import { World } from "./scaling/world.ts";

/** So many steps in an order that `salt` gives, then something goes wrong, then the rest. */
interface Mixed {
  readonly steps: number;
  readonly salt: number;
  readonly fault: "the original raises" | "our engine dies";
}

const mixed: fc.Arbitrary<Mixed> = fc.record({
  steps: fc.nat(90),
  salt: fc.nat(1_000),
  fault: fc.constantFrom("the original raises" as const, "our engine dies" as const),
});

/** Rank 0 is ours and publishes, rank 1 is an original that is to leave. */
const play = ({ steps, salt, fault }: Mixed): World =>
  twice("a mixed cluster", () => {
    const world = new World({ size: 2, upstream: [1] });
    world.scaleEach(1);
    const progress = () => world.happenings().filter((h) => h.pace === "progress");
    follow<Mixed["fault"]>([{ stretch: steps, salt }, { fault }], {
      possible: () => progress().length,
      happen: (nth) => world.happen(progress()[nth]!),
      fails: (what) => what === "the original raises" ? world.raiseIn(1) : world.killEngine(0),
    });
    return world;
  }, told);

/** Ordinary progress until nothing more happens. */
function settle(world: World): void {
  for (let n = 0; n < 2_000; n++) {
    const next = world.happenings().find((h) => h.pace === "progress");
    if (next === undefined) return;
    world.happen(next);
  }
}

const ourOutcomes = (world: World): Set<string> =>
  new Set([...world.outcomes.values()].flatMap((ranks) => [...ranks.values()]));

test("without trouble a mixed cluster completes", () => {
  const world = new World({ size: 3, upstream: [1] });
  world.scaleEach(2);
  settle(world);
  assert.deepEqual(ourOutcomes(world), new Set(["completed"]), world.trace.join("\n"));
  assert.equal(world.originals.get(1)?.stage, "completed");
});

test("with an original rank: still nobody of ours pauses before every vote, and ours never say completed and failed of one epoch", () => {
  fc.assert(
    fc.property(mixed, (scenario) => {
      const world = play(scenario);
      settle(world);
      assert.deepEqual(world.violations, [], world.trace.join("\n"));
    }),
    { numRuns: 100, seed: 11 },
  );
});

/** The shortest schedule that breaks a property, as fast-check finds it. */
function shortest(holds: (world: World) => boolean): { world: World; scenario: Mixed } {
  const run = fc.check(
    fc.property(mixed, (scenario) => {
      const world = play(scenario);
      settle(world);
      return holds(world);
    }),
    { numRuns: 600, seed: 3 },
  );
  assert.ok(run.failed, "no schedule breaks the property: it holds in mixed clusters after all");
  const [scenario] = run.counterexample!;
  const world = play(scenario);
  settle(world);
  return { world, scenario };
}

test("agreement fails: the key says commit, and the original that voted raises between its barrier and its pause", (t) => {
  const { world, scenario } = shortest((w) =>
    w.look({ port: 1000 })(`elastic_ep/external/${w.epoch()}/decision`) !== "commit" ||
    w.originals.get(1)!.stage !== "failed"
  );
  t.diagnostic(
    `${JSON.stringify(scenario)}: ${world.trace.length} steps, the end: ${
      world.trace.slice(-9).join(" | ")
    }`,
  );
  // Ours do not claim more than they know.
  assert.ok(!ourOutcomes(world).has("completed"), world.trace.join("\n"));
});

test("one end for all fails: an original calls itself done when it has finished itself, and ours fails afterwards", (t) => {
  const { world, scenario } = shortest((w) =>
    w.originals.get(1)!.stage !== "completed" || !ourOutcomes(w).has("failed")
  );
  t.diagnostic(
    `${JSON.stringify(scenario)}: ${world.trace.length} steps, the end: ${
      world.trace.slice(-9).join(" | ")
    }`,
  );
  assert.equal(scenario.fault, "our engine dies");
});
