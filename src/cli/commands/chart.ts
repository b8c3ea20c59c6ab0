import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type { Command } from "commander";
import {
  ChartError,
  type ChartFormat,
  chartFormat,
  chartFormats,
  type ChartModel,
  chartModel,
  type ChartOverlay,
  ChartTracker,
  checkedCharts,
  coverageOf,
  isMachine,
  type MachineLike,
  TrackedCharts,
  writeChart,
} from "../../charts/mod.ts";
import { machines } from "../../machines/mod.ts";
import { wholeNumber } from "../arguments.ts";

interface Flags {
  readonly format: string;
  readonly out?: string;
  readonly check?: boolean;
  readonly width?: string;
  readonly list?: boolean;
  readonly journal?: string;
  readonly checked?: string;
  readonly at?: number;
  readonly instance?: string;
}

/** `muster chart MACHINE`: a statechart of ours, or of a module of the user's, in any format. */
export function chartCommand(program: Command): void {
  program.command("chart")
    .description("draw a statechart: one of Muster's by name, or your own as ./module.js#export")
    .argument("[machine]", `${Object.keys(machines).join(", ")}, all, or ./module.js#export`)
    .option("-f, --format <format>", Object.keys(chartFormats).join(", "), "ascii")
    .option(
      "-o, --out <path>",
      "write to this file (for `all`: into this folder) instead of the terminal",
    )
    .option("--check", "write nothing; fail when --out differs from the chart of today")
    .option("--width <columns>", "columns of an ascii chart")
    .option("--list", "list the machines")
    .option("--journal <journal>", "what a recorded run visited and took, and what it never did")
    .option(
      "--checked <model>",
      "what the check of a model (muster check --list) reached, and what not",
    )
    .option("--at <n>", "with --journal: up to this record", wholeNumber)
    .option("--instance <id>", "with --journal: the states that this instance is in then")
    .action(async (name: string | undefined, flags: Flags) => {
      try {
        await run(name, flags, sayWith(program));
      } catch (error) {
        if (!(error instanceof ChartError || error instanceof Refusal)) throw error;
        program.error(`muster chart: ${error.message}`, { exitCode: 2, code: "muster.chart" });
      }
    });
}

/** Where text goes: the program's own outputs, so that a test or an embedding can catch them. */
interface Say {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

function sayWith(program: Command): Say {
  const { writeOut, writeErr } = program.configureOutput();
  return {
    out: writeOut ?? ((text) => process.stdout.write(text)),
    err: writeErr ?? ((text) => process.stderr.write(text)),
  };
}

/** A command line that cannot be carried out, in words for the terminal. */
class Refusal extends Error {}

async function run(name: string | undefined, flags: Flags, say: Say): Promise<void> {
  if (flags.list) {
    for (const id of Object.keys(machines)) say.out(`${id}\n`);
    return;
  }
  const format = chartFormat(flags.format);
  if (name === undefined) throw new Refusal("name a machine, or ask for --list");
  if (flags.check && flags.out === undefined) {
    throw new Refusal("--check compares with a file: give it with --out");
  }
  const width = Number(flags.width ?? process.stdout.columns ?? 100);
  if (!Number.isInteger(width) || width < 20) {
    throw new Refusal("--width is a whole number from 20");
  }
  const wanted = new Map<string, string>();
  const chosen = name === "all" ? Object.entries(machines) : [[name, await find(name)] as const];
  for (const [id, machine] of chosen) {
    const model = chartModel(machine);
    const text = await writeChart(model, format, {
      ...(await overlayFor(id, model, flags, say)),
      width: flags.out === undefined ? width : 100,
      color: flags.out === undefined && process.stdout.isTTY === true && !process.env["NO_COLOR"],
    });
    wanted.set(fileOf(id, format, name === "all", flags.out), text);
  }
  if (flags.out === undefined) { for (const text of wanted.values()) say.out(text); }
  else if (flags.check) check(wanted, say);
  else write(wanted, say);
}

async function overlayFor(
  id: string,
  model: ChartModel,
  flags: Flags,
  say: Say,
): Promise<{ overlay?: ChartOverlay }> {
  if (flags.journal !== undefined) {
    return { overlay: await overlayOf(flags.journal, id, model, flags, say) };
  }
  if (flags.checked !== undefined) {
    return { overlay: await checkedOverlay(flags.checked, model, say) };
  }
  return {};
}

/** What the check of a model, with its default parameters, reached of a chart. */
async function checkedOverlay(name: string, model: ChartModel, say: Say): Promise<ChartOverlay> {
  const { models, valuesFor } = await import("../../../models/mod.ts");
  const { Checking } = await import("../../checker/mod.ts");
  const named = models[name];
  if (named === undefined) {
    throw new Refusal(`there is no model ${name}: ${Object.keys(models).join(", ")}`);
  }
  const checking = new Checking(named.build(valuesFor(name)));
  const verdict = checking.run();
  const found = checkedCharts(checking).get(model.id);
  if (found === undefined) throw new Refusal(`the model ${name} does not run ${model.id}`);
  const { states, transitions } = coverageOf(model, found.overlay);
  say.err(
    `${model.id}: ${states.seen} of ${states.all} states and ${transitions.seen} of ${transitions.all} transitions ` +
      `in ${verdict.states} states of ${name} (${verdict.outcome})\n`,
  );
  return { ...found.overlay, coverage: true };
}

/** What a journal adds to a chart, with its coverage in words on standard error. */
async function overlayOf(
  path: string,
  chart: string,
  model: ChartModel,
  flags: Flags,
  say: Say,
): Promise<ChartOverlay> {
  const { kernelFor, readerOf } = await import("../journal-source.ts");
  const { replay } = await import("../../journal/mod.ts");
  const reader = readerOf(path);
  const tracker = new ChartTracker(new TrackedCharts(machines));
  const { fold } = replay(await kernelFor(reader.header!), reader, {
    ...(flags.at === undefined ? {} : { at: flags.at }),
    each: ({ transitions }) => tracker.apply(transitions),
  });
  const overlay = { ...tracker.overlay(chart), coverage: true };
  const { states, transitions } = coverageOf(model, overlay);
  say.err(
    `${chart}: ${states.seen} of ${states.all} states and ${transitions.seen} of ${transitions.all} transitions were seen\n`,
  );
  if (flags.instance === undefined) return overlay;
  const instance = fold.system().instances.get(flags.instance);
  if (instance === undefined || instance.chart !== chart) {
    throw new Refusal(`at that record there is no ${chart} ${flags.instance}`);
  }
  const last = tracker.lastOf(flags.instance);
  return {
    ...overlay,
    active: tracker.charts.activeIn(chart, instance.state.snapshot),
    ...(last === undefined ? {} : { last }),
  };
}

const fileOf = (id: string, format: ChartFormat, all: boolean, out: string | undefined): string =>
  out === undefined ? id : all ? join(out, `${id}.${chartFormats[format]}`) : out;

function write(wanted: ReadonlyMap<string, string>, say: Say): void {
  for (const [path, text] of wanted) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    say.err(`wrote ${path}\n`);
  }
}

/** Sets the exit code to 1 and names every file that is missing or differs. */
function check(wanted: ReadonlyMap<string, string>, say: Say): void {
  const stale = [...wanted].filter(([path, text]) => contentOf(path) !== text);
  for (const [path] of stale) {
    const state = contentOf(path) === undefined ? "is missing" : "differs from the chart of today";
    say.err(`${path} ${state}\n`);
  }
  if (stale.length > 0) process.exitCode = 1;
  else say.err(`${wanted.size} up to date\n`);
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

async function find(name: string): Promise<MachineLike> {
  const own = machines[name];
  if (own !== undefined) return own;
  const [path, wanted] = name.split("#") as [string, string?];
  if (!/[./\\]/.test(path)) {
    throw new Refusal(
      `there is no machine ${name}: use ${Object.keys(machines).join(", ")}, or ./module.js#export`,
    );
  }
  const module = await load(isAbsolute(path) ? path : resolve(path));
  if (wanted !== undefined) {
    if (!Object.hasOwn(module, wanted)) {
      throw new Refusal(`${path} exports no ${wanted}: ${exportsOf(module)}`);
    }
    return module[wanted] as MachineLike;
  }
  const found = Object.entries(module).filter(([, value]) => isMachine(value));
  if (found.length === 1) return found[0]![1] as MachineLike;
  throw new Refusal(
    found.length === 0
      ? `${path} exports no XState machine: ${exportsOf(module)}`
      : `${path} exports several machines: say ${path}#${
        found.map(([key]) => key).join(` or ${path}#`)
      }`,
  );
}

const exportsOf = (module: Record<string, unknown>): string =>
  `it has ${Object.keys(module).join(", ") || "no exports"}`;

async function load(path: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(path).href) as Record<string, unknown>;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (code === "ERR_UNKNOWN_FILE_EXTENSION") {
      throw new Refusal(
        `this Node cannot load TypeScript (${path}): run muster under \`node --import tsx\` or Deno, or pass built JavaScript`,
      );
    }
    throw new Refusal(`${path} cannot be loaded: ${message}`);
  }
}
