import { actionText, guardText, triggerText } from "../labels.ts";
import type { ChartModel, ChartNode, ChartTransition } from "../model.ts";
import { nodesOf } from "../model.ts";
import { breakText } from "./measure.ts";

/** A line of text inside a state or at an arrow; `tail` follows in the quiet colour, `soft` makes the whole line quiet. */
export interface TextLine {
  readonly text: string;
  readonly tail?: string;
  readonly soft?: true;
  /** The transition that the line speaks of. */
  readonly transition?: string;
}

/** Characters that a line may have before it is broken. */
const LIMIT = 36;

/** What is written inside a state. */
export function linesOf(node: ChartNode): readonly TextLine[] {
  const lines: TextLine[] = [];
  const add = (text: string, extra: Omit<TextLine, "text"> = {}) => {
    for (const part of breakText(text, LIMIT)) lines.push({ text: part, ...extra });
  };
  if (node.entry.length > 0) add(`entry / ${node.entry.map(actionText).join(", ")}`);
  if (node.exit.length > 0) add(`exit / ${node.exit.map(actionText).join(", ")}`);
  for (const { src } of node.invokes) add(`invokes ${src}`);
  const staying = node.transitions.filter((t) => t.targets.length === 0);
  for (const t of staying) {
    if (!isIgnored(t)) lines.push(...partsOf(t));
  }
  const ignored = staying.filter(isIgnored).map((t) => triggerText(t.trigger));
  if (ignored.length > 0) add(`ignores ${ignored.join(", ")}`, { soft: true });
  return lines;
}

const isIgnored = (t: ChartTransition): boolean =>
  t.targets.length === 0 && t.actions.length === 0 && t.guard === undefined;

/** `ready [all there] / announce`, with the actions on quiet lines of their own when one line would be long. */
function partsOf(t: ChartTransition): readonly TextLine[] {
  const head = triggerText(t.trigger) + (t.guard ? ` [${guardText(t.guard)}]` : "");
  const transition = t.id;
  if (t.actions.length === 0) return breakText(head, LIMIT).map((text) => ({ text, transition }));
  const tail = `/ ${t.actions.map(actionText).join(", ")}`;
  if (head.length + 1 + tail.length <= LIMIT) return [{ text: head, tail, transition }];
  return [
    ...breakText(head, LIMIT).map((text) => ({ text, transition })),
    ...breakText(tail, LIMIT).map((text) => ({ text, soft: true as const, transition })),
  ];
}

/** An arrow: the transitions that share its two ends, or none for an initial arrow. */
export interface EdgeGroup {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  readonly transitions: string[];
  readonly lines: TextLine[];
}

/** Transitions with the same ends share an arrow, so that a picture has few lines and each label names them all. */
export function groupEdges(model: ChartModel): readonly EdgeGroup[] {
  const groups = new Map<string, EdgeGroup>();
  for (const node of nodesOf(model)) {
    if (node.kind === "compound" && node.initial !== undefined) {
      const id = `${node.id}@initial`;
      groups.set(id, {
        id: `${id}@edge`,
        source: id,
        target: node.initial,
        transitions: [],
        lines: [],
      });
    }
    for (const t of node.transitions) {
      for (const target of t.targets) {
        const id = `${t.source}->${target}`;
        const group = groups.get(id) ??
          { id, source: t.source, target, transitions: [], lines: [] };
        group.transitions.push(t.id);
        group.lines.push(...partsOf(t));
        groups.set(id, group);
      }
    }
  }
  return [...groups.values()];
}
