import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ChartLayout,
  chartModel,
  layoutChart,
  nodesOf,
  readScxml,
  scxmlFaults,
  toScxml,
  toSvg,
} from "../../src/charts/mod.ts";
import { widthOf } from "../../src/charts/svg/measure.ts";
import { parseXml } from "../../src/charts/xml.ts";
import { machines } from "../../src/machines/mod.ts";
import { everything } from "./samples.ts";

const models = Object.values({ ...machines, everything }).map(chartModel);

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
const overlap = (a: Box, b: Box): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

/** Pairs of labels and childless states that lie on each other. */
function collisions(layout: ChartLayout, leaves: ReadonlySet<string>): string[] {
  const things = [
    ...layout.edges.flatMap((e) => e.label ? [{ name: `label ${e.id}`, box: e.label }] : []),
    ...layout.nodes.filter((n) => leaves.has(n.id)).map((n) => ({ name: n.id, box: n })),
  ];
  return things.flatMap((a, i) =>
    things.slice(i + 1).filter((b) => overlap(a.box, b.box)).map((b) => `${a.name} on ${b.name}`)
  );
}

for (const model of models) {
  const leaves = new Set(nodesOf(model).filter((n) => n.children.length === 0).map((n) => n.id));

  test(`${model.id}: no label lies on a label or a state, every text fits into its state`, async () => {
    for (const counts of [false, true]) {
      const layout = await layoutChart(model, { counts });
      assert.deepEqual(collisions(layout, leaves), []);
      const spilt = layout.nodes.flatMap((node) =>
        node.lines.map((l) => l.tail === undefined ? l.text : `${l.text} ${l.tail}`)
          .filter((text) => widthOf(text, 12) + 12 > node.width)
          .map((text) => `${node.id}: ${text}`)
      );
      assert.deepEqual(spilt, []);
    }
  });

  test(`${model.id}: the text of every label begins or ends at its own arrow`, async () => {
    const layout = await layoutChart(model);
    const labelled = layout.edges.filter((edge) => edge.label !== undefined);
    const drawn = [
      ...toSvg(model, layout).matchAll(/<g class="label( before)?">\n<text [^>]* x="([^"]+)"/g),
    ];
    assert.equal(drawn.length, labelled.length);
    const astray = labelled.filter(({ label, points }, i) => {
      const { y, height } = label!;
      const beside = points.flatMap((b, j) => {
        const a = points[j - 1];
        const [high, low] = [Math.min(a?.y ?? b.y, b.y), Math.max(a?.y ?? b.y, b.y)];
        return a?.x === b.x && high <= y + height && y <= low ? [b.x] : [];
      });
      const nearest = Math.min(...beside.map((x) => Math.abs(x - Number(drawn[i]![2]))));
      return beside.length > 0 && nearest > 8;
    });
    assert.deepEqual(astray.map((edge) => edge.id), []);
  });

  test(`${model.id}: its SCXML is valid and reads back as the same chart`, () => {
    const text = toScxml(model);
    assert.deepEqual(scxmlFaults(parseXml(text)), []);
    assert.deepEqual(readScxml(text), JSON.parse(JSON.stringify(model)));
  });
}
