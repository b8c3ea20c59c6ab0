/** `muster check --log`: is what was recorded a run that a model allows? */
import { existsSync, readFileSync, statSync } from "node:fs";
import { conformFrames, isRecording } from "../../../models/frames.ts";
import { conformJournal } from "../../../models/conformance.ts";
import {
  type Action,
  conform,
  type Conformance,
  conformanceText,
  type Model,
  type Observation,
} from "../../checker/mod.ts";
import { EXIT } from "../exit-codes.ts";
import { readerOf } from "../journal-source.ts";
import { Refusal } from "./refusal.ts";

interface Compared extends Conformance {
  readonly leftOut?: Readonly<Record<string, number>>;
}

/**
 * Holds a record against a model: a journal against that of its own configuration, frames of an original cluster against the original's, and a
 * list of observations against a model that is named. Returns the exit code.
 */
export function checkLog(
  path: string,
  model: Model | undefined,
  json: boolean,
  out: (text: string) => void,
): number {
  if (!existsSync(path)) throw new Refusal(`there is no journal at ${path}`);
  const result = model === undefined ? recorded(path) : observedBy(model, path);
  if (json) out(`${JSON.stringify(result, undefined, 2)}\n`);
  else {
    out(`${conformanceText(result)}\n`);
    const leftOut = Object.entries(result.leftOut ?? {}).map(([what, n]) => `${n} x ${what}`);
    if (leftOut.length > 0) {
      out(`  not compared, the model is not about them: ${leftOut.join(", ")}\n`);
    }
  }
  return result.outcome === "conforms" ? EXIT.ok : EXIT.failed;
}

function recorded(path: string): Compared {
  const text = statSync(path).isDirectory() ? "" : readFileSync(path, "utf8");
  if (isRecording(text)) return conformFrames(text);
  return conformJournal([...readerOf(path).records()].map((r) => r.record));
}

/** What an instance does of its own accord is hidden, unless the record has such a thing of it. */
function observedBy(model: Model, path: string): Compared {
  const observations = observationsIn(path);
  const recorded = new Set(observations.map(({ to, event }) => `${to} ${event.type}`));
  const own = (action: Action): boolean => action.kind === "event" || action.kind === "timer";
  return conform(model, observations, {
    hidden: (action) => own(action) && !recorded.has(`${action.to} ${action.event?.type}`),
  });
}

function observationsIn(path: string): Observation[] {
  if (statSync(path).isDirectory()) {
    throw new Refusal(`--log ${path} is a folder; with a model it is a file of observations`);
  }
  return readFileSync(path, "utf8").split("\n").flatMap((line, i) => {
    if (line.trim() === "") return [];
    let seen: Partial<Observation> | null = null;
    try {
      seen = JSON.parse(line);
    } catch {
      // Said below.
    }
    if (typeof seen?.to !== "string" || typeof seen.event?.type !== "string") {
      throw new Refusal(
        `--log ${path}, line ${
          i + 1
        }: an observation looks like {"to": "worker/a", "event": {"type": "job"}}`,
      );
    }
    return [{ to: seen.to, event: seen.event, seq: i + 1 }];
  });
}
