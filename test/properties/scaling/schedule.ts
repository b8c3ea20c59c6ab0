/** Schedules as data, so that fast-check shrinks steps and not seeds: the checker's, with what can go wrong in a world of ranks. */
import fc from "fast-check";
import { play as follow, schedules, type ScheduleStep } from "../../../src/checker/mod.ts";
import { stateDigest } from "../../../src/kernel/mod.ts";
import { World } from "./world.ts";

/** What may go wrong, and what operators may ask in between. */
export type Fault =
  | { readonly do: "deadline" | "retry" | "loseStoreReply"; readonly pick: number }
  | { readonly do: "crash"; readonly ranks: number; readonly left: readonly number[] }
  | { readonly do: "killEngine"; readonly rank: number }
  | { readonly do: "abort" }
  | { readonly do: "scale"; readonly target: number };

export interface Scenario {
  readonly size: number;
  readonly target: number;
  readonly schedule: readonly ScheduleStep<Fault>[];
}

export const faults: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({
    do: fc.constantFrom("deadline" as const, "loseStoreReply" as const, "retry" as const),
    pick: fc.nat(9),
  }),
  fc.record({
    do: fc.constant("crash" as const),
    ranks: fc.integer({ min: 1, max: 31 }),
    left: fc.array(fc.nat(5), { maxLength: 4 }),
  }),
  fc.record({ do: fc.constant("killEngine" as const), rank: fc.nat(4) }),
  fc.constant({ do: "abort" as const }),
  fc.record({ do: fc.constant("scale" as const), target: fc.integer({ min: 1, max: 6 }) }),
);

export const scenarios = (): fc.Arbitrary<Scenario> =>
  fc.integer({ min: 2, max: 5 }).chain((size) =>
    fc.record({
      size: fc.constant(size),
      target: fc.integer({ min: 1, max: 6 }).filter((target) => target !== size),
      schedule: schedules({ steps: 14, oneFaultIn: 4, stretch: 150, faults }),
    })
  );

/** Runs a scenario up to its last step. */
export function play(
  { size, target, schedule }: Scenario,
  world: World = new World({ size }),
): World {
  let operations = 0;
  world.scale(`op${operations++}`, target);
  const paced = (pace: string) => world.happenings().filter((h) => h.pace === pace);
  const pick = (pace: string, nth: number): void => {
    const some = paced(pace);
    if (some.length > 0) world.happen(some[nth % some.length]!);
  };
  follow(schedule, {
    possible: () => paced("progress").length,
    happen: (nth) => pick("progress", nth),
    fails: (fault) => {
      switch (fault.do) {
        case "deadline":
        case "retry":
          return pick(fault.do, fault.pick);
        case "loseStoreReply":
          return world.loseStoreReply(fault.pick);
        case "crash": {
          const ranks = [0, 1, 2, 3, 4].filter((rank) => (fault.ranks >> rank) % 2 === 1);
          return world.crash(new Set(ranks), fault.left);
        }
        case "killEngine":
          return world.killEngine(fault.rank % size);
        case "abort":
          world.trace.push("operator aborts");
          return world.abort();
        case "scale":
          world.trace.push(`operator asks for ${fault.target}`);
          return world.scale(`op${operations++}`, fault.target);
      }
    },
  });
  return world;
}

/** What a world did and where it is, as text: the same for the same schedule. */
export const told = (world: World): string =>
  `${world.trace.join("\n")}\n${stateDigest(world.system)}`;

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
