import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ChartTracker,
  type ChartTransition,
  coverageOf,
  TrackedCharts,
  transitionsOf,
  triggerText,
} from "../../src/charts/mod.ts";
import { machines } from "../../src/machines/mod.ts";
import { Run } from "../machines/fixture.ts";

const charts = new TrackedCharts(machines);
const nameOf = (t: ChartTransition): string =>
  `${t.source}: ${triggerText(t.trigger)} -> ${t.targets.join(" ")}`;

test("visits, taken transitions and refusals of a run are counted, always-transitions included", () => {
  const run = new Run();
  run.hello(0);
  run.hello(1);
  run.ready(0);
  run.ready(0);
  run.ready(1);
  const tracker = new ChartTracker(charts);
  for (const step of run.steps) tracker.apply(step.transitions);
  const engine = tracker.overlay("engine");
  assert.deepEqual(Object.fromEntries(engine.visits ?? []), {
    "engine": 2,
    "engine.awaited": 2,
    "engine.connected": 2,
    "engine.ready": 2,
  });
  // Both HELLOs, both READYs, and the READY that was said again and ignored on purpose.
  const names = new Map(transitionsOf(charts.model("engine")!).map((t) => [t.id, nameOf(t)]));
  assert.equal(
    names.get(tracker.lastOf("rank/0/engine")!),
    "engine.connected: ready -> engine.ready",
  );
  assert.deepEqual([...engine.taken ?? []].map(([id, n]) => [names.get(id), n]), [
    ["engine.awaited: hello -> engine.connected", 2],
    ["engine.connected: ready -> engine.ready", 2],
    ["engine.ready: ready -> ", 1],
  ]);
  const startup = tracker.overlay("startup");
  assert.equal(startup.visits?.get("startup.formed"), 1);
  const always = transitionsOf(charts.model("startup")!)
    .filter((t) => t.trigger.kind === "always" && startup.taken?.get(t.id));
  assert.deepEqual(always.map((t) => t.targets), [["startup.starting.forming"], [
    "startup.formed",
  ]]);
  const { states } = coverageOf(charts.model("engine")!, engine);
  assert.deepEqual([states.seen, states.all, states.missed], [3, 11, [
    "engine.adopting",
    "engine.restarting",
    "engine.leaving",
    "engine.left",
    "engine.late",
    "engine.lost",
    "engine.stopped",
    "engine.restarted",
  ]]);
});

test("a copy of a tracker goes its own way", () => {
  const run = new Run();
  const tracker = new ChartTracker(charts);
  for (const step of run.steps) tracker.apply(step.transitions);
  const copy = tracker.clone();
  copy.apply(run.hello(0).transitions);
  assert.equal(tracker.overlay("engine").visits?.get("engine.connected"), undefined);
  assert.equal(copy.overlay("engine").visits?.get("engine.connected"), 1);
});
