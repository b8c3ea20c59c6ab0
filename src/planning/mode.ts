import type { ClusterConfig } from "./config.ts";
import { type Notice, type Planned, type Refusal } from "./refusal.ts";
import { refuse } from "./refuse.ts";

/** Who balances the load: nobody (offline), one front-end, one per node, or something outside. */
export type Mode = "offline" | "internal" | "hybrid" | "external";

/** The mode that vLLM derives from the flags of one process, and every step of the derivation. */
export interface DerivedMode {
  readonly mode: Mode;
  /** One sentence a step, in order. */
  readonly why: readonly string[];
  readonly notices: readonly Notice[];
  /** N: how many ranks there are in all. */
  readonly size: number;
  /** L: how many of them run on this node. */
  readonly localSize: number;
  /** R: the first of them. */
  readonly firstRank: number;
}

/**
 * The load-balancing mode of one process (section 1, "How the mode is selected").
 *
 * @returns refusals for combinations that vLLM refuses too, and for those it silently misreads.
 */
export function deriveMode(config: ClusterConfig): Planned<DerivedMode> {
  const derived = config.dataParallelRankLocal !== undefined
    ? offline(config)
    : config.dataParallelBackend === "ray"
    ? ray(config)
    : config.dataParallelExternalLb || config.dataParallelRank !== undefined
    ? external(config)
    : hybridAsked(config)
    ? hybrid(config)
    : internal(config);
  if (!derived.ok) return derived;
  const wrong = outOfRange(config, derived.plan);
  return wrong.length ? { ok: false, refusals: wrong } : derived;
}

const hybridByStartRank = (c: ClusterConfig): boolean =>
  c.dataParallelSizeLocal !== undefined && !c.headless && (c.dataParallelStartRank ?? 0) > 0;
const hybridAsked = (c: ClusterConfig): boolean => c.dataParallelHybridLb || hybridByStartRank(c);

function offline(c: ClusterConfig): Planned<DerivedMode> {
  const refusals = [
    ...excluded(c, "offline (--data-parallel-rank-local)", [
      "dataParallelExternalLb",
      "dataParallelHybridLb",
      "dataParallelStartRank",
    ]),
    ...(c.headless
      ? [refuse(c, "headless-wrong", "headless", {
        message: "offline, each process has its own engine and its own front-end.",
        fix: "Drop --headless.",
      })]
      : []),
    ...(c.dataParallelSizeLocal !== undefined && c.dataParallelSizeLocal !== 1
      ? [refuse(c, "local-size-wrong", "dataParallelSizeLocal", {
        message: "offline, each process has exactly one engine.",
        fix: "Give 1, or leave it out.",
      })]
      : []),
    ...(c.dataParallelRank === undefined && c.dataParallelSize > 1
      ? [refuse(c, "rank-missing", "dataParallelRank", {
        message: `offline with ${c.dataParallelSize} ranks, each process must know its own.`,
        fix: "Add --data-parallel-rank (VLLM_DP_RANK).",
      })]
      : []),
  ];
  return result(refusals, {
    mode: "offline",
    why: ["--data-parallel-rank-local is set: one process and one engine per rank, no server."],
    notices: [],
    size: c.dataParallelSize,
    localSize: 1,
    firstRank: c.dataParallelRank ?? 0,
  });
}

function ray(c: ClusterConfig): Planned<DerivedMode> {
  const contradicting = [
    "dataParallelExternalLb",
    "dataParallelHybridLb",
    "dataParallelRank",
    "dataParallelStartRank",
    "headless",
  ] as const;
  const refusals = contradicting.filter((key) => isSet(c, key)).map((key) =>
    refuse(c, "ray-wrong", key, {
      message: "with the Ray backend one front-end starts every engine, on every node.",
      fix: "Drop it, or use --data-parallel-backend mp.",
    })
  );
  const span = c.rayDpPackStrategy === "span";
  return result(refusals, {
    mode: "internal",
    why: [
      "The backend is Ray: one front-end starts every engine as an actor and balances the load.",
      ...(c.dataParallelSizeLocal === undefined
        ? [
          span
            ? "No local size is given and the strategy is span: one rank on the master node."
            : "No local size is given: it is the data-parallel size.",
        ]
        : []),
    ],
    notices: [],
    size: c.dataParallelSize,
    localSize: c.dataParallelSizeLocal ?? (span ? 1 : c.dataParallelSize),
    firstRank: 0,
  });
}

function external(c: ClusterConfig): Planned<DerivedMode> {
  const byRank = c.dataParallelRank !== undefined;
  const because = byRank ? "--data-parallel-rank" : "--data-parallel-external-lb";
  const refusals = [
    ...excluded(c, `external load balancing (${because})`, [
      "dataParallelHybridLb",
      "dataParallelStartRank",
    ]),
    ...(c.dataParallelSizeLocal !== undefined && c.dataParallelSizeLocal !== 1
      ? [refuse(c, "local-size-wrong", "dataParallelSizeLocal", {
        message: `${because} means external load balancing: one process and one engine per rank.`,
        fix: "Give 1, or leave it out.",
      })]
      : []),
    ...(!byRank && c.dataParallelSize > 1
      ? [refuse(c, "rank-missing", "dataParallelRank", {
        message: "behind an external load balancer each process must know its own rank.",
        fix: `Add --data-parallel-rank, from 0 to ${c.dataParallelSize - 1}.`,
      })]
      : []),
    ...(c.headless
      ? [refuse(c, "headless-wrong", "headless", {
        message: `${because} means external load balancing: each rank has its own front-end.`,
        fix: `Drop --headless, or drop ${because} and give --data-parallel-start-rank.`,
        upstream: "Remote engine <i> must not use --headless in external or hybrid dp lb mode",
      })]
      : []),
  ];
  return result(refusals, {
    mode: "external",
    why: [`${because} is set: each rank is a server of its own, and the load is balanced outside.`],
    notices: [],
    size: c.dataParallelSize,
    localSize: 1,
    firstRank: c.dataParallelRank ?? 0,
  });
}

function hybrid(c: ClusterConfig): Planned<DerivedMode> {
  const because = c.dataParallelHybridLb
    ? "--data-parallel-hybrid-lb is set"
    : "--data-parallel-start-rank is above 0 and --data-parallel-size-local is given";
  const local = c.dataParallelSizeLocal;
  if (c.headless) {
    return result([refuse(c, "headless-wrong", "headless", {
      message: `${because}: hybrid load balancing has a front-end on each node.`,
      fix: "Drop --headless, or drop --data-parallel-hybrid-lb.",
      upstream: "data_parallel_hybrid_lb is not applicable in headless mode",
    })]);
  }
  if (local === undefined) {
    return result([refuse(c, "local-size-missing", "dataParallelSizeLocal", {
      message: "hybrid load balancing needs this node's share of the ranks.",
      fix: "Add --data-parallel-size-local.",
      upstream: "data_parallel_size_local must be set to use data_parallel_hybrid_lb.",
    })]);
  }
  if (local === 0) {
    return result([refuse(c, "local-size-wrong", "dataParallelSizeLocal", {
      message: "a front-end of hybrid load balancing serves its own engines, and has none.",
      fix: "Give 1 or more, or drop --data-parallel-hybrid-lb.",
    })]);
  }
  const base = {
    size: c.dataParallelSize,
    localSize: local,
    firstRank: c.dataParallelStartRank ?? 0,
  };
  if (local === 1) {
    return result([], {
      ...base,
      mode: "external",
      why: [
        `${because}: hybrid load balancing.`,
        "The local size is 1: hybrid with one engine is external load balancing.",
      ],
      notices: [{
        code: "hybrid-became-external",
        message: "Hybrid load balancing with one local engine becomes external load balancing.",
      }],
    });
  }
  if (local === c.dataParallelSize) {
    return frontEndOfAll(c, {
      ...base,
      mode: "internal",
      why: [
        `${because}: hybrid load balancing.`,
        "The local size is the data-parallel size: one node has all ranks, and its front-end balances.",
      ],
      notices: [{
        code: "hybrid-became-internal",
        message: "Hybrid load balancing is switched off: every rank is on this node.",
      }],
    });
  }
  return result([], {
    ...base,
    mode: "hybrid",
    why: [`${because}: each node's front-end balances over its own engines.`],
    notices: [],
  });
}

function internal(c: ClusterConfig): Planned<DerivedMode> {
  const local = c.dataParallelSizeLocal;
  if (local === undefined && (c.dataParallelStartRank ?? 0) > 0) {
    return result([refuse(c, "start-rank-ignored", "dataParallelStartRank", {
      message:
        "without a local size vLLM ignores the start rank, and this node would claim rank 0.",
      fix: "Add --data-parallel-size-local.",
    })]);
  }
  const why = [
    c.headless
      ? "--headless is set: engines only, their front-end is on another node."
      : "No flag asks for another mode: one front-end balances over all engines.",
    ...(local === undefined ? ["No local size is given: it is the data-parallel size."] : []),
  ];
  const derived: DerivedMode = {
    mode: "internal",
    why,
    notices: [],
    size: c.dataParallelSize,
    localSize: local ?? c.dataParallelSize,
    firstRank: c.dataParallelStartRank ?? 0,
  };
  return c.headless ? result(headlessFaults(c), derived) : frontEndOfAll(c, derived);
}

function headlessFaults(c: ClusterConfig): Refusal[] {
  return [
    ...(c.dataParallelSizeLocal === 0
      ? [refuse(c, "local-size-wrong", "dataParallelSizeLocal", {
        message: "a headless node is there for its engines, and has none.",
        fix: "Give 1 or more.",
        upstream: "data_parallel_size_local must be > 0 in headless mode",
      })]
      : []),
    ...((c.apiServerCount ?? 0) > 0
      ? [refuse(c, "headless-wrong", "apiServerCount", {
        message: "a headless node has no API server.",
        fix: "Drop --api-server-count, or drop --headless.",
      })]
      : []),
  ];
}

function frontEndOfAll(c: ClusterConfig, derived: DerivedMode): Planned<DerivedMode> {
  if (derived.firstRank === 0) return result([], derived);
  return result([refuse(c, "front-end-not-first", "dataParallelStartRank", {
    message:
      `the front-end of internal load balancing owns all ${derived.size} ranks, from rank 0.`,
    fix: "Add --headless for a node with engines only, or lower --data-parallel-size-local.",
    upstream:
      "Attempting to launch core_engines from dp_rank > 0, but found internal DPLB, which is incompatible.",
  })]);
}

function outOfRange(c: ClusterConfig, d: DerivedMode): Refusal[] {
  if (d.localSize > d.size) {
    return [refuse(c, "local-size-wrong", "dataParallelSizeLocal", {
      message: `${d.localSize} local ranks are more than the ${d.size} there are.`,
      fix: `Give ${d.size} or less, or raise --data-parallel-size.`,
    })];
  }
  const last = d.firstRank + Math.max(d.localSize, 1) - 1;
  if (last < d.size) return [];
  const key = c.dataParallelRank !== undefined ? "dataParallelRank" : "dataParallelStartRank";
  return [refuse(c, "rank-out-of-range", key, {
    message: d.localSize > 1
      ? `ranks ${d.firstRank} to ${last} are asked for, and the last one is ${d.size - 1}.`
      : `the last rank is ${d.size - 1}.`,
    fix: `Give ${d.size - Math.max(d.localSize, 1)} or less, or raise --data-parallel-size.`,
  })];
}

/** A start rank of 0 is the default and contradicts nothing; a rank of 0 is a choice. */
const isSet = (c: ClusterConfig, key: keyof ClusterConfig): boolean =>
  key === "dataParallelStartRank" ? (c[key] ?? 0) > 0 : c[key] !== undefined && c[key] !== false;

function excluded(
  c: ClusterConfig,
  mode: string,
  keys: readonly (keyof ClusterConfig)[],
): Refusal[] {
  return keys.filter((key) => isSet(c, key)).map((key) =>
    refuse(c, "modes-exclude-each-other", key, {
      message: `it contradicts ${mode}.`,
      fix: "Keep one of the two.",
    })
  );
}

const result = (refusals: readonly Refusal[], plan?: DerivedMode): Planned<DerivedMode> =>
  refusals.length || !plan ? { ok: false, refusals } : { ok: true, plan };
