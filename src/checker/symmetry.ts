/**
 * Symmetry reduction by sorted tuples.
 *
 * A model with interchangeable processes says what of each component belongs to which process. A state is then what is nobody's plus
 * one tuple for each process; sorted, the tuples name the state's orbit. That is exact if the parts lose nothing, which is checked, and
 * costs a sort instead of a factorial. The search keeps the first state of each orbit as it was reached, so traces are real runs.
 */
import type { Component } from "./components.ts";
import type { Composition } from "./composition.ts";
import { Interner } from "./columns.ts";
import { ModelError, type Symmetry } from "./model.ts";

interface Parts {
  readonly shared: number;
  readonly each: Int32Array;
}

export class Orbits {
  readonly #space: Composition;
  readonly #symmetry: Symmetry;
  readonly #ids = new Interner<string>();
  readonly #parts: Parts[][] = [];
  readonly #whole = new Map<string, string>();
  readonly #seen = new Set<string>();

  constructor(space: Composition, symmetry: Symmetry) {
    this.#space = space;
    this.#symmetry = symmetry;
    this.#ids.intern("", () => "");
  }

  get count(): number {
    return this.#seen.size;
  }

  /** Whether this state's orbit is seen for the first time. */
  isNew = (values: Int32Array): boolean => {
    const key = this.key(values);
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    return true;
  };

  /** The name of a state's orbit. */
  key(values: Int32Array): string {
    const { size } = this.#symmetry;
    const shared: number[] = [];
    const tuples: string[] = new Array(size).fill("");
    for (const component of this.#space.components.all) {
      const { shared: common, each } = this.#split(component, values[component.column] ?? 0);
      if (common !== 0) shared.push(component.column, common);
      for (let r = 0; r < size; r++) {
        // Columns differ between processes by name only; the split's own keys say what a part is.
        if (each[r] !== 0) tuples[r] += `${each[r]},`;
      }
    }
    for (let r = 0; r < size; r++) {
      tuples[r] = tuples[r]!.split(",").filter((x) => x !== "").map(Number).sort((a, b) => a - b)
        .join();
    }
    return `${shared.join()}|${tuples.sort().join(";")}`;
  }

  #split(component: Component, value: number): Parts {
    const row = this.#parts[component.column] ??= [];
    let parts = row[value];
    if (parts === undefined) {
      const { name, kind, raw } = component;
      const split = raw(value) === undefined
        ? {}
        : this.#symmetry.split({ name, kind, value: raw(value) });
      const each = new Int32Array(this.#symmetry.size);
      for (const [rank, part] of Object.entries(split.each ?? {})) {
        each[Number(rank)] = this.#id(part);
      }
      parts = row[value] = { shared: this.#id(split.shared), each };
      this.#losesNothing(component, value, split);
    }
    return parts;
  }

  #id(part: unknown): number {
    if (part === undefined) return 0;
    const text = JSON.stringify(part);
    return this.#ids.intern(text, () => text);
  }

  #losesNothing(component: Component, value: number, split: unknown): void {
    const parts = `${component.column} ${JSON.stringify(split)}`;
    const whole = String(value);
    const other = this.#whole.get(parts);
    if (other !== undefined && other !== whole) {
      throw new ModelError(
        `model ${this.#space.name}: symmetric.split loses something of ${component.name}: two values fall into the same parts ${
          JSON.stringify(split)
        }`,
      );
    }
    this.#whole.set(parts, whole);
  }
}
