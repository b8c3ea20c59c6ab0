/**
 * Recorded frames of original clusters held against the original's rules.
 *
 * A recording is a file of lines of JSON. The first says what was recorded (`vllm`, `size`); each other one is a message on a socket:
 * `{"t": seconds, "socket": "handshake", "from": rank, "frames": [hex]}`, `from` an engine or `to` one, identities left out.
 */
import {
  conform,
  type Conformance,
  type ConformOptions,
  type Observation,
} from "../src/checker/mod.ts";
import { decodeEngineHandshake, decodeInit, fromHex } from "../src/protocol/mod.ts";
import { originalHandshake } from "./upstream/startup.ts";

interface Line {
  readonly socket?: string;
  readonly from?: number | null;
  readonly to?: number | null;
  readonly frames?: readonly string[];
}

export interface FramesConformance extends Conformance {
  /** Messages of the recording that the model is not about, by their socket. */
  readonly leftOut: Readonly<Record<string, number>>;
}

/** Whether a text is a recording: by its first line. */
export function isRecording(text: string): boolean {
  try {
    const { vllm, size } = JSON.parse(text.slice(0, text.indexOf("\n"))) as Record<string, unknown>;
    return typeof vllm === "string" && typeof size === "number";
  } catch {
    return false;
  }
}

/** Holds a recording against the original's handshake. What an engine does by itself is not on the wire, and is searched for. */
export function conformFrames(text: string, options: ConformOptions = {}): FramesConformance {
  const [head, ...lines] = text.trimEnd().split("\n").map((line) => JSON.parse(line));
  const { size } = head as { size: number };
  const observations: Observation[] = [];
  const leftOut: Record<string, number> = {};
  for (const [i, line] of (lines as Line[]).entries()) {
    if (line.frames === undefined) continue;
    const seen = observed(line);
    if (seen !== undefined) observations.push({ seq: i + 2, ...seen });
    else {
      const what = `messages on the socket ${line.socket}`;
      leftOut[what] = (leftOut[what] ?? 0) + 1;
    }
  }
  const found = conform(originalHandshake(size), observations, {
    hidden: (action) => action.kind === "event",
    ...options,
  });
  return { ...found, leftOut };
}

/** What a message says, in the model's words. */
function observed({ socket, from, to, frames }: Line): Observation | undefined {
  if (socket !== "handshake") return undefined;
  const bytes = fromHex(frames!.at(-1) ?? "");
  if (to !== undefined) {
    const init = decodeInit(bytes);
    return { to: `engine/${to}`, event: { type: init.ok ? "init" : "unreadable" } };
  }
  const said = decodeEngineHandshake(bytes);
  const type = said.ok ? said.value.type : "stray";
  return { to: "front-end", event: { type, rank: `engine/${from}` } };
}
