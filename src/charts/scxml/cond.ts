import { ChartError } from "../error.ts";
import type { ChartGuard } from "../model.ts";
import { fromNcName, toNcName } from "./names.ts";

/** A guard as an ECMAScript condition: `allowed() && !exhausted()`, `within({"limit":3})`, `In('engine.ready')`. */
export function toCond(guard: ChartGuard): string {
  switch (guard.op) {
    case "named": {
      const params = guard.params === undefined ? "" : JSON.stringify(guard.params);
      if (/^[A-Za-z_$][\w$]*$/.test(guard.name) && guard.name !== "In" && guard.name !== "guard") {
        return `${guard.name}(${params})`;
      }
      return `guard(${JSON.stringify(guard.name)}${params && `, ${params}`})`;
    }
    case "inline":
      return "inline()";
    case "in":
      return `In('${toNcName(guard.state)}')`;
    case "not":
      return `!${operand(guard.of[0]!)}`;
    default: {
      if (guard.of.length === 0) return guard.op === "and" ? "true" : "false";
      const parts = guard.of.map(operand);
      return parts.length === 1
        ? `(${parts[0]})`
        : parts.join(guard.op === "and" ? " && " : " || ");
    }
  }
}

const operand = (guard: ChartGuard): string =>
  guard.op === "and" || guard.op === "or" ? `(${toCond(guard)})` : toCond(guard);

/** Reads what `toCond` writes; throws `ChartError` (`chart.scxml-invalid`) for other expressions. */
export function fromCond(text: string): ChartGuard {
  const reader = new CondReader(text);
  return reader.all();
}

class CondReader {
  readonly #text: string;
  #pos = 0;
  constructor(text: string) {
    this.#text = text;
  }

  all(): ChartGuard {
    const guard = this.#chain();
    if (this.#pos < this.#text.length) throw this.#error();
    return guard;
  }

  #chain(): ChartGuard {
    const first = this.#unary();
    const sign = /\s*(&&|\|\|)\s*/y;
    const parts = [first];
    let op: string | undefined;
    for (;;) {
      const found = this.#match(sign)?.[1];
      if (found === undefined) break;
      if (op !== undefined && op !== found) throw this.#error();
      op = found;
      parts.push(this.#unary());
    }
    return op === undefined ? first : { op: op === "&&" ? "and" : "or", of: parts };
  }

  #unary(): ChartGuard {
    if (this.#match(/\s*!\s*/y)) return { op: "not", of: [this.#unary()] };
    if (this.#match(/\(\s*/y)) {
      const inner = this.#chain();
      if (!this.#match(/\s*\)/y)) throw this.#error();
      return inner;
    }
    const inState = this.#match(/In\('([^']*)'\)/y);
    if (inState) return { op: "in", state: fromNcName(inState[1]!) };
    const constant = this.#match(/(true|false)\b/y);
    if (constant) return { op: constant[1] === "true" ? "and" : "or", of: [] };
    const name = this.#match(/([A-Za-z_$][\w$]*)\(/y)?.[1];
    if (name === undefined) throw this.#error();
    const args = this.#arguments();
    if (name === "inline") return { op: "inline" };
    const [given, params] = name === "guard" ? args : [name, args[0]];
    return { op: "named", name: String(given), ...(params === undefined ? {} : { params }) };
  }

  /** JSON arguments up to the closing parenthesis. */
  #arguments(): unknown[] {
    const from = this.#pos;
    let depth = 1;
    let quoted = false;
    for (; this.#pos < this.#text.length; this.#pos++) {
      const c = this.#text[this.#pos];
      if (quoted) {
        if (c === "\\") this.#pos++;
        else if (c === '"') quoted = false;
      } else if (c === '"') quoted = true;
      else if (c === "(") depth++;
      else if (c === ")" && --depth === 0) break;
    }
    if (depth !== 0) throw this.#error();
    const inside = this.#text.slice(from, this.#pos++);
    try {
      return JSON.parse(`[${inside}]`) as unknown[];
    } catch {
      throw this.#error();
    }
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#pos;
    const found = pattern.exec(this.#text);
    if (found) this.#pos = pattern.lastIndex;
    return found;
  }

  #error(): ChartError {
    return new ChartError(
      "chart.scxml-invalid",
      `cond ${JSON.stringify(this.#text)} is not a formula of guard calls (at character ${
        this.#pos + 1
      })`,
    );
  }
}
