/**
 * The kernel's step against XState itself: the same charts run as plain actors under a simulated clock, where `after` fires
 * by itself, and both must be in the same states all the way. What instances tell each other is passed on by hand,
 * because plain actors drop what actions return.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Actor, type AnyStateMachine, createActor, SimulatedClock } from "xstate";
import {
  type Input,
  type KernelEvent,
  SYSTEM,
  type System,
  type Timer,
} from "../../src/kernel/mod.ts";
import { engine, kernel, startup } from "./fixture.ts";

const ENGINES = 3;
const machines: Record<string, AnyStateMachine> = { engine, startup };

const happening = fc.record({
  afterMs: fc.constantFrom(0, 1, 250, 999, 1000, 1001, 5000),
  rank: fc.nat(ENGINES - 1),
  event: fc.oneof<fc.Arbitrary<KernelEvent>[]>(
    fc.constant({ type: "hello" }),
    fc.integer({ min: -1, max: 3 }).map((blocks) => ({ type: "ready", blocks })),
    fc.constant({ type: "paused" }),
    fc.constant({ type: "exited", code: 1 }),
    fc.constant({ type: "NOPE" }),
    fc.constant({ type: "wait" }),
  ),
});

test("every run goes through the same states as plain XState actors with a simulated clock", () => {
  const k = kernel({ verifyEvery: 3 });
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 25 }), (happenings) => {
      const clock = new SimulatedClock();
      const actors = new Map<string, Actor<AnyStateMachine>>();
      let system: System = k.empty;
      let now = 0;

      const feed = (to: string, event: KernelEvent): void => {
        const input: Input = { seq: system.seq + 1, at: now, to, event };
        const step = k.step(system, input);
        system = step.system;
        for (const t of step.transitions) {
          if (t.kind === "started") {
            const input = t.chart === "engine"
              ? { helloMs: 1000, readyMs: 5000 }
              : { engines: ENGINES };
            const actor = createActor(machines[t.chart]!, { clock, input } as never);
            actors.set(t.instance, actor as Actor<AnyStateMachine>);
            actor.start();
          } else if (!t.event.type.startsWith("xstate.after")) {
            actors.get(t.instance)!.send(t.event as never);
          }
        }
      };
      const compare = (): void => {
        for (const { id, state } of system.instances) {
          const plain = actors.get(id)!.getSnapshot();
          assert.deepEqual(plain.value, state.snapshot.value, `${id} at ${now}`);
          assert.deepEqual(plain.context, state.snapshot.context, `${id} at ${now}`);
        }
      };
      const dueFirst = (): { id: string; timer: Timer } | undefined => {
        let first: { id: string; timer: Timer } | undefined;
        for (const { id, timers } of system.instances) {
          for (const timer of timers) {
            if (
              first === undefined || timer.dueAt < first.timer.dueAt ||
              (timer.dueAt === first.timer.dueAt && timer.generation < first.timer.generation)
            ) first = { id, timer };
          }
        }
        return first;
      };

      feed(SYSTEM, { type: "configured", engines: ENGINES });
      for (const { afterMs, rank, event } of happenings) {
        const until = now + afterMs;
        for (
          let due = dueFirst();
          due !== undefined && due.timer.dueAt <= until;
          due = dueFirst()
        ) {
          const { id, timer } = due;
          now = timer.dueAt;
          clock.set(now);
          feed(id, { type: "timer.fired", timer: timer.timer, generation: timer.generation });
          // Timers of the same moment fire together in the plain world.
          if (dueFirst()?.timer.dueAt !== now) compare();
        }
        now = until;
        clock.set(now);
        if (event.type !== "wait") feed(`rank/${rank}/engine`, event);
        compare();
      }
    }),
    { numRuns: 1500 },
  );
});
