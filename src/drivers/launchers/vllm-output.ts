/** What `vllm serve` says while it starts, from 0.12 to 0.32: which step of the start each line belongs to. */

/** Steps of a start, in their order. */
export const VLLM_STEPS = [
  /** The command has read the model's configuration. */
  "configured",
  /** It starts the engine processes. */
  "launching",
  /** An engine has its INIT and begins. */
  "initialising",
  /** Its workers meet those of the other ranks: nobody goes on before all are there. */
  "joining",
  "loading-weights",
  "allocating-cache",
  "warming-up",
  /** Everything is done but the coordinator's word that all ranks are there. */
  "initialised",
  "stopping",
] as const;
export type VllmStep = typeof VLLM_STEPS[number];

/** A step that a line tells of. */
export interface VllmProgress {
  readonly step: VllmStep;
  /** The rank that says it; null for the command itself, and for an engine that does not say which it is. */
  readonly rank: number | null;
  readonly line: string;
}

const STEPS: readonly (readonly [VllmStep, RegExp])[] = [
  ["configured", /Resolved architecture: /],
  ["launching", /Launching \d+ data parallel engine\(s\) in headless mode/],
  ["initialising", /Initializing a V1 LLM engine/],
  ["joining", /world_size=\d+ rank=\d+ local_rank=\d+ distributed_init_method=/],
  ["loading-weights", /Starting to load model|Loading weights took|Loading safetensors/],
  ["allocating-cache", /KV cache size: [\d,]+ tokens/],
  ["warming-up", /Warming up model|Capturing CUDA graphs|Graph capturing finished/],
  ["initialised", /init engine \(.*\) took /],
  ["stopping", /\[shutdown\]|Shutting down\./],
];

/** The colours of a terminal, which 0.12 writes into files too. */
// deno-lint-ignore no-control-regex
const COLOURS = /\x1b\[[0-9;]*m/g;

/** The step that a line tells of; null for all the others. */
export function readVllmLine(text: string): VllmProgress | null {
  const line = text.replace(COLOURS, "");
  const found = STEPS.find(([, pattern]) => pattern.test(line));
  return found === undefined ? null : { step: found[0], rank: rankOf(line), line };
}

/** `(EngineCore_DP1 pid=7)`, `(Worker_DP1_EP1 pid=8)`; later releases drop the number where there is one rank only. */
function rankOf(line: string): number | null {
  const rank = /^\((?:EngineCore|Worker)[^ )]*?_DP(\d+)/.exec(line)?.[1];
  return rank === undefined ? null : Number(rank);
}

/** The process of a rank's engine, where a line names it. */
export function enginePidIn(text: string): { rank: number; pid: number } | null {
  const [, rank, pid] = /^\(EngineCore_DP(\d+) pid=(\d+)\)/.exec(text.replace(COLOURS, "")) ?? [];
  return rank === undefined ? null : { rank: Number(rank), pid: Number(pid) };
}

/**
 * Why a start failed, as the output has it: the last line of the first traceback. Later tracebacks are of those who waited for that one.
 * Null when there is none.
 */
export function causeIn(lines: readonly string[]): string | null {
  let inside = false;
  for (const text of lines) {
    const line = text.replace(COLOURS, "").replace(
      /^\([^)]*\) (?:ERROR \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\] ?)?/,
      "",
    );
    if (/^Traceback \(most recent call last\):/.test(line)) inside = true;
    else if (inside && /^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Timeout)\b/.test(line)) {
      return line.trim();
    }
  }
  return null;
}
