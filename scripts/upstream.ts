/** Writes models/upstream/README.md and the drawings beside it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { check } from "../src/checker/mod.ts";
import { stepsOfTrace, toSequenceSvg } from "../src/charts/mod.ts";
import { upstreamPage } from "../models/upstream/drawings.ts";
import { upstreamDefects } from "../models/upstream/mod.ts";

writeFileSync("models/upstream/README.md", upstreamPage());
mkdirSync("models/upstream/drawings", { recursive: true });
for (const { name, model, property } of upstreamDefects) {
  const trace = check(model).violations.find((v) => v.property === property)?.trace;
  if (trace !== undefined) {
    writeFileSync(`models/upstream/drawings/${name}.svg`, toSequenceSvg(stepsOfTrace(trace)));
  }
}
