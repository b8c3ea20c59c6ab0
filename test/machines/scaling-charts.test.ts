import { test } from "node:test";
import { assertPortable } from "../../src/kernel/mod.ts";
import { scalingCharts } from "../../src/machines/scaling-system.ts";

for (const [name, { machine }] of Object.entries(scalingCharts)) {
  test(`the chart ${name} is in the portable subset`, () => assertPortable(machine));
}
