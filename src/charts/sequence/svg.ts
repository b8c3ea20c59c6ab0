import { widthOf } from "../svg/measure.ts";
import { escapeXml } from "../xml.ts";
import { type Lifeline, lifelinesOf, messageText, type SequenceStep, soloText } from "./steps.ts";
import { sequenceStyle } from "./style.ts";

export interface SequenceSvgOptions {
  readonly lifelines?: readonly Lifeline[];
  /** The step to mark, by its `seq` (or its number when it has none). */
  readonly at?: number;
  /** Leaves colours to the page, which then needs `sequenceStyle` once. */
  readonly bare?: boolean;
}

const ROW = 34;
const HEAD = 44;
const MARGIN = 46;
const SIZE = 12;

interface Plan {
  readonly lines: readonly Lifeline[];
  readonly titles: ReadonlyMap<string, string>;
  readonly x: ReadonlyMap<string, number>;
  readonly width: number;
  readonly height: number;
}

/**
 * The diagram as a picture of its own, light and dark by the reader's system. Each step is a group with the id
 * `step-<n>` and `data-seq`, the record it belongs to; heads are wide enough for their titles, lifelines far enough apart for every label between them.
 */
export function toSequenceSvg(
  steps: readonly SequenceStep[],
  options: SequenceSvgOptions = {},
): string {
  const plan = planOf(steps, options.lifelines);
  const { width, height } = plan;
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" class="muster-sequence" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Sequence diagram, ${steps.length} steps">`,
  ];
  if (!options.bare) out.push(`<style>${sequenceStyle}</style>`);
  out.push(`<rect class="paper" width="${width}" height="${height}"/>`);
  for (const line of plan.lines) out.push(...headOf(line, plan));
  steps.forEach((step, i) => {
    const seq = step.seq ?? i + 1;
    const y = HEAD + 26 + i * ROW;
    const now = options.at === seq ? " now" : "";
    out.push(`<g id="step-${i + 1}" class="step ${step.kind}${now}" data-seq="${seq}">`);
    if (now) out.push(`<rect class="band" x="0" y="${y - 20}" width="${width}" height="${ROW}"/>`);
    out.push(`<text class="number" x="34" y="${y + 4}">${seq}</text>`);
    out.push(...stepLines(step, y, plan), ...stateLines(step, y, plan), "</g>");
  });
  return [...out, "</svg>", ""].join("\n");
}

function planOf(steps: readonly SequenceStep[], given: readonly Lifeline[] = []): Plan {
  const lines = lifelinesOf(steps, given);
  const titles = new Map(lines.map((line) => [line.id, line.title ?? line.id]));
  const order = new Map(lines.map((line, i) => [line.id, i]));
  const wide = lines.map((line) => widthOf(titles.get(line.id)!, 13, true) + 24);
  const gaps = wide.slice(1).map((width, i) => Math.max(90, (width + wide[i]!) / 2 + 14));
  let tail = 60;
  const need = (from: number, to: number, width: number): void => {
    if (to >= lines.length) {
      tail = Math.max(tail, width);
      return;
    }
    const sum = gaps.slice(from, to).reduce((a, b) => a + b, 0);
    const share = Math.ceil((width - sum) / (to - from));
    if (share > 0) { for (let i = from; i < to; i++) gaps[i]! += share; }
  };
  for (const step of steps) {
    if (step.kind === "message") {
      const a = Math.min(order.get(step.from)!, order.get(step.to)!);
      const b = Math.max(order.get(step.from)!, order.get(step.to)!);
      need(a, Math.max(b, a + 1), widthOf(messageText(step), SIZE) + 36);
    } else if ("on" in step) {
      const at = order.get(step.on)!;
      need(at, at + 1, widthOf(soloText(step).text, SIZE) + 40);
    }
    for (const [id, state] of Object.entries(step.states ?? {})) {
      const at = order.get(id)!;
      const own = "on" in step && step.on === id ? widthOf(soloText(step).text, SIZE) + 30 : 0;
      need(at, at + 1, widthOf(state, 11) + 40 + own);
    }
  }
  const xs = [MARGIN + (wide[0] ?? 0) / 2];
  gaps.forEach((gap) => xs.push(xs.at(-1)! + gap));
  const end = (xs.at(-1) ?? 0) + Math.max((wide.at(-1) ?? 0) / 2 + 12, tail);
  const notes = steps.map((s) =>
    s.kind === "note" ? widthOf(s.text, SIZE) : s.kind === "gap" ? widthOf(s.text, SIZE) : 0
  );
  return {
    lines,
    titles,
    x: new Map(lines.map((line, i) => [line.id, Math.round(xs[i]!)])),
    width: Math.ceil(Math.max(end, ...notes.map((w) => w + MARGIN + 60))),
    height: HEAD + 20 + Math.max(1, steps.length) * ROW,
  };
}

function headOf(line: Lifeline, plan: Plan): string[] {
  const x = plan.x.get(line.id)!;
  const title = plan.titles.get(line.id)!;
  const half = (widthOf(title, 13, true) + 20) / 2;
  return [
    `<path class="life" d="M${x} ${HEAD - 8}V${plan.height - 6}"/>`,
    `<rect class="head" x="${x - half}" y="10" width="${2 * half}" height="26" rx="6"/>`,
    `<text class="title" x="${x}" y="28">${escapeXml(title)}</text>`,
  ];
}

function stepLines(step: SequenceStep, y: number, plan: Plan): string[] {
  switch (step.kind) {
    case "message":
      return messageLines(step, y, plan);
    case "note": {
      const xs = step.over.map((id) => plan.x.get(id)!);
      const x = xs.length > 0 ? Math.min(...xs) : MARGIN;
      const width = widthOf(step.text, SIZE) + 16;
      return [
        `<rect class="paperclip" x="${x - 8}" y="${y - 13}" width="${width}" height="22" rx="3"/>`,
        `<text x="${x}" y="${y + 3}">${escapeXml(step.text)}</text>`,
      ];
    }
    case "gap":
      return [
        `<path class="break" d="M${MARGIN - 4} ${y}H${plan.width - 10}"/>`,
        `<text class="quiet" x="${MARGIN}" y="${y - 5}">${escapeXml(step.text)}</text>`,
      ];
    default: {
      const x = plan.x.get(step.on)!;
      const { text } = soloText(step);
      const mark = step.kind === "crash"
        ? `<path class="cross" d="M${x - 6} ${y - 6}l12 12m0 -12l-12 12"/>`
        : step.kind === "timeout"
        ? `<g class="clock"><circle cx="${x}" cy="${y}" r="6"/><path d="M${x} ${y - 3.5}V${y}H${
          x + 3
        }"/></g>`
        : `<circle class="point" cx="${x}" cy="${y}" r="4.5"/>`;
      return [mark, `<text class="own" x="${x + 13}" y="${y + 4}">${escapeXml(text)}</text>`];
    }
  }
}

function messageLines(
  step: Extract<SequenceStep, { kind: "message" }>,
  y: number,
  plan: Plan,
): string[] {
  const [from, to] = [plan.x.get(step.from)!, plan.x.get(step.to)!];
  const fate = step.fate ?? "delivered";
  const text = escapeXml(messageText(step));
  if (from === to) {
    return [
      `<path class="line ${fate}" d="M${from} ${y - 6}h14v10h-8"/>${
        headAt(from + 4, y + 4, -1, fate)
      }`,
      `<text class="own" x="${from + 22}" y="${y + 4}">${text}</text>`,
    ];
  }
  const way = Math.sign(to - from);
  const end = fate === "lost" ? from + (to - from) * 0.82 : to - way;
  const lines = [`<path class="line ${fate}" d="M${from} ${y}H${round(end - way * 6)}"/>`];
  if (fate === "lost") {
    lines.push(`<path class="cross" d="M${round(end) - 5} ${y - 5}l10 10m0 -10l-10 10"/>`);
  } else lines.push(headAt(end, y, way, fate));
  const middle = round((from + to) / 2);
  return [...lines, `<text class="label ${fate}" x="${middle}" y="${y - 5}">${text}</text>`];
}

const headAt = (x: number, y: number, way: number, fate: string): string =>
  `<path class="tip ${fate}" d="M${round(x)} ${y}l${-8 * way} -4v8z"/>`;

/** The state after the step, a small plate at the right of the lifeline. */
function stateLines(step: SequenceStep, y: number, plan: Plan): string[] {
  return Object.entries(step.states ?? {}).flatMap(([id, state]) => {
    const own = "on" in step && step.on === id ? widthOf(soloText(step).text, SIZE) + 12 : 0;
    const x = plan.x.get(id)! + 8 + own;
    const width = widthOf(state, 11) + 10;
    return [
      `<rect class="state" x="${x}" y="${y + 3}" width="${width}" height="15" rx="7.5"/>`,
      `<text class="state" x="${x + 5}" y="${y + 14}">${escapeXml(state)}</text>`,
    ];
  });
}

const round = (value: number): number => Math.round(value * 10) / 10;
