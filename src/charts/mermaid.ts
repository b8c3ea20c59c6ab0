import { ChartError } from "./error.ts";
import { actionText, guardText, transitionText, triggerText } from "./labels.ts";
import type { ChartModel, ChartNode, ChartTransition } from "./model.ts";
import { indexOf, initialLeavesOf, lineageOf, nodesOf } from "./model.ts";
import type { ChartOverlay } from "./overlay.ts";

/** Mermaid's own limits with its default settings; a larger text is shown as an error by every viewer. */
const MAX_CHARACTERS = 50_000;
const MAX_EDGES = 500;

/**
 * A Mermaid `stateDiagram-v2`.
 *
 * Written around what crashes or misplaces in Mermaid 10 and 11: an edge to a composite state inside a parallel region
 * goes to its initial leaf; edges that cross a border are written at the top, after all states, because a mention
 * inside a block moves the state into it; ids are unique and never a reserved word; history is drawn as a state.
 * Throws `ChartError` (`chart.too-large`) when the text would exceed Mermaid's limits even without actions.
 */
export function toMermaid(model: ChartModel, overlay: ChartOverlay = {}): string {
  for (const withActions of [true, false]) {
    const { text, edges } = new Writer(model, overlay, withActions).write();
    if (text.length <= MAX_CHARACTERS && edges <= MAX_EDGES) return text;
  }
  throw new ChartError(
    "chart.too-large",
    `the chart of ${model.id} exceeds what Mermaid draws (${MAX_CHARACTERS} characters, ${MAX_EDGES} edges); write SVG instead`,
  );
}

class Writer {
  readonly #model: ChartModel;
  readonly #overlay: ChartOverlay;
  readonly #withActions: boolean;
  readonly #index: ReadonlyMap<string, ChartNode>;
  readonly #names: ReadonlyMap<string, string>;
  readonly #lines: string[] = ["stateDiagram-v2"];
  /** Edges that are written after all states, by `from --> to`. */
  readonly #late = new Map<string, string[]>();
  #edges = 0;

  constructor(model: ChartModel, overlay: ChartOverlay, withActions: boolean) {
    this.#model = model;
    this.#overlay = overlay;
    this.#withActions = withActions;
    this.#index = indexOf(model);
    this.#names = uniqueNames(model);
  }

  write(): { text: string; edges: number } {
    const { root } = this.#model;
    if (root.kind === "parallel" || root.children.length === 0) this.#node(root, 1);
    else this.#block(root, 1);
    for (const note of this.#notes()) this.#lines.push(note);
    for (const [edge, labels] of this.#late) this.#edge(1, edge, labels);
    this.#classes();
    return { text: this.#lines.join("\n") + "\n", edges: this.#edges };
  }

  #name(id: string): string {
    return this.#names.get(id)!;
  }

  #line(depth: number, text: string): void {
    this.#lines.push("  ".repeat(depth) + text);
  }

  /** Initial arrow, children and the edges among them. */
  #block(node: ChartNode, depth: number): void {
    if (node.initial !== undefined) this.#line(depth, `[*] --> ${this.#name(node.initial)}`);
    for (const child of node.children) this.#node(child, depth);
    const inside = new Map<string, string[]>();
    const sources = node.parent === undefined ? [node, ...node.children] : node.children;
    for (const source of sources) {
      for (const t of source.transitions) this.#collect(t, node, inside);
    }
    for (const [edge, labels] of inside) this.#edge(depth, edge, labels);
    for (const child of node.children) {
      if (child.kind === "final") this.#line(depth, `${this.#name(child.id)} --> [*]`);
    }
  }

  #node(node: ChartNode, depth: number): void {
    const name = this.#name(node.id);
    const title = escapeText(this.#title(node)).replaceAll('"', "#quot;");
    if (node.children.length === 0) {
      this.#line(depth, `state "${title}" as ${name}`);
      for (const text of this.#remarks(node)) this.#line(depth, `${name} : ${escapeText(text)}`);
      return;
    }
    this.#line(depth, `state "${title}" as ${name} {`);
    if (node.kind === "parallel") {
      node.children.forEach((region, i) => {
        if (i > 0) this.#line(depth + 1, "--");
        this.#node(region, depth + 1);
      });
      for (const region of node.children) {
        for (const t of region.transitions) this.#collect(t, undefined, this.#late);
      }
    } else this.#block(node, depth + 1);
    this.#line(depth, "}");
    if (node.parent === undefined) {
      for (const t of node.transitions) this.#collect(t, undefined, this.#late);
    }
  }

  #title(node: ChartNode): string {
    const visits = this.#overlay.visits?.get(node.id);
    const history = node.kind === "history" ? (node.history === "deep" ? " (H*)" : " (H)") : "";
    return node.key + history + (visits === undefined ? "" : ` ×${visits}`);
  }

  /** What is said inside a state: entry and exit actions, transitions that stay, events ignored on purpose. */
  #remarks(node: ChartNode): string[] {
    const remarks: string[] = [];
    if (node.entry.length > 0) remarks.push(`entry / ${node.entry.map(actionText).join(", ")}`);
    if (node.exit.length > 0) remarks.push(`exit / ${node.exit.map(actionText).join(", ")}`);
    for (const { id, src } of node.invokes) {
      remarks.push(`invokes ${src}${id === src ? "" : ` as ${id}`}`);
    }
    const staying = node.transitions.filter((t) => t.targets.length === 0);
    for (const t of staying) if (!isIgnored(t)) remarks.push(this.#label(t));
    const ignored = staying.filter(isIgnored).map((t) => triggerText(t.trigger));
    if (ignored.length > 0) remarks.push(`ignores ${ignored.join(", ")}`);
    return remarks;
  }

  /** A composite has no room for remarks: they become a note. */
  #notes(): string[] {
    const notes: string[] = [];
    for (const node of nodesOf(this.#model)) {
      if (node.children.length === 0) continue;
      if (node.parent === undefined && node.kind !== "parallel") continue;
      const remarks = this.#remarks(node);
      if (remarks.length === 0) continue;
      notes.push(
        `  note right of ${this.#name(node.id)}`,
        ...remarks.map((text) => `    ${escapeText(text)}`),
        "  end note",
      );
    }
    return notes;
  }

  #collect(t: ChartTransition, block: ChartNode | undefined, inside: Map<string, string[]>): void {
    for (const target of t.targets) {
      const from = this.#index.get(t.source)!;
      const to = this.#index.get(target)!;
      const siblings = block !== undefined && from.parent === block.id && to.parent === block.id;
      const plain = !this.#inRegion(from.id) ||
        (from.children.length === 0 && to.children.length === 0);
      const edges = siblings && plain ? inside : this.#late;
      for (const edge of this.#ends(from, to)) {
        edges.set(edge, [...(edges.get(edge) ?? []), this.#label(t)]);
      }
    }
  }

  /** `from --> to`; the root is no state of the picture, so its transitions start at each of its children. */
  #ends(from: ChartNode, to: ChartNode): string[] {
    const target = to.children.length > 0 && (this.#inRegion(to.id) || to.parent === undefined)
      ? initialLeavesOf(this.#index, to.id)[0] ?? to
      : to;
    const shown = from.parent === undefined && from.kind === "compound"
      ? from.children.filter((c) => c.kind !== "final" && c.kind !== "history" && c !== target)
      : [from];
    return shown.map((source) => `${this.#name(source.id)} --> ${this.#name(target.id)}`);
  }

  #inRegion(id: string): boolean {
    return lineageOf(this.#index, id).slice(0, -1).some((node) => node.kind === "parallel");
  }

  #label(t: ChartTransition): string {
    const count = this.#overlay.taken?.get(t.id);
    const text = this.#withActions
      ? transitionText(t)
      : triggerText(t.trigger) + (t.guard ? ` [${guardText(t.guard)}]` : "");
    return text + (count === undefined ? "" : ` ×${count}`);
  }

  #edge(depth: number, edge: string, labels: readonly string[]): void {
    this.#edges++;
    this.#line(depth, `${edge} : ${labels.map(escapeText).join("<br/>")}`);
  }

  #classes(): void {
    const { active, visits, coverage } = this.#overlay;
    const named = (ids: readonly ChartNode[]) => ids.map((node) => this.#name(node.id)).join(",");
    const leaves = nodesOf(this.#model).filter((node) => node.children.length === 0);
    const on = leaves.filter((node) => active?.has(node.id));
    const missed = coverage
      ? leaves.filter((node) => node.kind !== "history" && !visits?.get(node.id))
      : [];
    if (on.length > 0) {
      this.#line(1, "classDef active fill:#1a7f37,color:#fff,stroke:#116329");
      this.#line(1, `class ${named(on)} active`);
    }
    if (missed.length > 0) {
      this.#line(1, "classDef missed stroke-dasharray:4 3,color:#777");
      this.#line(1, `class ${named(missed)} missed`);
    }
  }
}

const isIgnored = (t: ChartTransition): boolean =>
  t.targets.length === 0 && t.actions.length === 0 && t.guard === undefined;

/** Characters that end a statement or start an entity in Mermaid. */
function escapeText(text: string): string {
  return text.replaceAll("#", "#35;").replaceAll(/(?<!#35);/g, "#59;")
    .replaceAll("<", "#lt;").replaceAll(">", "#gt;").replaceAll(/\s*\n\s*/g, " ");
}

const RESERVED =
  /^(state|note|end|class|classDef|style|direction|default|as|fork|join|choice|hide|scale|click|acc)/i;

function uniqueNames(model: ChartModel): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const used = new Set<string>();
  for (const { id } of nodesOf(model)) {
    const plain = id.replaceAll(/[^A-Za-z0-9_]/g, "_");
    const base = RESERVED.test(plain) || !/^[A-Za-z]/.test(plain) ? `s_${plain}` : plain;
    let name = base;
    for (let n = 2; used.has(name); n++) name = `${base}_${n}`;
    used.add(name);
    names.set(id, name);
  }
  return names;
}
