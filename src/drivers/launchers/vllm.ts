import process from "node:process";
import type { Launch } from "../../machines/mod.ts";
import { findProgram } from "../keeper/guardian.ts";
import { followLines } from "./follow.ts";
import {
  type Launched,
  type Launcher,
  LauncherError,
  type LaunchExit,
  type LaunchOrder,
  type Stopped,
} from "./launcher.ts";
import type { LocalLauncher, LocalOrder } from "./local.ts";
import { causeIn, readVllmLine, type VllmProgress } from "./vllm-output.ts";

/** The engines of one node, run by vLLM's own command without its server: we are the head that they report to. */
export interface VllmNode {
  readonly model: string;
  /** Data-parallel size of the whole cluster. */
  readonly size: number;
  readonly firstRank: number;
  /** Ranks on this node. */
  readonly ranks: number;
  /** Where our handshake socket can be reached: an address of ours, as this node sees it, and its port. */
  readonly address: string;
  readonly rpcPort: number | string;
  /** Further flags of `vllm serve`, handed on as they are. */
  readonly flags?: readonly string[];
  /** The command; default `vllm`, looked up in the PATH of the launch. */
  readonly program?: string;
}

/** The command line for a node (wire spec, section 3: the form usable by a foreign coordinator). */
export function headlessCommand(node: VllmNode): string[] {
  return [
    node.program ?? "vllm",
    "serve",
    node.model,
    "--headless",
    "--data-parallel-size",
    String(node.size),
    "--data-parallel-size-local",
    String(node.ranks),
    "--data-parallel-start-rank",
    String(node.firstRank),
    "--data-parallel-address",
    node.address,
    "--data-parallel-rpc-port",
    String(node.rpcPort),
    ...(node.flags ?? []),
  ];
}

/**
 * Launches of a run (`CoordinatorOptions.launches`) that start ranks `0..ranks-1` on this host, `perLaunch` of them in one process. The head's
 * address is filled in when its socket is bound. To the head these engines are remote and headless: its own local size is 0.
 */
export function vllmLaunches(
  node: Omit<VllmNode, "address" | "rpcPort" | "firstRank"> & { readonly perLaunch?: number },
  env: Readonly<Record<string, string>> = {},
): Launch[] {
  const { ranks, perLaunch = ranks } = node;
  return Array.from({ length: Math.ceil(ranks / perLaunch) }, (_, i) => {
    const firstRank = i * perLaunch;
    const part: VllmNode = {
      ...node,
      firstRank,
      ranks: Math.min(perLaunch, ranks - firstRank),
      address: "{handshake.host}",
      rpcPort: "{handshake.port}",
    };
    return {
      id: perLaunch === ranks ? "vllm" : `vllm-${firstRank}`,
      ranks: ranksOf(part),
      argv: headlessCommand(part),
      env,
      cwd: null,
      inherit: true,
      output: "vllm",
    };
  });
}

/** The ranks of a node. */
export const ranksOf = ({ firstRank, ranks }: VllmNode): number[] =>
  Array.from({ length: ranks }, (_, i) => firstRank + i);

/** What is missing before vLLM can be started with this PATH; null when nothing is. */
export function vllmMissing(
  program: string,
  path: string | undefined,
  cwd: string,
): string | null {
  const found = findProgram(program, path, cwd);
  if (!("code" in found)) return null;
  return `vLLM's command cannot be started: ${found.message}. Install vLLM in the environment that the engines run in ` +
    `(pip install vllm), put its bin directory on the PATH of the launch, or name the command by its full path`;
}

export interface VllmOrder extends Omit<LaunchOrder, "argv" | "ranks"> {
  readonly node: VllmNode;
  readonly inherit?: boolean;
  readonly devices?: LocalOrder["devices"];
}

/** Lines of output that are kept of each launch to find the first cause in. */
const KEPT_LINES = 2000;

/** `vllm serve --headless` on this host: the local launcher with vLLM's command line, and an ear for what it says. */
export class VllmLauncher implements Launcher<VllmOrder> {
  readonly kind: string = "vllm";
  readonly #local: LocalLauncher;
  readonly #progress = new Set<(id: string, progress: VllmProgress) => void>();
  readonly #lines = new Map<string, string[]>();
  readonly #following = new Map<string, () => void>();

  constructor(local: LocalLauncher) {
    this.#local = local;
    local.exited((exit) => this.#following.get(exit.id)?.());
  }

  /** @throws LauncherError `program-missing`, which says what to install or to set. */
  async start(order: VllmOrder): Promise<Launched> {
    const { node, ...rest } = order;
    const path = rest.env.PATH ?? process.env.PATH;
    const missing = vllmMissing(node.program ?? "vllm", path, rest.cwd ?? process.cwd());
    if (missing !== null) throw new LauncherError("program-missing", missing);
    const lines: string[] = [];
    this.#lines.set(order.id, lines);
    this.#following.set(
      order.id,
      followLines(this.#local.logOf(order.id), (line) => {
        lines.push(line);
        if (lines.length > KEPT_LINES) lines.shift();
        const progress = readVllmLine(line);
        if (progress === null) return;
        for (const listener of this.#progress) listener(order.id, progress);
      }),
    );
    return await this.#local.start({
      ...rest,
      ranks: ranksOf(node),
      argv: headlessCommand(node),
    });
  }

  /** Tells of every step of every launch. Returns how to stop listening. */
  progress(listener: (id: string, progress: VllmProgress) => void): () => void {
    this.#progress.add(listener);
    return () => this.#progress.delete(listener);
  }

  /** Why a launch failed, in its own words; null when it did not say. */
  cause(id: string): string | null {
    this.#following.get(id)?.();
    return causeIn(this.#lines.get(id) ?? []);
  }

  stop(id: string, deadlineMs: number): Promise<Stopped> {
    return this.#local.stop(id, deadlineMs);
  }

  exited(listener: (exit: LaunchExit) => void): () => void {
    return this.#local.exited(listener);
  }

  logs(id: string, lines?: number): Promise<readonly string[]> {
    return this.#local.logs(id, lines);
  }

  async close(deadlineMs?: number): Promise<void> {
    await this.#local.close(deadlineMs);
    for (const stop of this.#following.values()) stop();
  }
}
