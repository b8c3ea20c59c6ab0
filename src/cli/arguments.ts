/** Arguments of the command line that several commands take. */
import { InvalidArgumentError } from "commander";

/** A whole number from 0. */
export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("It must be a whole number from 0.");
  return Number(text);
}

/** A port, or 0 for a free one. */
export function portNumber(text: string): number {
  if (!/^\d+$/.test(text) || Number(text) > 65_535) {
    throw new InvalidArgumentError("It must be a port from 0 to 65535; 0 takes a free one.");
  }
  return Number(text);
}

/** `90`, `1.5s`, `10m`, `2h`: seconds unless a unit says otherwise. In milliseconds. */
export function durationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text);
  if (match === null) {
    throw new InvalidArgumentError("It must be a duration such as 500ms, 90s, 10m or 2h.");
  }
  const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[match[2] ?? "s"]!;
  return Math.round(Number(match[1]) * unit);
}
