/**
 * Starting all engines of a group anew: what is left to do when some of them hold a reconfiguration that they cannot abandon, or nobody
 * knows in which topology they serve. Engines form their group together at their start, so one of them alone cannot come back.
 */
import type { Launch } from "./configuration.ts";
import type { Relaunch } from "./launcher.ts";
import type { JoinerTemplate } from "./operation.ts";

/** What is known of the launches of a cluster. */
export interface RegroupSettings {
  readonly policy: "restart" | "hold";
  /** The size that the launches of the configuration were made for. */
  readonly size: number;
  /** Every rank is of this front-end. */
  readonly whole: boolean;
  readonly launches: readonly {
    readonly id: string;
    readonly ranks: readonly number[];
    /** Its command says the size. */
    readonly namesSize: boolean;
  }[];
  readonly progressMs: number;
}

export interface Regroup {
  readonly size: number;
  readonly joiner: JoinerTemplate | null;
  /** How often it was done before: new launches have new names. */
  readonly times: number;
}

export type RegroupPlan =
  | { readonly ok: true; readonly next: Relaunch; readonly byHand: readonly number[] }
  | { readonly ok: false; readonly why: string };

/** A joiner is launched as an ordinary engine now: without the mark of a scale-up, and towards the handshake of everybody. */
const SCALE_UP_MARK = "VLLM_ELASTIC_EP_SCALE_UP_LAUNCH";

/** Which launches start again for a group of ranks 0 to size-1, and which are made for ranks that had joined; or why that cannot be. */
export function planRegroup(settings: RegroupSettings, regroup: Regroup): RegroupPlan {
  const { size, joiner, times } = regroup;
  const no = (why: string): RegroupPlan => ({ ok: false, why });
  if (!settings.whole) {
    return no(
      "other front-ends have engines of this group; stop the servers of all ranks, and start them anew",
    );
  }
  const again: string[] = [];
  const covered = new Set<number>();
  for (const { id, ranks, namesSize } of settings.launches) {
    const staying = ranks.filter((rank) => rank < size);
    if (staying.length === 0) continue;
    if (staying.length < ranks.length) {
      return no(`launch ${id} runs ranks ${ranks.join(", ")}, and some of them have left`);
    }
    if (namesSize && size !== settings.size) {
      return no(`the command of launch ${id} says that the size is ${settings.size}`);
    }
    again.push(id);
    for (const rank of ranks) covered.add(rank);
  }
  const others = Array.from({ length: size }, (_, rank) => rank).filter((r) => !covered.has(r));
  const joined = others.filter((rank) => joiner !== null && rank >= settings.size);
  return {
    ok: true,
    next: {
      again,
      add: joined.map((rank) => launchOf(joiner!, rank, size, times, settings.progressMs)),
    },
    byHand: others.filter((rank) => !joined.includes(rank)),
  };
}

function launchOf(
  { argv, env, cwd, inherit, stopMs }: JoinerTemplate,
  rank: number,
  size: number,
  times: number,
  progressMs: number,
): Launch & { stopMs: number; progressMs: number } {
  const fill = (text: string) =>
    text.replaceAll("{rank}", String(rank)).replaceAll("{size}", String(size))
      .replaceAll("{scaleUp}", "{handshake}");
  return {
    id: `rank-${rank}-anew-${times + 1}`,
    ranks: [rank],
    argv: argv.map(fill),
    env: Object.fromEntries(
      Object.entries(env).filter(([name]) => name !== SCALE_UP_MARK).map(([k, v]) => [k, fill(v)]),
    ),
    cwd,
    inherit,
    stopMs,
    progressMs,
  };
}
