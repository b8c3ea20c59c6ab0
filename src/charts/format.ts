import { toAscii } from "./ascii.ts";
import { ChartError } from "./error.ts";
import { toMermaid } from "./mermaid.ts";
import type { ChartModel } from "./model.ts";
import type { ChartOverlay } from "./overlay.ts";
import { toScxml } from "./scxml/write.ts";
import { toXStateJson } from "./stately.ts";
import { layoutChart } from "./svg/layout.ts";
import { toSvg } from "./svg/write.ts";

/** Every format with the ending of its files. `model` is this room's own structure as JSON. */
export const chartFormats = {
  ascii: "txt",
  svg: "svg",
  mermaid: "mmd",
  scxml: "scxml",
  json: "json",
  model: "model.json",
} as const;

export type ChartFormat = keyof typeof chartFormats;

export interface WriteOptions {
  /** Shown by `svg`, `mermaid` and `ascii`. */
  readonly overlay?: ChartOverlay;
  /** ANSI colours in `ascii`. */
  readonly color?: boolean;
  /** Columns of `ascii`. */
  readonly width?: number;
}

/** Checks a format's name; throws `ChartError` (`chart.format-unknown`) that lists those there are. */
export function chartFormat(name: string): ChartFormat {
  if (Object.hasOwn(chartFormats, name)) return name as ChartFormat;
  throw new ChartError(
    "chart.format-unknown",
    `there is no chart format ${JSON.stringify(name)}: use one of ${
      Object.keys(chartFormats).join(", ")
    }`,
  );
}

/** The chart in a format, byte for byte the same for the same model and options. */
export async function writeChart(
  model: ChartModel,
  format: ChartFormat,
  options: WriteOptions = {},
): Promise<string> {
  const { overlay } = options;
  switch (format) {
    case "ascii":
      return toAscii(model, options);
    case "svg": {
      const counts = overlay?.visits !== undefined || overlay?.taken !== undefined;
      return toSvg(model, await layoutChart(model, { counts }), overlay ? { overlay } : {});
    }
    case "mermaid":
      return toMermaid(model, overlay);
    case "scxml":
      return toScxml(model);
    case "json":
      return toXStateJson(model);
    case "model":
      return JSON.stringify(model, null, 2) + "\n";
  }
}
