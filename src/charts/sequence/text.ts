import {
  type Lifeline,
  lifelinesOf,
  messageText,
  type SequenceStep,
  soloText,
  statesText,
} from "./steps.ts";

export interface SequenceTextOptions {
  readonly lifelines?: readonly Lifeline[];
  /** Longest label before it is cut with `…`; 40 when not given. */
  readonly labelWidth?: number;
}

/**
 * The diagram for a terminal: one line for the heads, then exactly one line a step.
 * Lost messages end in `✗` before they arrive; states after a step stand at the end of its line.
 */
export function toSequenceText(
  steps: readonly SequenceStep[],
  options: SequenceTextOptions = {},
): string {
  const lines = lifelinesOf(steps, options.lifelines);
  const titles = new Map(lines.map((line) => [line.id, line.title ?? line.id]));
  const order = new Map(lines.map((line, i) => [line.id, i]));
  const limit = options.labelWidth ?? 40;
  const numbered = steps.map((step, i) => String(step.seq ?? i + 1));
  const margin = Math.max(1, ...numbered.map((n) => n.length)) + 2;
  const columns = columnsOf(steps, [...titles.values()], order, limit).map((x) => x + margin);
  const rows = steps.map((step, i) => {
    const row = new Row();
    row.put(margin - 2 - numbered[i]!.length, numbered[i]!);
    if (step.kind !== "gap") columns.forEach((x) => row.put(x, "│"));
    draw(row, step, columns, order, limit);
    const states = statesText(step, titles);
    if (states !== "") row.put(Math.max(row.length, columns.at(-1)! + 1) + 2, `[${states}]`);
    return row.text();
  });
  const head = new Row();
  lines.forEach((line, i) => {
    const title = titles.get(line.id)!;
    head.put(Math.max(0, columns[i]! - Math.floor(title.length / 2)), title);
  });
  return [head.text(), ...rows].join("\n") + "\n";
}

/** Columns of the lifelines: far enough apart for the heads and for every label between them. */
function columnsOf(
  steps: readonly SequenceStep[],
  titles: readonly string[],
  order: ReadonlyMap<string, number>,
  limit: number,
): number[] {
  const gaps = titles.slice(1).map((title, i) =>
    Math.max(8, Math.ceil((title.length + titles[i]!.length) / 2) + 2)
  );
  const need = (from: number, to: number, width: number): void => {
    const between = gaps.slice(from, to);
    const missing = width - between.reduce((sum, gap) => sum + gap, 0);
    if (missing <= 0 || between.length === 0) return;
    const share = Math.ceil(missing / between.length);
    for (let i = from; i < to; i++) gaps[i]! += share;
  };
  for (const step of steps) {
    if (step.kind === "message") {
      const [a, b] = [order.get(step.from)!, order.get(step.to)!].sort((x, y) => x - y);
      const width = cut(messageText(step), limit).length + 7;
      if (a === b) need(a!, a! + 1, width);
      else need(a!, b!, width);
    } else if ("on" in step) {
      const at = order.get(step.on)!;
      need(at, at + 1, cut(soloText(step).text, limit).length + 4);
    }
  }
  const columns = [Math.floor((titles[0]?.length ?? 0) / 2)];
  gaps.forEach((gap) => columns.push(columns.at(-1)! + gap));
  return columns;
}

function draw(
  row: Row,
  step: SequenceStep,
  columns: readonly number[],
  order: ReadonlyMap<string, number>,
  limit: number,
): void {
  const at = (id: string): number => columns[order.get(id)!]!;
  switch (step.kind) {
    case "message": {
      const text = cut(messageText(step), limit);
      if (step.from === step.to) row.put(at(step.from), `↩ ${text}`);
      else arrow(row, at(step.from), at(step.to), text, step.fate === "lost");
      break;
    }
    case "note": {
      const xs = step.over.map(at);
      row.put(Math.min(...xs, columns.at(-1)!) + 2, `“${cut(step.text, limit * 2)}”`);
      break;
    }
    case "gap":
      row.put(columns[0] ?? 0, `⋮ ${step.text}`);
      break;
    default: {
      const { sign, text } = soloText(step);
      row.put(at(step.on), `${sign} ${cut(text, limit)}`);
    }
  }
}

/** `├── label ──▶│`, or `├── label ──✗` for a message that never arrived. */
function arrow(row: Row, from: number, to: number, text: string, lost: boolean): void {
  const [left, right] = from < to ? [from, to] : [to, from];
  const inside = right - left - 1;
  const word = ` ${text} `;
  const before = Math.max(1, Math.floor((inside - word.length) / 2));
  const after = Math.max(1, inside - word.length - before);
  const line = [..."─".repeat(before) + word + "─".repeat(after)];
  if (from < to) {
    line[line.length - 1] = lost ? "✗" : "▶";
    row.put(left, `├${line.join("")}`);
  } else {
    line[0] = lost ? "✗" : "◀";
    row.put(left + 1, `${line.join("")}┤`);
  }
}

const cut = (text: string, limit: number): string => {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= limit ? line : `${line.slice(0, limit - 1)}…`;
};

/** A line of characters that is written over by position. */
class Row {
  readonly #cells: string[] = [];

  get length(): number {
    return this.#cells.length;
  }

  put(x: number, text: string): void {
    [...text].forEach((character, i) => {
      for (let k = this.#cells.length; k < x + i; k++) this.#cells[k] = " ";
      this.#cells[x + i] = character;
    });
  }

  text(): string {
    return this.#cells.join("").trimEnd();
  }
}
