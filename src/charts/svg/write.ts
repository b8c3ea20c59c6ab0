import type { ChartModel, ChartNode } from "../model.ts";
import { indexOf, lineageOf } from "../model.ts";
import type { ChartOverlay } from "../overlay.ts";
import { escapeXml } from "../xml.ts";
import type { TextLine } from "./texts.ts";
import {
  type ChartLayout,
  distance,
  METRICS,
  type PlacedEdge,
  type PlacedNode,
  type Point,
  titleOf,
} from "./layout.ts";
import { chartStyle } from "./style.ts";

export interface SvgOptions {
  readonly overlay?: ChartOverlay;
  /** Leaves colours to the page that the picture is put into; it then needs `chartStyle` once. */
  readonly bare?: boolean;
}

/**
 * The picture of a chart, from its model and its layout. Light and dark follow the reader's system; every state and
 * arrow has a stable id (`state-…`, `edge-…`) and `data-state`, `data-transitions` with the chart's own ids.
 * The same model, layout and overlay give the same bytes.
 */
export function toSvg(model: ChartModel, layout: ChartLayout, options: SvgOptions = {}): string {
  const overlay = options.overlay ?? {};
  const index = indexOf(model);
  const title = `Statechart ${model.id}`;
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" class="muster-chart" viewBox="0 0 ${layout.width} ${layout.height}" ` +
    `width="${layout.width}" height="${layout.height}" role="img" aria-label="${
      escapeXml(title)
    }">`,
    `<title>${escapeXml(title)}</title>`,
  ];
  if (!options.bare) lines.push(`<style>${chartStyle}</style>`);
  lines.push(
    `<defs>${["", "last", "missed"].map(marker).join("")}</defs>`,
    `<rect class="paper" width="${layout.width}" height="${layout.height}"/>`,
  );
  for (const placed of layout.nodes) {
    lines.push(...nodeLines(index.get(placed.id)!, placed, overlay, index));
  }
  for (const edge of layout.edges) lines.push(...edgeLines(edge, overlay));
  for (const edge of layout.edges) lines.push(...labelLines(edge, overlay));
  for (const placed of layout.nodes) {
    lines.push(...compositeTexts(index.get(placed.id)!, placed, overlay));
  }
  for (const dot of layout.dots) {
    lines.push(`<circle class="dot" cx="${dot.x}" cy="${dot.y}" r="${METRICS.dot / 2}"/>`);
  }
  return [...lines, "</svg>", ""].join("\n");
}

/** An id that is a valid XML name and, for the ids of one chart, different for different states. */
export const svgId = (prefix: string, id: string): string =>
  `${prefix}-${id.replaceAll(/[^A-Za-z0-9_.-]/g, (c) => `_${c.codePointAt(0)!.toString(16)}_`)}`;

function nodeLines(
  node: ChartNode,
  placed: PlacedNode,
  overlay: ChartOverlay,
  index: ReadonlyMap<string, ChartNode>,
): string[] {
  const { x, y, width, height } = placed;
  const region = node.parent !== undefined && index.get(node.parent)?.kind === "parallel";
  const visits = overlay.visits?.get(node.id);
  const classes = [
    "state",
    node.kind,
    ...(region ? ["region"] : []),
    ...(lineageOf(index, node.id).length % 2 === 0 ? ["even"] : ["odd"]),
    ...(overlay.active?.has(node.id) ? ["active"] : []),
    ...(overlay.coverage && !visits && node.parent !== undefined && node.kind !== "history"
      ? ["missed"]
      : []),
  ];
  const box = `x="${x}" y="${y}" width="${width}" height="${height}" rx="${
    node.children.length > 0 ? 8 : 7
  }"`;
  const lines = [
    `<g id="${svgId("state", node.id)}" class="${classes.join(" ")}" data-state="${
      escapeXml(node.id)
    }">`,
    ...(node.description ? [`<title>${escapeXml(node.description)}</title>`] : []),
    `<rect class="box" ${box}/>`,
  ];
  if (node.kind === "final") {
    lines.push(
      `<rect class="inner" x="${x + 3}" y="${y + 3}" width="${width - 6}" height="${
        height - 6
      }" rx="5"/>`,
    );
  }
  const composite = node.children.length > 0;
  const titleX = composite ? x + METRICS.pad : x + width / 2;
  lines.push(
    `<text class="name${composite ? "" : " mid"}" x="${titleX}" y="${y + 18}">${
      escapeXml(titleOf(node))
    }</text>`,
  );
  if (visits !== undefined) {
    lines.push(`<text class="count" x="${x + width - 5}" y="${y + 11}">×${visits}</text>`);
  }
  if (placed.lines.length > 0 && !composite) {
    const rule = y + METRICS.titleHeight;
    lines.push(
      `<path class="rule" d="M${x} ${rule}h${width}"/>`,
      ...linesInside(placed, "inside", overlay),
    );
  }
  return [...lines, "</g>"];
}

const linesInside = ({ x, y, lines }: PlacedNode, kind: string, overlay: ChartOverlay): string[] =>
  lines.map((line, i) => {
    const at = y + METRICS.titleHeight + 15 + i * METRICS.line;
    return textLine(line, x + METRICS.pad, at, kind, overlay);
  });

/** What is written in a composite stands above the arrows that enter it, on a halo of the background. */
function compositeTexts(node: ChartNode, placed: PlacedNode, overlay: ChartOverlay): string[] {
  if (node.children.length === 0) return [];
  const missed = overlay.coverage && node.parent !== undefined && !overlay.visits?.get(node.id);
  const classes = `name over${missed ? " missed" : ""}`;
  const at = `x="${placed.x + METRICS.pad}" y="${placed.y + 18}"`;
  return [
    `<text class="${classes}" ${at}>${escapeXml(titleOf(node))}</text>`,
    ...linesInside(placed, "inside over", overlay),
  ];
}

/** Arrow heads come in the colours that arrows have, because not every viewer knows `context-stroke`. */
const marker = (kind: string): string =>
  `<marker id="muster-arrow${
    kind && `-${kind}`
  }" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" ` +
  `markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path class="head ${kind}" d="M0 0.5 8 4 0 7.5z"/></marker>`;

function edgeLines(edge: PlacedEdge, overlay: ChartOverlay): string[] {
  if (edge.points.length === 0) return [];
  const taken = edge.transitions.reduce((sum, id) => sum + (overlay.taken?.get(id) ?? 0), 0);
  const last = overlay.last !== undefined && edge.transitions.includes(overlay.last);
  const missed = overlay.coverage && taken === 0 && edge.transitions.length > 0;
  const classes = [
    "edge",
    ...(edge.transitions.length === 0 ? ["initial"] : []),
    ...(taken > 0 ? ["taken"] : []),
    ...(last ? ["last"] : []),
    ...(missed ? ["missed"] : []),
  ];
  return [
    `<path id="${svgId("edge", edge.id)}" class="${classes.join(" ")}" data-transitions="${
      escapeXml(edge.transitions.join(" "))
    }" d="${pathOf(edge.points)}" marker-end="url(#muster-arrow${
      last ? "-last" : missed ? "-missed" : ""
    })"/>`,
  ];
}

function labelLines(edge: PlacedEdge, overlay: ChartOverlay): string[] {
  const { label } = edge;
  if (!label) return [];
  const last = overlay.last !== undefined && edge.transitions.includes(overlay.last);
  const before = standsBefore(edge.points, label);
  const x = before ? label.x + label.width - 2 : label.x + 2;
  return [
    `<g class="label${last ? " last" : ""}${before ? " before" : ""}">`,
    ...label.lines.map((line, i) =>
      textLine(line, x, label.y + 12 + i * METRICS.line, "label", overlay)
    ),
    "</g>",
  ];
}

/** Whether a label stands left of its arrow: its text then ends there, so that nobody takes it for another arrow's. */
function standsBefore(points: readonly Point[], label: NonNullable<PlacedEdge["label"]>): boolean {
  const middle = label.y + label.height / 2;
  const beside = points.flatMap((b, i) => {
    const a = points[i - 1];
    return a && a.x === b.x && Math.min(a.y, b.y) <= middle && middle <= Math.max(a.y, b.y)
      ? [a.x]
      : [];
  });
  const right = label.x + label.width;
  const [left, after] = [beside.filter((x) => x <= label.x), beside.filter((x) => x >= right)];
  if (after.length === 0) return false;
  return left.length === 0 || Math.min(...after) - right < label.x - Math.max(...left);
}

function textLine(
  line: TextLine,
  x: number,
  y: number,
  kind: string,
  overlay: ChartOverlay,
): string {
  const count = line.transition === undefined || line.soft
    ? undefined
    : overlay.taken?.get(line.transition);
  const data = line.transition === undefined
    ? ""
    : ` data-transition="${escapeXml(line.transition)}"`;
  const times = count === undefined ? "" : `<tspan class="times"> ×${count}</tspan>`;
  const tail = line.tail === undefined
    ? ""
    : `<tspan class="soft"> ${escapeXml(line.tail)}</tspan>`;
  const content = escapeXml(line.text) + tail + times;
  const classes = `${kind}${line.soft ? " soft" : ""}`;
  return `<text class="${classes}" x="${round(x)}" y="${round(y)}"${data}>${content}</text>`;
}

/** An orthogonal line with rounded corners. */
function pathOf(points: readonly Point[]): string {
  const [first, ...rest] = points;
  let path = `M${first!.x} ${first!.y}`;
  rest.forEach((point, i) => {
    const next = rest[i + 1];
    const before = i === 0 ? first! : rest[i - 1]!;
    if (!next) {
      path += `L${point.x} ${point.y}`;
      return;
    }
    const radius = Math.min(6, distance(before, point) / 2, distance(point, next) / 2);
    const a = toward(point, before, radius);
    const b = toward(point, next, radius);
    path += `L${a.x} ${a.y}Q${point.x} ${point.y} ${b.x} ${b.y}`;
  });
  return path;
}

function toward(from: Point, to: Point, by: number): Point {
  const length = distance(from, to) || 1;
  return {
    x: round(from.x + (to.x - from.x) / length * by),
    y: round(from.y + (to.y - from.y) / length * by),
  };
}

const round = (value: number): number => Math.round(value * 10) / 10;
