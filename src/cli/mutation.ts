/** `muster check MODEL --mutate`: breaks each chart that runs in a model, and tells which mutants its properties do not notice. */
import type { Model, MutationScore } from "../checker/mod.ts";
import type { Watch } from "./check/watch.ts";
import { EXIT } from "./exit-codes.ts";

/** Returns the exit code: 1 when a mutant survives. */
export async function mutated(
  model: Model,
  json: boolean,
  watch: Watch,
  out: (text: string) => void,
): Promise<number> {
  const { chartsOf, mutationScoreAsync, mutationText } = await import("../checker/mod.ts");
  const scores: MutationScore[] = [];
  const began = performance.now();
  for (const chart of chartsOf(model)) {
    let done = 0;
    const score = await mutationScoreAsync(model, chart, {
      signal: watch.signal,
      onMutant: (what) =>
        watch.draw(
          `${chart.id}: ${++done} mutants, now: ${what}`,
          (performance.now() - began) / 1000,
        ),
    });
    scores.push(score);
    if (!json) {
      watch.clear();
      out(`${mutationText(score)}\n`);
    }
    if (watch.signal.aborted) break;
  }
  watch.end();
  if (json) out(`${JSON.stringify(scores, undefined, 2)}\n`);
  if (watch.signal.aborted) return EXIT.interrupted;
  return scores.every((s) => s.survivors.length === 0) ? EXIT.ok : EXIT.failed;
}
