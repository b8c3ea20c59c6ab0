import { type Lifeline, lifelinesOf, messageText, type SequenceStep, soloText } from "./steps.ts";

/** The diagram as Mermaid `sequenceDiagram`; a lost message is a `-x` arrow, states are notes beside the lifeline. */
export function toSequenceMermaid(
  steps: readonly SequenceStep[],
  lifelines: readonly Lifeline[] = [],
): string {
  const lines = lifelinesOf(steps, lifelines);
  const names = new Map(lines.map((line, i) => [line.id, `p${i + 1}`]));
  const name = (id: string): string => names.get(id)!;
  const text = ["sequenceDiagram"];
  for (const line of lines) {
    text.push(`  participant ${name(line.id)} as ${escapeText(line.title ?? line.id)}`);
  }
  for (const step of steps) {
    switch (step.kind) {
      case "message": {
        const sign = step.fate === "lost" ? "-x" : step.fate === "refused" ? "--)" : "->>";
        text.push(`  ${name(step.from)}${sign}${name(step.to)}: ${escapeText(messageText(step))}`);
        break;
      }
      case "note": {
        const over = step.over.length > 0 ? step.over : lines.map((line) => line.id);
        const ends = [...new Set([over[0], over.at(-1)])].map((id) => name(id!));
        text.push(`  Note over ${ends.join(",")}: ${escapeText(step.text)}`);
        break;
      }
      case "gap": {
        const ends = [...new Set([lines[0]?.id, lines.at(-1)?.id])].map((id) => name(id!));
        if (lines.length > 0) {
          text.push(`  Note over ${ends.join(",")}: … ${escapeText(step.text)} …`);
        }
        break;
      }
      default: {
        const { sign, text: words } = soloText(step);
        text.push(`  Note over ${name(step.on)}: ${sign} ${escapeText(words)}`);
      }
    }
    for (const [id, state] of Object.entries(step.states ?? {})) {
      text.push(`  Note right of ${name(id)}: ${escapeText(state)}`);
    }
  }
  return text.join("\n") + "\n";
}

/** `;` ends a statement, `#` starts an entity, a line feed ends the line. */
const escapeText = (text: string): string =>
  text.replaceAll("#", "#35;").replaceAll(/(?<!#35);/g, "#59;")
    .replaceAll("<", "#lt;").replaceAll(">", "#gt;").replaceAll(/\s*\n\s*/g, " ") || " ";
