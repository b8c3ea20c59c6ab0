import { identify, isRunning, type ProcessIdentity } from "../process-table.ts";
import { followLines } from "./follow.ts";
import { enginePidIn, readVllmLine, type VllmProgress } from "./vllm-output.ts";

/** Between two looks at the process table, in milliseconds. */
const LOOK_EVERY_MS = 250;

export interface EngineWatcher {
  /** A step of a start, as vLLM says it. */
  progress(progress: VllmProgress): void;
  /** The process of this rank's engine is gone. Told once. */
  gone(rank: number): void;
}

/**
 * Watches the engines that a process which we started has started itself: vLLM's command ends a long time after one of its engines has died (0.32 was
 * seen to take 18 s), and its output names their processes, and the steps of their start. Returns how to stop.
 */
export function watchEngines(log: string, hears: EngineWatcher): () => void {
  const engines = new Map<number, ProcessIdentity>();
  const unfollow = followLines(log, (line) => {
    const progress = readVllmLine(line);
    if (progress !== null) hears.progress(progress);
    const said = enginePidIn(line);
    if (said === null || engines.get(said.rank)?.pid === said.pid) return;
    const identity = identify(said.pid);
    // One that does not run is of an earlier life, whose output comes first in the same file.
    if (isRunning(identity)) engines.set(said.rank, identity);
  });
  const timer = setInterval(() => {
    for (const [rank, identity] of engines) {
      if (isRunning(identity) !== false) continue;
      engines.delete(rank);
      hears.gone(rank);
    }
  }, LOOK_EVERY_MS);
  (timer as unknown as { unref?(): void }).unref?.();
  return () => {
    clearInterval(timer);
    unfollow();
  };
}
