/** Schedules as data, so that fast-check shrinks steps and not seeds. */
import fc from "fast-check";
import { World } from "./world.ts";

export type Step =
  /** The `pick`-th of what can happen (deadlines aside) happens. */
  | { readonly do: "next"; readonly pick: number }
  /** So many things happen, in an order that `salt` gives. */
  | { readonly do: "run"; readonly count: number; readonly salt: number }
  | { readonly do: "deadline"; readonly pick: number }
  | { readonly do: "crash"; readonly ranks: number; readonly left: readonly number[] }
  | { readonly do: "loseStoreReply"; readonly pick: number }
  | { readonly do: "killEngine"; readonly rank: number }
  | { readonly do: "abort" }
  | { readonly do: "scale"; readonly target: number };

export interface Scenario {
  readonly size: number;
  readonly target: number;
  readonly steps: readonly Step[];
}

const next = fc.record({ do: fc.constant("next" as const), pick: fc.nat(40) });

/** What may go wrong. */
export const faults: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("deadline" as const), pick: fc.nat(9) }),
  fc.record({
    do: fc.constant("crash" as const),
    ranks: fc.integer({ min: 1, max: 31 }),
    left: fc.array(fc.nat(5), { maxLength: 4 }),
  }),
  fc.record({ do: fc.constant("loseStoreReply" as const), pick: fc.nat(9) }),
  fc.record({ do: fc.constant("killEngine" as const), rank: fc.nat(4) }),
  fc.constant({ do: "abort" as const }),
  fc.record({ do: fc.constant("scale" as const), target: fc.integer({ min: 1, max: 6 }) }),
);

const run = fc.record({
  do: fc.constant("run" as const),
  count: fc.nat(150),
  salt: fc.nat(1_000),
});

/** Stretches of ordinary progress between faults. */
const steps = (maxFaults: number): fc.Arbitrary<readonly Step[]> =>
  fc.array(
    fc.tuple(run, fc.array(next, { maxLength: 4 }), fc.option(faults, { nil: undefined })),
    { minLength: 1, maxLength: maxFaults },
  ).map((parts) =>
    parts.flatMap(([run, some, fault]) => [run, ...some, ...(fault === undefined ? [] : [fault])])
  );

export const scenarios = (maxFaults = 4): fc.Arbitrary<Scenario> =>
  fc.integer({ min: 2, max: 5 }).chain((size) =>
    fc.record({
      size: fc.constant(size),
      target: fc.integer({ min: 1, max: 6 }).filter((target) => target !== size),
      steps: steps(maxFaults),
    })
  );

/** Runs a scenario up to its last step. */
export function play({ size, target, steps }: Scenario, world: World = new World({ size })): World {
  let operations = 0;
  world.scale(`op${operations++}`, target);
  for (const step of steps) {
    switch (step.do) {
      case "next": {
        const some = world.happenings().filter((h) => h.pace !== "deadline");
        if (some.length > 0) world.happen(some[step.pick % some.length]!);
        break;
      }
      case "run":
        for (let i = 0, pick = step.salt; i < step.count; i++) {
          const some = world.happenings().filter((h) => h.pace === "progress");
          if (some.length === 0) break;
          pick = (pick * 1_103_515_245 + 12_345) % 2_147_483_648;
          world.happen(some[pick % some.length]!);
        }
        break;
      case "deadline": {
        const some = world.happenings().filter((h) => h.pace === "deadline");
        if (some.length > 0) world.happen(some[step.pick % some.length]!);
        break;
      }
      case "crash": {
        const ranks = [0, 1, 2, 3, 4].filter((rank) => (step.ranks >> rank) % 2 === 1);
        world.crash(new Set(ranks), step.left);
        break;
      }
      case "loseStoreReply":
        world.loseStoreReply(step.pick);
        break;
      case "killEngine":
        world.killEngine(step.rank % size);
        break;
      case "abort":
        world.trace.push("operator aborts");
        world.abort();
        break;
      case "scale":
        world.trace.push(`operator asks for ${step.target}`);
        world.scale(`op${operations++}`, step.target);
        break;
    }
  }
  return world;
}

/** What a world has to say at the end of a run: empty when every property holds. */
export function verdict(world: World): string[] {
  const wrong = [...world.violations];
  if (!world.rest()) wrong.push(`somebody waits for ever: ${waiting(world)}`);
  wrong.push(...world.violations.filter((v) => !wrong.includes(v)));
  if (wrong.length > 0) return wrong;
  world.trace.push("--- engines that need it are restarted; the next operation");
  world.restartEngines();
  const size = world.size();
  const target = size === 2 ? 3 : 2;
  const before = world.operations.length;
  world.scale("next", target);
  if (!world.rest()) wrong.push(`somebody waits for ever in the next operation: ${waiting(world)}`);
  const last = world.operations.at(-1);
  if (world.operations.length === before || last?.outcome !== "completed") {
    wrong.push(`the next operation did not complete: ${last?.firstError?.text ?? "nothing"}`);
  }
  wrong.push(...world.violations);
  return wrong;
}

const waiting = (world: World): string =>
  [...world.system.instances].map((i) => `${i.id} in ${JSON.stringify(i.state.snapshot.value)}`)
    .filter((text) => /scaling\/|operation\//.test(text)).join("; ");
