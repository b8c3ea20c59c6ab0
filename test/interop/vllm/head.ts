/** Muster as the head of real engines, for the tests of this folder: what they need of versions, models and environments. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import type { TestContext } from "node:test";
import { Coordinator, type CoordinatorOptions } from "../../../src/coordinator.ts";
import { vllmLaunches } from "../../../src/drivers/launchers/vllm.ts";
import type { Launch } from "../../../src/machines/mod.ts";

const HERE = "test/interop/vllm";
const HOME = process.env["MUSTER_VLLM_HOME"] ?? `${HERE}/.venv`;

export interface Vllm {
  readonly version: string;
  /** The generation of the wire that it speaks. */
  readonly generation: "0.12" | "newest";
  /** Path of its command, and of the Python beside it. */
  readonly command: string;
  readonly python: string;
  /** Why it cannot be tested here, or false. */
  readonly missing: string | false;
}

/** The versions to test: `MUSTER_VLLM` in the environment, or both that there are recipes for. */
export const VERSIONS: readonly Vllm[] = (process.env["MUSTER_VLLM"] ?? "0.12.0 0.32.0").split(" ")
  .map((version) => {
    const command = resolve(HOME, version, "bin/vllm");
    return {
      version,
      generation: version.startsWith("0.12") ? "0.12" : "newest",
      command,
      python: join(command, "../python"),
      missing: existsSync(command)
        ? false
        : `vLLM ${version} is not installed: run test/interop/vllm/setup.sh ${version}`,
    };
  });

export type ModelKind = "dense" | "moe";

/** Flags of `vllm serve` for a model without weights and tokenizer, as small as they may be. */
export const SMALL: readonly string[] = [
  "--load-format",
  "dummy",
  "--skip-tokenizer-init",
  "--max-model-len",
  "128",
  "--enforce-eager",
  "--max-num-seqs",
  "4",
  // The CPU backend refuses to start when less than this share of the memory is free.
  "--gpu-memory-utilization",
  "0.1",
];

/** What engines need to know to run on a CPU that they share, without a network. */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  VLLM_CPU_KVCACHE_SPACE: "1",
  VLLM_CPU_OMP_THREADS_BIND: "nobind",
  OMP_NUM_THREADS: "1",
  HF_HUB_OFFLINE: "1",
  VLLM_NO_USAGE_STATS: "1",
  NO_COLOR: "1",
  PYTHONPATH: resolve(HERE, "plugin"),
  PYTHONDONTWRITEBYTECODE: "1",
  // A resolver that does not answer costs torch five seconds a connection, for names that only its logs use.
  RES_OPTIONS: "timeout:1 attempts:1",
};

/** A directory that goes with the test, with a model in it. */
export function model(t: TestContext, kind: ModelKind): { directory: string; model: string } {
  const directory = mkdtempSync(join(tmpdir(), "mx-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, kind);
  execFileSync("python3", [`${HERE}/make_model.py`, kind, path]);
  return { directory, model: path };
}

export interface HeadOptions {
  readonly vllm: Vllm;
  readonly kind: ModelKind;
  readonly size?: number;
  readonly perLaunch?: number;
  readonly flags?: readonly string[];
  /** Changes the launches that would be made. */
  readonly launches?: (launches: readonly Launch[]) => readonly Launch[];
  readonly limits?: CoordinatorOptions["limits"];
}

export interface Head {
  readonly coordinator: Coordinator;
  readonly directory: string;
  /** Everything that a launch has said so far. */
  said(launch: string): string;
}

/** A coordinator with `vllm serve --headless` as its child processes. */
export async function head(t: TestContext, options: HeadOptions): Promise<Head> {
  const { vllm, kind, size = 2, limits } = options;
  const { directory, model: path } = model(t, kind);
  const made = vllmLaunches({
    model: path,
    size,
    ranks: size,
    ...(options.perLaunch === undefined ? {} : { perLaunch: options.perLaunch }),
    program: vllm.command,
    flags: [...SMALL, ...options.flags ?? []],
  }, ENVIRONMENT);
  const coordinator = await Coordinator.start({
    cluster: {
      dataParallelSize: size,
      dataParallelSizeLocal: 0,
      dataParallelAddress: "127.0.0.1",
      dataParallelRpcPort: 0,
      allowLoopback: true,
      moe: kind === "moe",
      generation: vllm.generation,
    },
    directory,
    launches: options.launches?.(made) ?? made,
    ...(limits === undefined ? {} : { limits }),
  });
  t.after(() => coordinator.close());
  return {
    coordinator,
    directory,
    said: (launch) => readFileSync(join(coordinator.logs, `${launch}.log`), "utf8"),
  };
}

/** The process of one rank's engine, as vLLM names it in its output. Null before it has said anything. */
export function pidOf(said: string, rank: number): number | null {
  const found = new RegExp(`\\(EngineCore_DP${rank} pid=(\\d+)\\)`).exec(said);
  return found === null ? null : Number(found[1]);
}

export async function until(is: () => boolean, what: string, withinMs = 300_000): Promise<void> {
  for (const end = Date.now() + withinMs; !is();) {
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
