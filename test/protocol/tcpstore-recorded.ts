/** Traffic of real torch 2.13.0 clients and servers, recorded: one row an operation or a raw byte sequence. */
import { readFileSync } from "node:fs";

export interface RecordedConnection {
  /** What the client wrote, write by write, hex. */
  readonly chunks: readonly string[];
  /** Everything that the server replied, hex. */
  readonly reply: string;
  /** How it ended: still open, end of stream, reset, or not looked at. */
  readonly end: "open" | "EOF" | "RST" | "not read";
}

export interface Recorded {
  readonly op: string;
  /** Whether the server was torch's libuv server; else its legacy server. */
  readonly libuv: boolean;
  /** Client and server bytes in turn; `C-eof` and `S-eof` have no bytes. */
  readonly exchange?: readonly (readonly ["C" | "S" | "C-eof" | "S-eof", string?])[];
  readonly connections?: readonly RecordedConnection[];
  /** Whether the PING's nonce is the recorder's process id: bytes 6 to 9 of the client, 0 to 3 of the server. */
  readonly nonce?: boolean;
}

export const recorded: readonly Recorded[] = readFileSync("test/data/tcpstore.jsonl", "utf8")
  .trimEnd().split("\n").map((line) => JSON.parse(line) as Recorded);

/** Everything that one side of an exchange said, hex. */
export function said(row: Recorded, side: "C" | "S"): string {
  return (row.exchange ?? []).filter(([who]) => who === side).map(([, hex]) => hex ?? "").join("");
}
