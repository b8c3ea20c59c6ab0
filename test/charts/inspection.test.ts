import assert from "node:assert/strict";
import { test } from "node:test";
import { createActor, type InspectionEvent } from "xstate";
import { inspectSteps } from "../../src/charts/mod.ts";
import { engine, machines } from "../../src/machines/mod.ts";
import { Run } from "../machines/fixture.ts";

/** What a tool sees of an inspection event, without the identity of the actor. */
function seen(event: InspectionEvent): unknown {
  const { type, event: cause, snapshot, action } = event as InspectionEvent & {
    event?: unknown;
    snapshot?: { value?: unknown; status?: unknown; context?: unknown };
    action?: unknown;
  };
  return JSON.parse(JSON.stringify({
    type,
    event: cause,
    action,
    ...(snapshot
      ? { value: snapshot.value, status: snapshot.status, context: snapshot.context }
      : {}),
  }));
}

const idOf = (ref: unknown): string => (ref as { id: string }).id;

test("an inspector gets for an instance exactly what a plain actor of its chart would give it", () => {
  const run = new Run();
  run.hello(0);
  run.say("rank/0/engine", { type: "mystery" });
  run.ready(0, { local: false });
  run.ready(0);
  run.say("rank/0/engine", { type: "exited", code: 1, signal: null });
  const ours: InspectionEvent[] = [];
  const follow = inspectSteps(machines, (event) => void ours.push(event));
  run.steps.forEach(follow);

  const plain: InspectionEvent[] = [];
  const own = run.steps.flatMap((s) => s.transitions).filter((t) => t.instance === "rank/0/engine");
  const actor = createActor(engine, {
    input: own[0]!.event["input"] as never,
    inspect: (event) => void plain.push(event),
    clock: { setTimeout: () => 0, clearTimeout: () => {} },
  });
  actor.start();
  for (const { event } of own.slice(1)) actor.send(event as never);

  const mine = ours.filter((event) => idOf(event.actorRef) === "rank/0/engine");
  assert.deepEqual(mine.map(seen), plain.map(seen));
  assert.deepEqual(
    [...new Set(mine.map((event) => event.type))].sort(),
    ["@xstate.action", "@xstate.actor", "@xstate.event", "@xstate.microstep", "@xstate.snapshot"],
  );
});

test("its snapshots are those of the run, after every delivery", () => {
  const run = new Run();
  run.hello(0);
  run.hello(1);
  run.ready(0);
  run.fire("rank/1/engine", "readyDeadline");
  const last = new Map<string, unknown>();
  const follow = inspectSteps(machines, {
    next: (event) => {
      if (event.type !== "@xstate.snapshot") return;
      last.set(
        idOf(event.actorRef),
        (event.snapshot as unknown as { value: unknown }).value,
      );
    },
  });
  run.steps.forEach(follow);
  const now = new Map([...run.system.instances].map((i) => [i.id, i.state.snapshot.value]));
  for (const [id, value] of now) assert.deepEqual(last.get(id), value, id);
});

test("what one instance tells another names its sender", () => {
  const run = new Run();
  const told: [string, string, string][] = [];
  const follow = inspectSteps(machines, (event) => {
    if (event.type !== "@xstate.event" || event.sourceRef === undefined) return;
    told.push([idOf(event.sourceRef), idOf(event.actorRef), event.event.type]);
  });
  run.steps.forEach(follow);
  follow(run.hello(1));
  assert.deepEqual(told.slice(-1), [["rank/1/engine", "startup", "rankConnected"]]);
});

test("an instance that is met in the middle of a run begins with the state that it has", () => {
  const run = new Run();
  run.hello(0);
  const values: unknown[] = [];
  const follow = inspectSteps(machines, (event) => {
    if (
      event.type === "@xstate.snapshot" && idOf(event.actorRef) === "rank/0/engine"
    ) {
      values.push((event.snapshot as unknown as { value: unknown }).value);
    }
  });
  follow(run.ready(0));
  assert.deepEqual(values, ["connected", "ready"]);
});
