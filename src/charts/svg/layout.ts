import type { ChartModel, ChartNode } from "../model.ts";
import { nodesOf } from "../model.ts";
import { widthOf } from "./measure.ts";
import { type EdgeGroup, groupEdges, linesOf, type TextLine } from "./texts.ts";

/** Font sizes and distances of the picture, in pixels. */
export const METRICS = {
  title: 14,
  text: 12,
  label: 11.5,
  line: 16,
  pad: 10,
  titleHeight: 26,
  dot: 10,
} as const;

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface PlacedNode {
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly lines: readonly TextLine[];
}

export interface PlacedEdge {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** The transitions that share this arrow; none for the arrow from an initial dot. */
  readonly transitions: readonly string[];
  readonly points: readonly Point[];
  readonly label?: {
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
    readonly lines: readonly TextLine[];
  };
}

/** Where everything is, in pixels from the top left; plain JSON, computed once and sent to pages. */
export interface ChartLayout {
  readonly width: number;
  readonly height: number;
  /** Parents before children. */
  readonly nodes: readonly PlacedNode[];
  /** Dots from which initial arrows start. */
  readonly dots: readonly (Point & { readonly id: string })[];
  readonly edges: readonly PlacedEdge[];
}

interface ElkShape {
  id: string;
  x?: number;
  y?: number;
  width?: number;
  height?: number;
}
interface ElkNode extends ElkShape {
  children?: ElkNode[];
  edges?: ElkEdge[];
  layoutOptions?: Record<string, string>;
}
interface ElkEdge {
  id: string;
  sources: string[];
  targets: string[];
  labels?: (ElkShape & { text: string })[];
  sections?: { startPoint: Point; endPoint: Point; bendPoints?: Point[] }[];
  layoutOptions?: Record<string, string>;
}

/** Of the whole picture. */
const WHOLE: Record<string, string> = {
  "elk.algorithm": "layered",
  "elk.direction": "DOWN",
  "elk.hierarchyHandling": "INCLUDE_CHILDREN",
  "elk.json.edgeCoords": "ROOT",
  "elk.json.shapeCoords": "ROOT",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.randomSeed": "1",
};

/** Of each state that has states: what is said of the whole does not reach them. */
const WITHIN: Record<string, string> = {
  "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
  "elk.spacing.edgeLabel": "4",
  "elk.spacing.labelLabel": "6",
  "elk.spacing.labelNode": "8",
};

/** As few arrows upwards as possible, and not from the initial state downwards, where all arrows together get this much shorter. */
const CLEARLY = 0.8;

export interface LayoutOptions {
  /** Leaves room behind every trigger for the counts of an overlay. */
  readonly counts?: boolean;
}

/** Room for ` ×99999`. */
const COUNT_WIDTH = 38;

/**
 * Where the states, arrows and labels of a chart go: layered, orthogonal, nested, by elkjs, which is loaded on first use.
 * The same chart gives the same coordinates on every runtime.
 */
export async function layoutChart(
  model: ChartModel,
  options: LayoutOptions = {},
): Promise<ChartLayout> {
  const { default: Elk } = await import("elkjs/lib/elk.bundled.js");
  // Its types describe a default export that is the class; at run time CommonJS wraps it once more on some runtimes.
  const Constructor = (Elk as unknown as { default?: unknown }).default ?? Elk;
  const elk = new (Constructor as new () => { layout(graph: unknown): Promise<ElkNode> })();
  const texts = new Map(nodesOf(model).map((node) => [node.id, linesOf(node)]));
  const edges = groupEdges(model);
  const layOut = async (cycles: "DEPTH_FIRST" | "GREEDY"): Promise<ChartLayout> => {
    const within = { ...WITHIN, "elk.layered.cycleBreaking.strategy": cycles };
    const graph = await elk.layout({
      id: "@chart",
      layoutOptions: { ...WHOLE, ...within, "elk.padding": paddingOf(16, 16) },
      children: [toElk(model.root, texts, within)],
      edges: edges.map((edge) => toElkEdge(edge, options)),
    });
    return collect(graph, model, texts, edges);
  };
  const [downwards, fewest] = [await layOut("DEPTH_FIRST"), await layOut("GREEDY")];
  return lengthOf(fewest) < CLEARLY * lengthOf(downwards) ? fewest : downwards;
}

/** Of all arrows together, in pixels. */
const lengthOf = ({ edges }: ChartLayout): number =>
  edges.reduce(
    (sum, { points }) =>
      points.reduce((length, point, i) => length + distance(points[i - 1] ?? point, point), sum),
    0,
  );

/** Along the lines of an orthogonal arrow. */
export const distance = (a: Point, b: Point): number => Math.abs(a.x - b.x) + Math.abs(a.y - b.y);

function toElkEdge({ id, source, target, lines }: EdgeGroup, options: LayoutOptions): ElkEdge {
  const { width, height } = sizeOf(lines, METRICS.label);
  const label = {
    id: `${id}@label`,
    text: lines.map(wholeOf).join("\n"),
    width: width + (options.counts ? COUNT_WIDTH : 0),
    height,
  };
  return { id, sources: [source], targets: [target], labels: lines.length === 0 ? [] : [label] };
}

const paddingOf = (top: number, side: number): string =>
  `[top=${top},left=${side},bottom=${side},right=${side}]`;

function toElk(
  node: ChartNode,
  texts: ReadonlyMap<string, readonly TextLine[]>,
  within: Record<string, string>,
): ElkNode {
  const lines = texts.get(node.id) ?? [];
  const text = sizeOf(lines, METRICS.text);
  const title = widthOf(titleOf(node), METRICS.title, true) + 2 * METRICS.pad + 14;
  const width = Math.max(title, lines.length > 0 ? text.width + 2 * METRICS.pad : 0, 60);
  const top = METRICS.titleHeight + (lines.length > 0 ? text.height + METRICS.pad : 6);
  if (node.children.length === 0) return { id: node.id, width, height: top };
  const dot: ElkNode[] = node.initial === undefined ? [] : [{
    id: `${node.id}@initial`,
    width: METRICS.dot,
    height: METRICS.dot,
    layoutOptions: { "elk.layered.layering.layerConstraint": "FIRST" },
  }];
  return {
    id: node.id,
    layoutOptions: {
      ...within,
      "elk.padding": paddingOf(top + 12, 16),
      "elk.nodeSize.constraints": "[MINIMUM_SIZE]",
      "elk.nodeSize.minimum": `(${width},${top + 20})`,
    },
    children: [...dot, ...node.children.map((child) => toElk(child, texts, within))],
  };
}

/** The title as drawn, without counts: those may come later and are given room. */
export const titleOf = (node: ChartNode): string =>
  node.kind === "history" ? `${node.key} (${node.history === "deep" ? "H*" : "H"})` : node.key;

const wholeOf = (line: TextLine): string =>
  line.tail === undefined ? line.text : `${line.text} ${line.tail}`;

function sizeOf(lines: readonly TextLine[], size: number): { width: number; height: number } {
  return {
    width: Math.max(0, ...lines.map((line) => widthOf(wholeOf(line), size))) + 4,
    height: lines.length * METRICS.line,
  };
}

function collect(
  graph: ElkNode,
  model: ChartModel,
  texts: ReadonlyMap<string, readonly TextLine[]>,
  groups: readonly EdgeGroup[],
): ChartLayout {
  const nodes: PlacedNode[] = [];
  const dots: (Point & { id: string })[] = [];
  const edges = new Map<string, ElkEdge>();
  const known = new Set(nodesOf(model).map((node) => node.id));
  const visit = (node: ElkNode): void => {
    for (const edge of node.edges ?? []) edges.set(edge.id, edge);
    if (known.has(node.id)) {
      nodes.push({ id: node.id, ...boxOf(node), lines: texts.get(node.id) ?? [] });
    } else if (node.id.endsWith("@initial")) {
      dots.push({
        id: node.id,
        x: round(node.x! + METRICS.dot / 2),
        y: round(node.y! + METRICS.dot / 2),
      });
    }
    node.children?.forEach(visit);
  };
  visit(graph);
  return {
    width: Math.ceil(graph.width ?? 0),
    height: Math.ceil(graph.height ?? 0),
    nodes,
    dots,
    edges: groups.map((group) => {
      const edge = edges.get(group.id);
      const label = edge?.labels?.[0];
      return {
        id: group.id,
        source: group.source,
        target: group.target,
        transitions: group.transitions,
        points: (edge?.sections ?? []).flatMap((section) =>
          [section.startPoint, ...section.bendPoints ?? [], section.endPoint]
            .map(({ x, y }) => ({ x: round(x), y: round(y) }))
        ),
        ...(label ? { label: { ...boxOf(label), lines: group.lines } } : {}),
      };
    }),
  };
}

const boxOf = (shape: ElkShape) => ({
  x: round(shape.x ?? 0),
  y: round(shape.y ?? 0),
  width: round(shape.width ?? 0),
  height: round(shape.height ?? 0),
});

const round = (value: number): number => Math.round(value * 10) / 10;
