/**
 * Charts of any XState v5 machine, and sequence diagrams of any list of steps, as text and pictures.
 *
 * `chartModel(machine)` reads the structure once; writers turn it into Mermaid, SCXML, XState JSON, SVG and text for a
 * terminal. Output is byte-stable: the same machine gives the same bytes on every runtime.
 */
export { chartModel, isMachine, type MachineLike } from "./read.ts";
export {
  type ChartAction,
  type ChartGuard,
  type ChartModel,
  type ChartNode,
  type ChartTransition,
  type ChartTrigger,
  indexOf,
  type NodeKind,
  nodesOf,
  transitionsOf,
} from "./model.ts";
export { ChartError, type ChartErrorCode } from "./error.ts";
export { activeStates, type ChartOverlay, type Coverage, coverageOf } from "./overlay.ts";
export { toMermaid } from "./mermaid.ts";
export { toScxml } from "./scxml/write.ts";
export { readScxml } from "./scxml/read.ts";
export { scxmlFaults } from "./scxml/validate.ts";
export { toXStateJson } from "./stately.ts";
export { type AsciiOptions, toAscii } from "./ascii.ts";
export {
  type ChartLayout,
  layoutChart,
  type LayoutOptions,
  type PlacedEdge,
  type PlacedNode,
} from "./svg/layout.ts";
export { type SvgOptions, toSvg } from "./svg/write.ts";
export { chartStyle } from "./svg/style.ts";
export {
  type ChartFormat,
  chartFormat,
  chartFormats,
  writeChart,
  type WriteOptions,
} from "./format.ts";
export { type Fate, type Lifeline, lifelinesOf, type SequenceStep } from "./sequence/steps.ts";
export { type SequenceTextOptions, toSequenceText } from "./sequence/text.ts";
export { toSequenceMermaid } from "./sequence/mermaid.ts";
export { type SequenceSvgOptions, toSequenceSvg } from "./sequence/svg.ts";
export { sequenceStyle } from "./sequence/style.ts";
export {
  type Cast,
  castInOrder,
  musterCast,
  type RunSequenceOptions,
  type RunStep,
  stepsOfRun,
  valueText,
} from "./sequence/of-run.ts";
export { stepsOfTrace } from "./sequence/of-trace.ts";
export { ChartTracker, TrackedCharts } from "./tracker.ts";
export { actionText, durationText, guardText, transitionText, triggerText } from "./labels.ts";
export { type Inspector, inspectSteps } from "./inspection.ts";
export { type CheckedChart, checkedCharts } from "./checked.ts";
