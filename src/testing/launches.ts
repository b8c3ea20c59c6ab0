import { selfCommand } from "../drivers/keeper/mod.ts";
import type { Launch, ScalingOptions } from "../machines/mod.ts";
import type { Topology } from "../planning/mod.ts";

/** A reference engine for each rank of this node, told what the plan says. */
export function referenceEngines(
  topology: Topology,
  more: (rank: number) => readonly string[] = () => [],
): Launch[] {
  return topology.own.map(({ rank, hellos }) => {
    const [first, second] = hellos;
    return {
      id: `engine-${rank}`,
      ranks: [rank],
      argv: [
        ...selfCommand(),
        "engine",
        "--rank",
        String(rank),
        "--handshake",
        // The front-end's own handshake is bound to what the plan says, or to the port that the system chose.
        second === undefined ? "{handshake}" : first!.to.address,
        ...(second === undefined ? [] : ["--client-handshake", "{handshake}"]),
        ...(first?.local ? ["--local"] : []),
        ...(first?.headless ? ["--headless"] : []),
        ...more(rank),
      ],
      env: {},
      cwd: null,
      inherit: true,
    };
  });
}

/** How a reference engine is started that joins while the cluster scales up. */
export function joiningEngine(more: readonly string[] = []): NonNullable<ScalingOptions["joiner"]> {
  return {
    argv: [
      ...selfCommand(),
      "engine",
      "--rank",
      "{rank}",
      "--handshake",
      "{scaleUp}",
      "--local",
      ...more,
    ],
    env: { VLLM_ELASTIC_EP_SCALE_UP_LAUNCH: "1" },
    cwd: null,
    inherit: true,
  };
}
