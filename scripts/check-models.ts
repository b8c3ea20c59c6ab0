/**
 * The large models, exhaustively, with their exact state counts: `npm run check:models`. Minutes, where the tests take seconds.
 */
import process from "node:process";
import { check, type Model, verdictText } from "../src/checker/mod.ts";
import { operationModel } from "../models/operation.ts";
import { scaling } from "../models/scaling.ts";
import { startup } from "../models/startup.ts";

const models: readonly (readonly [Model, number])[] = [
  [startup({ engines: 4 }), 482_255],
  [startup({ engines: 4, launched: true }), 1_080_819],
  [scaling({ ranks: 3, target: 2 }), 2_146_889],
  [scaling({ ranks: 3, target: 4 }), 3_547_067],
  [scaling({ ranks: 3, target: 2, crashes: 0, timeouts: 0, abort: true }), 130_189],
  [operationModel({ ranks: 3, target: 4 }), 31_290],
];

for (const [model, states] of models) {
  const verdict = check(model);
  console.log(verdictText(verdict));
  if (verdict.outcome !== "ok" || verdict.states !== states) {
    console.error(`expected ok with ${states} states`);
    process.exitCode = 1;
  }
}
