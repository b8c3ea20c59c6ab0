import assert from "node:assert/strict";
import { test } from "node:test";
import { twoPhaseCommit } from "../../models/two-phase-commit.ts";
import {
  checkedCharts,
  coverageOf,
  transitionsOf,
  triggerText,
  writeChart,
} from "../../src/charts/mod.ts";
import { Checking } from "../../src/checker/mod.ts";

test("coverage of a check: every state is seen, and only the transitions that cannot happen are not", async () => {
  const checking = new Checking(twoPhaseCommit(3), { symmetry: false });
  assert.equal(checking.run().outcome, "ok");
  const charts = checkedCharts(checking);
  assert.deepEqual([...charts.keys()].sort(), ["resource-manager", "transaction-manager"]);
  const missed = (name: string) => {
    const { model, overlay } = charts.get(name)!;
    const { states, transitions } = coverageOf(model, overlay);
    const texts = new Map(
      transitionsOf(model).map((t) => [t.id, `${t.source}: ${triggerText(t.trigger)}`]),
    );
    return [states.missed, transitions.missed.map((id) => texts.get(id))];
  };
  assert.deepEqual(missed("transaction-manager"), [[], []]);
  // Nobody commits before all are prepared, and nobody is told the opposite of what was decided.
  assert.deepEqual(missed("resource-manager"), [[], [
    "resource-manager.working: Commit",
    "resource-manager.committed: Abort",
    "resource-manager.aborted: Commit",
  ]]);
  const { model, overlay } = charts.get("resource-manager")!;
  const text = await writeChart(model, "svg", { overlay: { ...overlay, coverage: true } });
  assert.match(text, /class="edge missed" data-transitions="resource-manager.working#2"/);
});

test("what a bounded check did not reach is missed", () => {
  const checking = new Checking(twoPhaseCommit(3), { symmetry: false, bounds: { depth: 1 } });
  checking.run();
  const { model, overlay } = checkedCharts(checking).get("resource-manager")!;
  assert.deepEqual(coverageOf(model, overlay).states.missed, ["resource-manager.committed"]);
});
