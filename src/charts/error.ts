/** Codes of what can go wrong in this room. */
export type ChartErrorCode =
  | "chart.not-a-machine"
  | "chart.too-large"
  | "chart.scxml-syntax"
  | "chart.scxml-invalid"
  | "chart.format-unknown";

/** A chart could not be read or written; `code` is stable, the message says what to do. */
export class ChartError extends Error {
  readonly code: ChartErrorCode;
  constructor(code: ChartErrorCode, message: string) {
    super(message);
    this.name = "ChartError";
    this.code = code;
  }
}
