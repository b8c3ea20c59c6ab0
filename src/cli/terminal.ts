/** Colour and live screens, only where there is a terminal. */
import process from "node:process";

export interface Terminal {
  readonly live: boolean;
  /** As it is now: people change it. */
  readonly columns: number;
  readonly rows: number;
  readonly paint: Paint;
  write(text: string): void;
}

export interface Paint {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
  readonly cyan: (text: string) => string;
}

const code = (on: number, off: number, used: boolean) => (text: string): string =>
  used ? `\u001b[${on}m${text}\u001b[${off}m` : text;

/** Colours for a stream: none when it is no terminal, or when NO_COLOR is set. */
export function paintFor(isTerminal: boolean): Paint {
  const used = process.env["FORCE_COLOR"] !== undefined ||
    (isTerminal && process.env["NO_COLOR"] === undefined && process.env["TERM"] !== "dumb");
  return {
    bold: code(1, 22, used),
    dim: code(2, 22, used),
    red: code(31, 39, used),
    green: code(32, 39, used),
    yellow: code(33, 39, used),
    cyan: code(36, 39, used),
  };
}

export const terminal = (): Terminal => ({
  live: process.stdout.isTTY === true && process.env["TERM"] !== "dumb",
  get columns() {
    // A file or a pipe takes whole lines.
    return process.stdout.columns || (process.stdout.isTTY === true ? 100 : Infinity);
  },
  get rows() {
    return process.stdout.rows || 40;
  },
  paint: paintFor(process.stdout.isTTY === true),
  write: (text) => void process.stdout.write(text),
});

// deno-lint-ignore no-control-regex -- colours are control characters
const ESCAPES = /(\u001b\[[0-9;]*m)/;

/** The line in so many columns; its colours end with it. */
export function cut(line: string, columns: number): string {
  const parts = line.split(ESCAPES);
  const width = (part: string) => ESCAPES.test(part) ? 0 : [...part].length;
  if (parts.reduce((sum, part) => sum + width(part), 0) <= columns) return line;
  let left = columns - 1;
  let marked = false;
  return parts.map((part) => {
    if (ESCAPES.test(part)) return part;
    const letters = [...part];
    const kept = letters.slice(0, left).join("");
    left -= Math.min(left, letters.length);
    if (kept.length === part.length || marked) return kept;
    marked = true;
    return `${kept}…`;
  }).join("");
}

/** A block of lines at the bottom of the terminal that is drawn again in place; what is printed above it stays. */
export class LiveBlock {
  readonly #terminal: Terminal;
  #drawn = 0;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  draw(lines: readonly string[]): void {
    if (!this.#terminal.live) return;
    // Lines that wrap, or more of them than the screen has, could not be found again.
    const { columns, rows } = this.#terminal;
    const shown = lines.slice(0, Math.max(1, rows - 1)).map((line) => cut(line, columns));
    this.#terminal.write(this.#clear() + shown.map((l) => `${l}\n`).join(""));
    this.#drawn = shown.length;
  }

  /** Prints above the block. */
  print(lines: readonly string[], block: readonly string[]): void {
    const text = lines.map((l) => `${l}\n`).join("");
    if (!this.#terminal.live) return this.#terminal.write(text);
    this.#terminal.write(this.#clear() + text);
    this.#drawn = 0;
    this.draw(block);
  }

  /** Writes the last state in full, and goes on below it. */
  end(lines: readonly string[]): void {
    if (!this.#terminal.live) return;
    this.#terminal.write(this.#clear() + lines.map((l) => `${l}\n`).join(""));
    this.#drawn = 0;
  }

  #clear(): string {
    return this.#drawn === 0 ? "" : `\u001b[${this.#drawn}A\u001b[0J`;
  }
}
