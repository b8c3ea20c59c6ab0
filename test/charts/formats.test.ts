import assert from "node:assert/strict";
import { test } from "node:test";
import { createMachine } from "xstate";
import {
  activeStates,
  ChartError,
  chartFormat,
  chartModel,
  layoutChart,
  nodesOf,
  toAscii,
  toSvg,
  toXStateJson,
  transitionsOf,
  writeChart,
} from "../../src/charts/mod.ts";
import { parseXml, type XmlElement } from "../../src/charts/xml.ts";
import { everything } from "./samples.ts";

const model = chartModel(everything);

test("XState's JSON makes a machine of the same structure", () => {
  const again = chartModel(createMachine(JSON.parse(toXStateJson(model))));
  const shape = (m: typeof model) => [
    nodesOf(m).map(({ id, kind, initial, entry, exit, description }) => ({
      id,
      kind,
      initial,
      entry,
      exit,
      description,
    })),
    transitionsOf(m).map(({ id, targets, trigger, eventType, actions, reenter }) => ({
      id,
      targets,
      trigger,
      eventType,
      actions,
      reenter,
    })),
  ];
  assert.deepEqual(shape(again), shape(model));
});

test("a chart in the terminal: boxes, columns, marks for the initial, final and remembering states", () => {
  const small = createMachine({
    id: "lamp",
    initial: "off",
    states: {
      off: { on: { press: { target: "on", actions: "glow" }, dust: {} } },
      on: { after: { 3000: "off" }, on: { press: "off", smash: "broken" } },
      broken: { type: "final" },
    },
  });
  assert.equal(
    toAscii(chartModel(small)),
    [
      "╭─ lamp ──────────────────╮",
      "│ ▶ off                   │",
      "│     press  → on  / glow │",
      "│     ignores dust        │",
      "│                         │",
      "│ ○ on                    │",
      "│     press      → off    │",
      "│     smash      → broken │",
      "│     after 3 s  → off    │",
      "│                         │",
      "│ ◉ broken                │",
      "╰─────────────────────────╯",
      "",
    ].join("\n"),
  );
});

test("every line of a box in the terminal is as wide as the box, with colours too", () => {
  const active = activeStates(model, { running: { door: "shut", clock: "over" } });
  const colored = toAscii(model, { color: true, width: 70, overlay: { active, coverage: true } });
  assert.ok(colored.includes("\u001b[32m"));
  // deno-lint-ignore no-control-regex
  const bare = colored.replaceAll(/\u001b\[\d*m/g, "").trimEnd().split("\n");
  assert.deepEqual([...new Set(bare.map((line) => [...line].length))].length, 1);
});

test("SVG is well-formed, byte-stable, and names every state and transition by a stable id", async () => {
  const layout = await layoutChart(model);
  const text = toSvg(model, layout);
  assert.equal(toSvg(model, await layoutChart(model)), text);
  const all: XmlElement[] = [];
  const visit = (element: XmlElement): void => {
    all.push(element);
    element.children.forEach(visit);
  };
  visit(parseXml(text));
  const ids = all.flatMap((element) => element.attributes["id"] ?? []);
  assert.equal(new Set(ids).size, ids.length, "ids are unique");
  const states = all.flatMap((element) => element.attributes["data-state"] ?? []);
  assert.deepEqual(states, nodesOf(model).map((node) => node.id));
  const drawn = all.flatMap((e) =>
    e.attributes["data-transitions"]?.split(" ").filter(Boolean) ?? []
  );
  const inside = all.flatMap((e) => e.attributes["data-transition"] ?? []);
  const shown = new Set([...drawn, ...inside]);
  const silent = transitionsOf(model).filter((t) => !shown.has(t.id));
  assert.deepEqual(
    silent.map((t) => t.id),
    ["everything.idle#2"],
    "only what is ignored has no line",
  );
  assert.match(text, /prefers-color-scheme:dark/);
});

test("an overlay colours active states, the last transition and what was never seen", async () => {
  const text = await writeChart(model, "svg", {
    overlay: {
      active: activeStates(model, "idle"),
      visits: new Map([["everything.idle", 3]]),
      taken: new Map([["everything.idle#1", 2]]),
      last: "everything.idle#1",
      coverage: true,
    },
  });
  assert.match(text, /id="state-everything.idle" class="state atomic even active"/);
  assert.match(text, /id="state-everything.broken" class="state atomic even missed"/);
  assert.match(text, /class="edge taken last" data-transitions="everything.idle#1"/);
  assert.match(text, /×3<\/text>/);
});

test("an unknown format is refused with those there are", () => {
  assert.throws(() => chartFormat("png"), (error) => {
    assert.ok(error instanceof ChartError && error.code === "chart.format-unknown");
    assert.match(error.message, /ascii, svg, mermaid, scxml, json, model/);
    return true;
  });
});
