/** Which model a command line names, with which numbers. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type NamedModel, valuesFor } from "../../../models/mod.ts";
import type { Model } from "../../checker/mod.ts";
import { columns } from "../text.ts";
import { Refusal } from "./refusal.ts";

type Models = Readonly<Record<string, NamedModel>>;

/** A model, and how a program comes by it. */
export interface Named {
  readonly model: Model;
  /** The module, what it exports, and the expression for the model. */
  readonly source: { readonly from: string; readonly imports: string; readonly model: string };
  /** The defect of the original in whose place it stands. */
  readonly original?: string | undefined;
}

/** A model of ours by its name, or one of somebody else's module: `./module.js#export`. */
export async function modelOf(
  name: string,
  rest: readonly string[],
  models: Models,
): Promise<Named> {
  const known = models[name];
  if (known !== undefined) {
    const values = valuesFor(name, pairsOf(rest));
    const model = `models[${JSON.stringify(name)}]!.build(${JSON.stringify(values)})`;
    return {
      model: known.build(values),
      source: { from: "muster/models", imports: "models", model },
      original: known.original,
    };
  }
  const [path, wanted] = name.split("#");
  if (!/[./\\]/.test(path!) || name.startsWith("upstream/")) {
    throw new Refusal(
      `there is no model ${name}: ${Object.keys(models).join(", ")}, or ./module.js#export`,
    );
  }
  if (!existsSync(path!)) throw new Refusal(`there is no file ${path}`);
  const module = await import(pathToFileURL(resolve(path!)).href) as Record<string, unknown>;
  const exported = wanted ?? ("default" in module ? "default" : "model");
  const found = module[exported];
  const numbers = pairsOf(rest);
  const model = typeof found === "function" ? found(numbers) : found;
  if (typeof model !== "object" || model === null || !("processes" in model)) {
    throw new Refusal(
      `${path} exports no model${
        wanted === undefined ? " as default or model" : ` ${wanted}`
      }: make it with defineModel, or export a function that does`,
    );
  }
  const [number] = Object.keys(numbers);
  if (typeof found !== "function" && number !== undefined) {
    throw new Refusal(
      `--${number} is for nothing: ${name} is a model, and not a function that makes one of numbers`,
    );
  }
  const local = exported === "default" ? "model" : exported;
  return {
    model: model as Model,
    source: {
      from: path!,
      imports: exported === "default" ? "default as model" : exported,
      model: typeof found === "function" ? `${local}(${JSON.stringify(numbers)})` : local,
    },
  };
}

/** `--engines 3` or `--engines=3`, any number of them. */
export function pairsOf(rest: readonly string[]): Record<string, number> {
  const pairs: Record<string, number> = {};
  for (let i = 0; i < rest.length; i++) {
    const [, name, inline] = /^--([\w-]+)(?:=(.*))?$/.exec(rest[i]!) ?? [];
    if (name === undefined) {
      throw new Refusal(`${rest[i]} is no parameter; they look like --engines 3`);
    }
    const text = inline ?? rest[++i];
    if (text === undefined || !/^-?\d{1,9}$/.test(text)) {
      throw new Refusal(
        `--${name} needs a whole number${text === undefined ? "" : `, not ${text}`}`,
      );
    }
    pairs[name] = Number(text);
  }
  return pairs;
}

/** The models, their parameters and defaults, as a table. */
export function listed(models: Models): string[] {
  return columns(
    Object.entries(models).flatMap(([name, { what, parameters }]) => {
      const defaults = valuesFor(name);
      return [
        [name, what],
        ...Object.entries(parameters).map((
          [p, { what }],
        ) => ["", `--${p} ${defaults[p]}   ${what}`]),
      ];
    }),
  );
}
