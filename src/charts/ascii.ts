import { actionText, guardText, triggerText } from "./labels.ts";
import type { ChartModel, ChartNode, ChartTransition } from "./model.ts";
import { indexOf } from "./model.ts";
import type { ChartOverlay } from "./overlay.ts";

export interface AsciiOptions {
  /** Columns to stay within where words allow it; 100 when not given. */
  readonly width?: number;
  /** ANSI colours: active states green, what was never visited dim. */
  readonly color?: boolean;
  readonly overlay?: ChartOverlay;
}

/**
 * The chart for a terminal: a box for every composite state, a line for every state, its transitions below it in
 * columns. `▶` is entered first, `●` is active, `◉` is final, `↺` remembers; regions are kept apart by dotted lines.
 */
export function toAscii(model: ChartModel, options: AsciiOptions = {}): string {
  const writer = new Writer(model, options);
  return writer.write().map((line) => line.trimEnd()).join("\n") + "\n";
}

const GREEN = "\u001b[32m";
const DIM = "\u001b[2m";
const BOLD = "\u001b[1m";
const RESET = "\u001b[0m";

class Writer {
  readonly #model: ChartModel;
  readonly #overlay: ChartOverlay;
  readonly #color: boolean;
  readonly #width: number;
  readonly #index: ReadonlyMap<string, ChartNode>;

  constructor(model: ChartModel, options: AsciiOptions) {
    this.#model = model;
    this.#overlay = options.overlay ?? {};
    this.#color = options.color === true;
    this.#width = options.width ?? 100;
    this.#index = indexOf(model);
  }

  write(): string[] {
    const { root } = this.#model;
    if (root.children.length === 0) return this.#leaf(root, this.#width);
    return this.#box(root, this.#width);
  }

  #node(node: ChartNode, width: number): string[] {
    return node.children.length > 0 ? this.#box(node, width) : this.#leaf(node, width);
  }

  #leaf(node: ChartNode, width: number): string[] {
    return [this.#heading(node), ...this.#inside(node, width)];
  }

  /** A composite: what holds for all of it first, then its children, one empty line between those that need it. */
  #box(node: ChartNode, width: number): string[] {
    const inner = width - 4;
    const blocks = node.children.map((child) => this.#node(child, inner));
    const own = this.#inside(node, inner);
    const content: (string | "dots")[] = [...own];
    blocks.forEach((block, i) => {
      const before = blocks[i - 1];
      if (node.kind === "parallel" && i > 0) content.push("dots");
      else if (content.length > 0 && (block.length > 1 || (before?.length ?? 2) > 1)) {
        content.push("");
      }
      content.push(...block);
    });
    const title = ` ${this.#heading(node)} `;
    const wide = Math.max(lengthOf(title) + 2, ...content.map(lengthOf));
    const rule = "─".repeat(Math.max(0, wide + 1 - lengthOf(title)));
    return [
      `╭─${title}${rule}╮`,
      ...content.map((line) =>
        line === "dots" ? `├${"┄".repeat(wide + 2)}┤` : `│ ${pad(line, wide)} │`
      ),
      `╰${"─".repeat(wide + 2)}╯`,
    ];
  }

  #heading(node: ChartNode): string {
    const active = this.#overlay.active?.has(node.id) === true;
    const parent = node.parent === undefined ? undefined : this.#index.get(node.parent);
    const mark = active
      ? "●"
      : node.kind === "final"
      ? "◉"
      : node.kind === "history"
      ? "↺"
      : parent?.initial === node.id
      ? "▶"
      : "○";
    const kind = node.kind === "parallel"
      ? " (all at once)"
      : node.kind === "history"
      ? ` (${node.history} history)`
      : "";
    const visits = this.#overlay.visits?.get(node.id);
    const count = visits === undefined ? "" : ` ×${visits}`;
    const missed = this.#overlay.coverage && node.parent !== undefined && node.kind !== "history" &&
        !visits
      ? " (never)"
      : "";
    const name = node.parent === undefined ? node.key : `${mark} ${node.key}`;
    return this.#paint(name, active ? GREEN + BOLD : missed ? DIM : BOLD) + kind + count + missed;
  }

  #paint(text: string, code: string): string {
    return this.#color ? code + text + RESET : text;
  }

  #inside(node: ChartNode, width: number): string[] {
    const rows: string[] = [];
    if (node.description) rows.push(...wrap(node.description, width, "    "));
    const list = (label: string, names: readonly string[]) => {
      if (names.length > 0) rows.push(...wrap(`${label} ${names.join(", ")}`, width, "    "));
    };
    list("entry /", node.entry.map(actionText));
    list("exit /", node.exit.map(actionText));
    list("invokes", node.invokes.map(({ src }) => src));
    rows.push(...this.#transitions(node.transitions.filter((t) => !isIgnored(t)), width));
    list("ignores", node.transitions.filter(isIgnored).map((t) => triggerText(t.trigger)));
    const refused = [...this.#overlay.refused?.get(node.id) ?? []];
    list("refused", refused.map(([event, count]) => `${event} ×${count}`));
    return rows;
  }

  /** Trigger, target and actions in columns; actions go below when the line would be too long. */
  #transitions(list: readonly ChartTransition[], width: number): string[] {
    const cells = list.map((t) => {
      const count = this.#overlay.taken?.get(t.id);
      const never = this.#overlay.coverage && !count ? " (never)" : "";
      return {
        when: triggerText(t.trigger) + (t.guard ? ` [${guardText(t.guard)}]` : ""),
        where: t.targets.length === 0
          ? "·"
          : `→ ${t.targets.map((id) => this.#nameOf(t, id)).join(" + ")}`,
        what: t.actions.length === 0 ? "" : `/ ${t.actions.map(actionText).join(", ")}`,
        note: (count === undefined ? "" : ` ×${count}`) + never,
      };
    });
    const limit = Math.floor(width / 2) - 4;
    const first = Math.min(limit, Math.max(0, ...cells.map((c) => c.when.length)));
    const second = Math.min(limit, Math.max(0, ...cells.map((c) => c.where.length)));
    return cells.flatMap(({ when, where, what, note }) => {
      const start = `    ${pad(when, first)}  ${what === "" ? where : pad(where, second)}`;
      const line = `${start}${what && `  ${what}`}${note}`;
      if (line.length <= width || what === "") return [line];
      return [
        `    ${pad(when, first)}  ${where}${note}`,
        ...wrap(what, width, " ".repeat(first + 8)),
      ];
    });
  }

  /** A sibling by its key, another state by its path. */
  #nameOf(t: ChartTransition, target: string): string {
    const source = this.#index.get(t.source)!;
    const node = this.#index.get(target)!;
    if (node.id === source.id) return t.reenter ? "itself, entered again" : "itself";
    if (node.parent === source.parent || node.parent === source.id) return node.key;
    return node.path.join(".") || node.key;
  }
}

const isIgnored = (t: ChartTransition): boolean =>
  t.targets.length === 0 && t.actions.length === 0 && t.guard === undefined;

// deno-lint-ignore no-control-regex
const lengthOf = (text: string): number => [...text.replaceAll(/\u001b\[\d*m/g, "")].length;

const pad = (text: string, width: number): string =>
  text + " ".repeat(Math.max(0, width - lengthOf(text)));

/** Words on lines of at most `width` columns; continuation lines are indented once more. */
function wrap(text: string, width: number, indent: string): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(/\s+/)) {
    const next = line.trim() === "" ? line + word : `${line} ${word}`;
    if (next.length > width && line.trim() !== "") {
      lines.push(line);
      line = `${indent}  ${word}`;
    } else line = next;
  }
  return [...lines, line];
}
