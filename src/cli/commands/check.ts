/** `muster check MODEL`: explore a model, or hold a record against one. */
import process from "node:process";
import type { Command } from "commander";
import type { Checking, CheckOptions, Model, Verdict } from "../../checker/mod.ts";
import { wholeNumber } from "../arguments.ts";
import type { FoundFlags } from "../check/found.ts";
import type { RandomFlags } from "../check/random.ts";
import { isRefusal, Refusal } from "../check/refusal.ts";
import type { Named } from "../check/which-model.ts";
import { EXIT } from "../exit-codes.ts";

interface Flags extends FoundFlags, RandomFlags {
  readonly list?: boolean;
  readonly log?: string;
  readonly replay?: string;
  readonly regression?: boolean;
  readonly json?: boolean;
  readonly explore?: boolean;
  readonly all?: boolean;
  readonly depthFirst?: boolean;
  readonly symmetry?: boolean;
  readonly fingerprints?: boolean;
  readonly states?: number;
  readonly depth?: number;
  readonly mutate?: boolean;
  readonly coverage?: boolean;
  readonly witnesses?: boolean;
}

type Out = (text: string) => void;

export function checkCommand(program: Command): void {
  program.command("check")
    .description("explore every interleaving of a model, or hold a record against one")
    .argument("[model]", "a model's name (--list), or ./module.js#export of your own")
    .argument("[parameters...]", "the model's own numbers: --engines 3 --crashes 1 (--list)")
    .option("--list", "list the models and their parameters")
    .option(
      "--log <record>",
      "is this journal, or recording of an original's frames, a run that its model allows? with a model: are these observations?",
    )
    .option("--trace <file>", "write the counterexample as a trace (ITF)")
    .option("--replay <file>", "replay a trace on the model")
    .option("--regression", "print the counterexample as a test for node:test")
    .option("--diagram <kind>", "how to draw the counterexample: text, mermaid or svg", "text")
    .option("--json", "print the verdict as JSON")
    .option("--explore", "open the console on the model's states")
    .option("--all", "go on after the first violation")
    .option("--depth-first", "instead of breadth-first (counterexamples are not the shortest then)")
    .option("--no-symmetry", "do not use the model's symmetry")
    .option("--coverage", "print what the check went through of each chart, and what it never met")
    .option("--witnesses", "print the shortest run to every state and transition of each chart")
    .option("--mutate", "break every chart of the model in every way: is each mutant caught?")
    .option(
      "--fingerprints",
      "keep fingerprints instead of states: less memory, collisions possible",
    )
    .option("--states <count>", "stop after so many states", wholeNumber)
    .option("--depth <steps>", "look no further than so many steps", wholeNumber)
    .option("--random [chooser]", "random runs instead: uniform or pct")
    .option("--runs <count>", "how many random runs", wholeNumber, 1000)
    .option("--steps <count>", "how long each may be", wholeNumber, 100)
    .option("--seed <number>", "the same seed gives the same runs", wholeNumber, 1)
    .allowUnknownOption()
    .action(async (name: string | undefined, rest: string[], flags: Flags, command: Command) => {
      const out = program.configureOutput().writeOut ?? ((text) => process.stdout.write(text));
      try {
        refuseIdle(command, flags);
        process.exitCode = await run(name, rest, flags, out);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        program.error(`muster check: ${error.message}`, { exitCode: EXIT.usage });
      }
    });
}

/** What can be asked for, and the flags that mean something then, beside `--json`. */
const MODES: readonly (readonly [mode: keyof Flags | undefined, flags: readonly string[]])[] = [
  ["list", []],
  ["log", []],
  ["replay", ["diagram"]],
  ["random", ["runs", "steps", "seed", "trace", "regression", "diagram"]],
  ["mutate", []],
  [
    undefined,
    "trace regression diagram explore all depthFirst symmetry coverage witnesses fingerprints states depth"
      .split(" "),
  ],
];

/** A flag that would do nothing is a mistake, and better said than left. */
function refuseIdle(command: Command, flags: Flags): void {
  const [mode, meant] = MODES.find(([mode]) => mode === undefined || flags[mode] !== undefined)!;
  for (const option of command.options) {
    const name = option.attributeName();
    if (command.getOptionValueSource(name) !== "cli") continue;
    if (name === mode || name === "json" || meant.includes(name)) continue;
    const [flag] = option.flags.split(" ");
    throw new Refusal(
      mode === undefined
        ? `${flag} is for --random`
        : `${flag} does nothing together with --${mode}`,
    );
  }
}

async function run(
  name: string | undefined,
  rest: readonly string[],
  flags: Flags,
  out: Out,
): Promise<number> {
  const { models } = await import("../../../models/mod.ts");
  const { listed, modelOf } = await import("../check/which-model.ts");
  const json = flags.json === true;
  if (flags.list) {
    out(`${listed(models).join("\n")}\n`);
    return EXIT.ok;
  }
  if (flags.log !== undefined) {
    const named = name === undefined ? undefined : await modelOf(name, rest, models);
    const { checkLog } = await import("../check/log.ts");
    return checkLog(flags.log, named?.model, json, out);
  }
  if (name === undefined) {
    throw new Refusal(`name a model: ${Object.keys(models).join(", ")}, or ./module.js#export`);
  }
  const { refuseEarly } = await import("../check/found.ts");
  refuseEarly(flags);
  const named = await modelOf(name, rest, models);
  if (flags.replay !== undefined) {
    const { replayed } = await import("../check/random.ts");
    return await replayed(named.model, flags.replay, flags.diagram, json, out);
  }
  const { Watch } = await import("../check/watch.ts");
  const watch = new Watch(named.model.name, { limit: flags.states });
  try {
    if (flags.random !== undefined) return await random(named, [name, ...rest], flags, watch, out);
    if (flags.mutate) {
      const { mutated } = await import("../mutation.ts");
      return await mutated(named.model, json, watch, out);
    }
    return await search(named, [name, ...rest], flags, watch, out);
  } finally {
    watch.end();
  }
}

type Watch = InstanceType<typeof import("../check/watch.ts").Watch>;

async function search(
  named: Named,
  command: readonly string[],
  flags: Flags,
  watch: Watch,
  out: Out,
): Promise<number> {
  const { model } = named;
  const { Checking, coverageOf, coverageText, verdictText, witnessesOf } = await import(
    "../../checker/mod.ts"
  );
  const { drawn, testOf, writeTrace } = await import("../check/found.ts");
  const checking: Checking = new Checking(model, {
    ...searchOptions(flags),
    onProgress: watch.onProgress,
  });
  const verdict = await checking.runAsync(watch.signal);
  watch.end();
  const violation = verdict.violations.find((v) => v.trace !== undefined);
  const test = testOf(violation, named, flags);
  const coverage = flags.coverage === true ? coverageOf(checking) : undefined;
  const reached = flags.witnesses === true
    ? witnessesOf(checking).map(({ trace, ...first }) => ({
      ...first,
      run: trace.steps.map((s) => s.action.label),
    }))
    : undefined;
  if (flags.json) {
    const all = { ...verdict, regression: test, coverage, reached };
    out(`${JSON.stringify(all, undefined, 2)}\n`);
  } else {
    out(`${verdictText(verdict)}\n`);
    if (violation !== undefined) out(`\n${await drawn(violation.trace!, flags.diagram)}\n`);
    if (test !== undefined) out(`\n${test}`);
    const alone = coverage === undefined && reached === undefined && !flags.explore;
    if (verdict.outcome === "ok" && named.original !== undefined && alone) {
      const { originalText } = await import("../check/original.ts");
      out(`\n${await originalText(named.original, flags.diagram)}\n`);
    }
    if (coverage !== undefined) out(`\n${coverageText(coverage)}\n`);
    for (const { what, instance, run } of reached ?? []) {
      out(`\n${what}, by ${instance}, after ${run.length} steps\n`);
      for (const label of run) out(`  ${label}\n`);
    }
  }
  writeTrace(flags, violation, command);
  if (verdict.stoppedBy === "interrupted") return EXIT.interrupted;
  if (flags.explore) await explore(model, verdict, flags, out);
  return verdict.outcome === "violated" ? EXIT.failed : EXIT.ok;
}

function searchOptions(flags: Flags): CheckOptions {
  if (flags.fingerprints && flags.depthFirst) {
    throw new Refusal("--fingerprints goes with breadth-first search: leave --depth-first out");
  }
  if (flags.fingerprints && (flags.coverage || flags.witnesses)) {
    const flag = flags.coverage ? "--coverage" : "--witnesses";
    throw new Refusal(`${flag} looks at all states again, which --fingerprints does not keep`);
  }
  const { states, depth } = flags;
  return {
    ...(flags.depthFirst ? { order: "depth-first" } : {}),
    ...(flags.symmetry === false ? { symmetry: false } : {}),
    ...(flags.all ? { all: true } : {}),
    ...(flags.fingerprints ? { fingerprints: true } : {}),
    bounds: {
      ...(states === undefined ? {} : { states }),
      ...(depth === undefined ? {} : { depth }),
    },
  };
}

async function random(
  named: Named,
  command: readonly string[],
  flags: Flags,
  watch: Watch,
  out: Out,
): Promise<number> {
  const { simulated, simulationText } = await import("../check/random.ts");
  const result = await simulated(named.model, flags, watch);
  watch.end();
  const { violation } = result;
  const { testOf, writeTrace } = await import("../check/found.ts");
  const test = testOf(violation, named, flags);
  if (flags.json) out(`${JSON.stringify({ ...result, regression: test }, undefined, 2)}\n`);
  else {
    out(`${await simulationText(result, flags.diagram)}\n`);
    if (test !== undefined) out(`\n${test}`);
  }
  writeTrace(flags, violation, command);
  if (violation !== undefined) return EXIT.failed;
  return watch.signal.aborted ? EXIT.interrupted : EXIT.ok;
}

async function explore(model: Model, verdict: Verdict, flags: Flags, out: Out): Promise<void> {
  const { emptySource, modelExplorer, startConsole } = await import("../../console/mod.ts");
  const server = await startConsole({
    source: emptySource,
    explorer: modelExplorer(model, verdict),
    host: "127.0.0.1",
    port: 0,
  });
  if (flags.json) process.stderr.write(`${server.address}\n`);
  else out(`${server.address}\n`);
  await new Promise<void>((done) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => done());
  });
  await server.close();
}
