/** `muster check MODEL`: explore a model, or hold a journal against one. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type { Command } from "commander";
import type { CheckOptions, Model, Progress, Simulation, Verdict } from "../../checker/mod.ts";
import type { NamedModel } from "../../../models/mod.ts";
import { wholeNumber } from "../arguments.ts";
import { EXIT } from "../exit-codes.ts";
import { LiveBlock, terminal } from "../terminal.ts";
import { columns } from "../text.ts";

interface Flags {
  readonly list?: boolean;
  readonly log?: string;
  readonly trace?: string;
  readonly replay?: string;
  readonly regression?: boolean;
  readonly diagram?: string;
  readonly json?: boolean;
  readonly explore?: boolean;
  readonly all?: boolean;
  readonly depthFirst?: boolean;
  readonly symmetry?: boolean;
  readonly fingerprints?: boolean;
  readonly states?: number;
  readonly depth?: number;
  readonly random?: string | boolean;
  readonly runs: number;
  readonly steps: number;
  readonly seed: number;
  readonly mutate?: boolean;
  readonly coverage?: boolean;
}

type Diagram = "text" | "mermaid" | "svg";

export function checkCommand(program: Command): void {
  program.command("check")
    .description("explore every interleaving of a model, or hold a journal against one")
    .argument("[model]", "a model's name (--list), or ./module.js#export of your own")
    .argument("[parameters...]", "the model's own numbers: --engines 3 --crashes 1 (--list)")
    .option("--list", "list the models and their parameters")
    .option("--log <journal>", "is this journal (directory or file) a run that the model allows?")
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
    .action(async (name: string | undefined, rest: string[], flags: Flags) => {
      const out = program.configureOutput().writeOut ?? ((text) => process.stdout.write(text));
      try {
        process.exitCode = await run(name, rest, flags, out);
      } catch (error) {
        if (!(error instanceof Refusal || (error as { code?: string }).code === "unfit-model")) {
          throw error;
        }
        program.error(`muster check: ${(error as Error).message}`, { exitCode: EXIT.usage });
      }
    });
}

/** The command line asks for something that there is not. */
class Refusal extends Error {}

async function run(
  name: string | undefined,
  rest: readonly string[],
  flags: Flags,
  out: (text: string) => void,
): Promise<number> {
  const { models } = await import("../../../models/mod.ts");
  if (flags.list) {
    out(`${listed(models).join("\n")}\n`);
    return EXIT.ok;
  }
  if (flags.log !== undefined) {
    if (name !== undefined) {
      throw new Refusal("--log finds the model of a journal by itself: leave the model out");
    }
    return await checkLog(flags.log, flags, out);
  }
  if (name === undefined) {
    throw new Refusal(`name a model: ${Object.keys(models).join(", ")}, or ./module.js#export`);
  }
  const model = await modelOf(name, rest, models);
  if (flags.replay !== undefined) return await replayed(model, flags.replay, out);
  if (flags.random !== undefined) return await simulated(model, flags, out);
  const checker = await import("../../checker/mod.ts");
  const options: { -readonly [K in keyof CheckOptions]: CheckOptions[K] } = {};
  if (flags.depthFirst) options.order = "depth-first";
  if (flags.symmetry === false) options.symmetry = false;
  if (flags.all) options.all = true;
  if (flags.fingerprints) {
    if (flags.depthFirst) {
      throw new Refusal("--fingerprints goes with breadth-first search: leave --depth-first out");
    }
    options.fingerprints = true;
  }
  const bounds: { states?: number; depth?: number } = {};
  if (flags.states !== undefined) bounds.states = flags.states;
  if (flags.depth !== undefined) bounds.depth = flags.depth;
  options.bounds = bounds;
  const screen = new LiveBlock({
    ...terminal(),
    live: process.stderr.isTTY === true,
    write: (t) => void process.stderr.write(t),
  });
  if (!flags.json) {
    options.onProgress = (progress) =>
      screen.draw(progressLines(model.name, progress, bounds.states));
  }
  if (flags.mutate) {
    const { mutated } = await import("../mutation.ts");
    return await mutated(model, flags.json === true, screen, out);
  }
  const checking = new checker.Checking(model, options);
  const verdict = checking.run();
  if (!flags.json) screen.draw([]);
  await report(verdict, name, rest, flags, out);
  if (flags.coverage) out(`\n${checker.coverageText(checker.coverageOf(checking))}\n`);
  if (flags.explore) await explore(model, verdict, out);
  return verdict.outcome === "violated" ? EXIT.failed : EXIT.ok;
}

async function report(
  verdict: Verdict,
  name: string,
  rest: readonly string[],
  flags: Flags,
  out: (text: string) => void,
): Promise<void> {
  const { regressionTest, toItf, verdictText } = await import("../../checker/mod.ts");
  const violation = verdict.violations.find((v) => v.trace !== undefined);
  if (flags.json) out(`${JSON.stringify(verdict, undefined, 2)}\n`);
  else {
    out(`${verdictText(verdict)}\n`);
    if (violation !== undefined) out(`\n${await drawn(violation.trace!, flags.diagram)}\n`);
  }
  if (violation === undefined) {
    if (flags.trace !== undefined) process.stderr.write("there is no counterexample to write\n");
    return;
  }
  if (flags.trace !== undefined) {
    const itf = toItf(violation.trace!, violation.property);
    writeFileSync(flags.trace, `${JSON.stringify(itf, undefined, 1)}\n`);
    process.stderr.write(
      `wrote ${flags.trace}; replay it: muster check ${name} ${
        [...rest, ""].join(" ")
      }--replay ${flags.trace}\n`,
    );
  }
  if (flags.regression) {
    const { models } = await import("../../../models/mod.ts");
    const [path, exported] = name.split("#");
    out(
      `\n${
        regressionTest(
          violation,
          models[name] === undefined
            ? { from: path!, model: exported ?? "model" }
            : { from: "muster/models", model: built(name, rest, models[name]) },
        )
      }`,
    );
  }
}

/** The expression that makes a model of ours again. */
const built = (name: string, rest: readonly string[], { parameters }: NamedModel): string =>
  `models[${JSON.stringify(name)}]!.build(${JSON.stringify(valuesOf(name, rest, parameters))})`;

const CHART: readonly Diagram[] = ["text", "mermaid", "svg"];

async function drawn(
  trace: Parameters<typeof import("../../charts/mod.ts").stepsOfTrace>[0],
  kind: string | undefined,
): Promise<string> {
  const charts = await import("../../charts/mod.ts");
  const steps = charts.stepsOfTrace(trace);
  switch (kind as Diagram) {
    case "text":
      return charts.toSequenceText(steps);
    case "mermaid":
      return charts.toSequenceMermaid(steps);
    case "svg":
      return charts.toSequenceSvg(steps);
    default:
      throw new Refusal(`--diagram is ${kind}: ${CHART.join(", ")}`);
  }
}

async function simulated(model: Model, flags: Flags, out: (text: string) => void): Promise<number> {
  const chooser = flags.random === true ? "uniform" : flags.random;
  if (chooser !== "uniform" && chooser !== "pct") {
    throw new Refusal(`--random is ${chooser}: uniform or pct`);
  }
  const { simulate, traceText } = await import("../../checker/mod.ts");
  const { runs, steps, seed } = flags;
  const result: Simulation = simulate(model, { chooser, runs, steps, seed });
  if (flags.json) out(`${JSON.stringify(result, undefined, 2)}\n`);
  else {
    const { violation } = result;
    out(
      `${
        violation === undefined ? "inconclusive" : "violated"
      }: ${model.name}: ${result.runs} random runs (${chooser}, seed ${seed}), ${result.steps} steps, ${result.ends} different ends, ${
        result.seconds.toFixed(2)
      } s\n`,
    );
    if (violation === undefined) out("  Random runs that break nothing prove nothing.\n");
    else {
      const { found, arguments: shrunk, search } = violation.shrunk;
      out(
        `\nalways violated: ${violation.property}\n  found in run ${violation.run} after ${found} steps, shrunk to ${shrunk}${
          search === undefined ? "" : `; the shortest has ${search}`
        }\n${traceText(violation.trace)}\n\n${await drawn(violation.trace, flags.diagram)}\n`,
      );
    }
  }
  return result.violation === undefined ? EXIT.ok : EXIT.failed;
}

async function replayed(model: Model, path: string, out: (text: string) => void): Promise<number> {
  const { replay, traceText } = await import("../../checker/mod.ts");
  const trace = replay(model, JSON.parse(readFileSync(path, "utf8")));
  out(`${traceText(trace)}\n\n${await drawn(trace, "text")}\n`);
  return EXIT.ok;
}

async function checkLog(path: string, flags: Flags, out: (text: string) => void): Promise<number> {
  if (!existsSync(path)) throw new Refusal(`there is no journal at ${path}`);
  const { readerOf } = await import("../journal-source.ts");
  const { conformanceText } = await import("../../checker/mod.ts");
  const { conformJournal } = await import("../../../models/conformance.ts");
  const inputs = [...readerOf(path).records()].map((r) => r.record);
  const result = conformJournal(inputs);
  if (flags.json) out(`${JSON.stringify(result, undefined, 2)}\n`);
  else {
    out(`${conformanceText(result)}\n`);
    const leftOut = Object.entries(result.leftOut).map(([what, n]) => `${n} x ${what}`);
    if (leftOut.length > 0) {
      out(`  not compared, the model is not about them: ${leftOut.join(", ")}\n`);
    }
  }
  return result.outcome === "conforms" ? EXIT.ok : EXIT.failed;
}

async function explore(model: Model, verdict: Verdict, out: (text: string) => void): Promise<void> {
  const { emptySource, modelExplorer, startConsole } = await import("../../console/mod.ts");
  const server = await startConsole({
    source: emptySource,
    explorer: modelExplorer(model, verdict),
    host: "127.0.0.1",
    port: 0,
  });
  out(`${server.address}\n`);
  await new Promise<void>((done) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => done());
  });
  await server.close();
}

// ---- which model --------------------------------------------------------------------------------------------------

async function modelOf(
  name: string,
  rest: readonly string[],
  models: Readonly<Record<string, NamedModel>>,
): Promise<Model> {
  const known = models[name];
  if (known !== undefined) return known.build(valuesOf(name, rest, known.parameters));
  const [path, wanted] = name.split("#");
  if (!/[./\\]/.test(path!) || name.startsWith("upstream/")) {
    throw new Refusal(
      `there is no model ${name}: ${Object.keys(models).join(", ")}, or ./module.js#export`,
    );
  }
  if (!existsSync(path!)) throw new Refusal(`there is no file ${path}`);
  const module = await import(pathToFileURL(resolve(path!)).href) as Record<string, unknown>;
  const found = module[wanted ?? "default"] ?? (wanted === undefined ? module["model"] : undefined);
  const model = typeof found === "function" ? found(Object.fromEntries(pairsOf(rest))) : found;
  if (typeof model !== "object" || model === null || !("processes" in model)) {
    throw new Refusal(
      `${path} exports no model${
        wanted === undefined ? " as default or model" : ` ${wanted}`
      }: make it with defineModel, or export a function that does`,
    );
  }
  return model as Model;
}

/** `--engines 3` or `--engines=3` as pairs. */
function pairsOf(rest: readonly string[]): [string, number][] {
  const pairs: [string, number][] = [];
  for (let i = 0; i < rest.length; i++) {
    const [, name, inline] = /^--([\w-]+)(?:=(.*))?$/.exec(rest[i]!) ?? [];
    if (name === undefined) {
      throw new Refusal(`${rest[i]} is no parameter; they look like --engines 3`);
    }
    const text = inline ?? rest[++i];
    const value = Number(text);
    if (text === undefined || !Number.isInteger(value)) {
      throw new Refusal(
        `--${name} needs a whole number${text === undefined ? "" : `, not ${text}`}`,
      );
    }
    pairs.push([name, value]);
  }
  return pairs;
}

function valuesOf(
  model: string,
  rest: readonly string[],
  parameters: NamedModel["parameters"],
): Record<string, number> {
  const values = Object.fromEntries(Object.entries(parameters).map(([n, p]) => [n, p.default]));
  for (const [name, value] of pairsOf(rest)) {
    if (!(name in parameters)) {
      const there = Object.keys(parameters).map((p) => `--${p}`).join(", ");
      throw new Refusal(
        `the model ${model} has no parameter --${name}${there === "" ? "" : `; it has ${there}`}`,
      );
    }
    const { least = 0 } = parameters[name]!;
    if (value < least) throw new Refusal(`--${name} ${value}: it must be ${least} or more`);
    values[name] = value;
  }
  return values;
}

function listed(models: Readonly<Record<string, NamedModel>>): string[] {
  return columns(
    Object.entries(models).flatMap(([name, { what, parameters }]) => [
      [name, what],
      ...Object.entries(parameters).map((
        [p, { what, default: d }],
      ) => ["", `--${p} ${d}   ${what}`]),
    ]),
  );
}

function progressLines(name: string, p: Progress, limit: number | undefined): string[] {
  const rate = p.states / Math.max(p.seconds, 0.001);
  const left = limit === undefined ? undefined : (limit - p.states) / rate;
  const grouped = (n: number) => Math.round(n).toLocaleString("en-US");
  return [
    `${name}`,
    `  ${grouped(p.states)} states, depth ${p.depth}, frontier ${grouped(p.frontier)}, ${
      grouped(rate)
    } states a second, ${p.seconds.toFixed(1)} s${
      left === undefined ? estimated(p, rate) : `, at most ${left.toFixed(0)} s more`
    }`,
  ];
}

/** A frontier that shrinks says how long it may still take; one that grows says nothing. */
const estimated = (p: Progress, rate: number): string =>
  p.frontier < p.states / 4 ? `, about ${(p.frontier / rate).toFixed(0)} s more at least` : "";
