import type { Launch } from "../../machines/mod.ts";
import type { DeviceMap } from "../../planning/mod.ts";
import { LAUNCH_MARK } from "../keeper/protocol.ts";

/** Variables of the coordinator that are its own and never an engine's. */
const NEVER_PASSED_ON = new Set([
  LAUNCH_MARK,
  "SPT_NOENV",
  "DENO_EXTRA_STDIO_FDS",
  "NODE_CHANNEL_FD",
]);

/** The least that a program needs; everything else has to be asked for. */
const ALWAYS_PASSED_ON = ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"];

export interface EnvironmentRequest {
  /** The coordinator's environment. */
  readonly own: Readonly<Record<string, string | undefined>>;
  /** Pass all of it on, or only what every program needs. */
  readonly inherit: boolean;
  /** What the launch itself says: wins over everything. */
  readonly env: Readonly<Record<string, string>>;
  /** Devices of the launch's ranks, by their local rank on this node. */
  readonly devices?: { readonly map: DeviceMap; readonly localRanks: readonly number[] };
}

/**
 * The complete environment of a launch: the coordinator's (all of it, or the least), the devices of its ranks in their order, and on top what the
 * launch says.
 */
export function environmentOf(request: EnvironmentRequest): Record<string, string> {
  const { own, inherit, env, devices } = request;
  const names = inherit ? Object.keys(own) : ALWAYS_PASSED_ON;
  const passed: Record<string, string> = {};
  for (const name of names) {
    const value = own[name];
    if (value !== undefined && !NEVER_PASSED_ON.has(name)) passed[name] = value;
  }
  if (devices !== undefined) {
    const { map, localRanks } = devices;
    passed[map.variable] = localRanks.flatMap((rank) => map.ranks[rank] ?? []).join(",");
  }
  return { ...passed, ...env };
}

/** Launches of this node that see the devices of their ranks: the lowest rank of all of them is the node's local rank 0. */
export function withDevices(launches: readonly Launch[], map: DeviceMap): Launch[] {
  const first = Math.min(...launches.flatMap((l) => l.ranks));
  return launches.map((launch) => {
    const ids = launch.ranks.flatMap((rank) => map.ranks[rank - first] ?? []);
    return { ...launch, env: { [map.variable]: ids.join(","), ...launch.env } };
  });
}
