/** A counterexample as a test of the project that found it. */
import type { Violation } from "./check.ts";

export interface RegressionOptions {
  /** The module that exports the model, as the test imports it. */
  readonly from: string;
  /** What the module exports: a name, or an expression such as `agreement({ ranks: 2 })`. */
  readonly model: string;
  /** What is imported from there, when it is not the first name of {@link model}: `default as model`. */
  readonly imports?: string;
  /** Where the checker comes from (default `muster/checker`). */
  readonly checker?: string;
}

/**
 * The text of a test for `node:test` (Node and Deno). It fails as long as the counterexample is a run of the model, and says so; once the
 * model does something else, it passes.
 */
export function regressionTest(
  violation: Pick<Violation, "property" | "trace">,
  options: RegressionOptions,
): string {
  const { from, model, checker = "muster/checker" } = options;
  const imported = options.imports ?? /^[\w$]+/.exec(model)?.[0] ?? model;
  const { steps = [], loop } = violation.trace ?? {};
  const again = loop === undefined ? "" : `, ${loop}`;
  const name = `${violation.property}: the run of ${steps.length} steps that broke it`;
  const lines = [
    'import assert from "node:assert/strict";',
    'import { test } from "node:test";',
    `import { breaks } from ${JSON.stringify(checker)};`,
    `import { ${imported} } from ${JSON.stringify(from)};`,
    "",
    `test(${JSON.stringify(name)}, () => {`,
    "  const run = [",
    ...steps.map((s) => `    ${JSON.stringify(s.action.label)},`),
    "  ];",
    `  assert.equal(breaks(${model}, ${
      JSON.stringify(violation.property)
    }, run${again}), undefined);`,
    "});",
    "",
  ];
  return lines.join("\n");
}
