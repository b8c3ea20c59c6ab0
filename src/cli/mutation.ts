/** `muster check MODEL --mutate`: breaks each chart that runs in a model, and tells which mutants its properties do not notice. */
import type { Model } from "../checker/mod.ts";
import { EXIT } from "./exit-codes.ts";
import type { LiveBlock } from "./terminal.ts";

/** Returns the exit code: 1 when a mutant survives. */
export async function mutated(
  model: Model,
  json: boolean,
  screen: LiveBlock,
  out: (text: string) => void,
): Promise<number> {
  const { chartsOf, mutationScore, mutationText } = await import("../checker/mod.ts");
  const scores = chartsOf(model).map((chart) => {
    let done = 0;
    const score = mutationScore(model, chart, {
      onMutant: (what) => {
        if (!json) screen.draw([`${chart.id}: ${++done} mutants, now: ${what}`]);
      },
    });
    if (!json) {
      screen.draw([]);
      out(`${mutationText(score)}\n`);
    }
    return score;
  });
  if (json) out(`${JSON.stringify(scores, undefined, 2)}\n`);
  return scores.every((s) => s.survivors.length === 0) ? EXIT.ok : EXIT.failed;
}
