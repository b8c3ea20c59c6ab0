import type { Platform } from "./platform.ts";
import type { Planned, Refusal } from "./refusal.ts";

/** A device as its platform names it: an index, a GPU's UUID, a MIG instance. Never interpreted beyond its kind. */
export type DeviceId = string;

/**
 * The original's arithmetic (section 8.4): logical devices `[localRank * worldSize, + localWorldSize)`, each mapped
 * through what the process sees, joined by commas.
 *
 * @param visible the devices that are visible now, in order; null when the variable is not set (logical is physical).
 * @returns the value of the variable, or the original's own error text.
 */
export function getDeviceIndices(
  environmentVariable: string,
  localRank: number,
  worldSize: number,
  localWorldSize: number = worldSize,
  visible: readonly DeviceId[] | null = null,
): { readonly ok: true; readonly value: string } | { readonly ok: false; readonly error: string } {
  const first = localRank * worldSize;
  const ids: DeviceId[] = [];
  for (let logical = first; logical < first + localWorldSize; logical++) {
    const id = visible === null ? String(logical) : visible[logical];
    if (id === undefined) {
      const range = `[${first}, ${first + worldSize})`;
      return {
        ok: false,
        error: `Error setting ${environmentVariable}: local range: ${range} ` +
          `base value: "${visible!.join(",")}"`,
      };
    }
    ids.push(id);
  }
  return { ok: true, value: ids.join(",") };
}

/** Which devices each local rank of a node gets, and how it is told. */
export interface DeviceMap {
  /** The variable that carries them. */
  readonly variable: string;
  /** By local rank. */
  readonly ranks: readonly (readonly DeviceId[])[];
  /** The variable's value, by local rank. */
  readonly values: readonly string[];
  readonly why: string;
}

/** What a node offers and what its ranks need. */
export interface DeviceRequest {
  readonly platform: Platform;
  /** Ranks on this node. */
  readonly localRanks: number;
  /** Devices of one rank on this node. */
  readonly worldSize: number;
  /** How many devices the node has; null when nobody knows. */
  readonly count: number | null;
  /** The value of the platform's variable in the environment; undefined when it is not set. */
  readonly visible?: string | undefined;
  /** An explicit map: the devices of each local rank. Taken as it is, or refused. */
  readonly explicit?: readonly (readonly DeviceId[])[] | undefined;
}

/**
 * Devices for every local rank of a node: slices of what is visible, in its order, or an explicit map.
 *
 * Nothing is wrapped around: a rank without enough devices is refused. No device serves two ranks, also not as a
 * MIG slice of a GPU that another rank has as a whole.
 *
 * @returns `devices-missing`, `devices-twice`, `devices-mixed` or `devices-wrong`, all that apply.
 */
export function planDevices(request: DeviceRequest): Planned<DeviceMap> {
  return request.explicit ? explicitMap(request, request.explicit) : slices(request);
}

function slices(request: DeviceRequest): Planned<DeviceMap> {
  const { platform, localRanks, worldSize } = request;
  const need = localRanks * worldSize;
  const source = sourceOf(request);
  if (!source.ok) return source;
  const { ids, from } = source.plan;
  if (ids !== null && ids.length < need) {
    const fits = Math.floor(ids.length / worldSize);
    return {
      ok: false,
      refusals: [refusal(request, "devices-missing", {
        message: `${ranksText(localRanks)} of ${devices(worldSize)} need ${need}, and ${
          request.visible === undefined ? "the node has" : "it names"
        } ${ids.length}.`,
        fix: fits > 0
          ? `Place ${ranksText(fits)} here, or make ${need} devices visible.`
          : `Make ${need} devices visible.`,
      })],
    };
  }
  const ranks = Array.from(
    { length: localRanks },
    (_, rank) =>
      ids === null
        ? Array.from({ length: worldSize }, (_, i) => String(rank * worldSize + i))
        : ids.slice(rank * worldSize, (rank + 1) * worldSize),
  );
  return {
    ok: true,
    plan: mapOf(platform, ranks, `${devices(worldSize)} a rank, in the order of ${from}.`),
  };
}

/** The devices that may be given out, in order; null when their number is not known. */
function sourceOf(
  request: DeviceRequest,
): Planned<{ ids: readonly DeviceId[] | null; from: string }> {
  const { platform, visible, count } = request;
  if (visible === undefined) {
    return {
      ok: true,
      plan: count === null
        ? { ids: null, from: "their numbers (how many there are is not known)" }
        : { ids: Array.from({ length: count }, (_, i) => String(i)), from: "their numbers" },
    };
  }
  const ids = parseVisible(visible);
  const faults = listFaults(request, ids, platform.visibleDevices);
  if (count !== null) {
    const beyond = ids.filter((id) => /^\d+$/.test(id) && Number(id) >= count);
    if (beyond.length) {
      faults.push(refusal(request, "devices-wrong", {
        message: `device ${beyond.join(", ")} does not exist: the node has ${count}.`,
        fix: `Name devices from 0 to ${count - 1}.`,
      }));
    }
  }
  if (faults.length) return { ok: false, refusals: faults };
  return { ok: true, plan: { ids, from: `${platform.visibleDevices}=${visible}` } };
}

function explicitMap(
  request: DeviceRequest,
  explicit: readonly (readonly DeviceId[])[],
): Planned<DeviceMap> {
  const faults: Refusal[] = [];
  if (explicit.length < request.localRanks) {
    faults.push(refusal(request, "devices-missing", {
      message:
        `the map names devices for ${explicit.length} ranks, and there are ${request.localRanks}.`,
      fix: `Add the devices of local rank ${explicit.length}.`,
    }));
  }
  explicit.forEach((ids, rank) => {
    if (ids.length !== request.worldSize) {
      faults.push(refusal(request, "devices-wrong", {
        message: `local rank ${rank} has ${devices(ids.length)} and needs ${request.worldSize}.`,
        fix: `Name exactly ${request.worldSize}.`,
      }));
    }
  });
  faults.push(...listFaults(request, explicit.flat(), "the map"));
  if (faults.length) return { ok: false, refusals: faults };
  const ranks = explicit.slice(0, request.localRanks);
  return { ok: true, plan: mapOf(request.platform, ranks, "The map was given.") };
}

const mapOf = (
  platform: Platform,
  ranks: readonly (readonly DeviceId[])[],
  why: string,
): DeviceMap => ({
  variable: platform.visibleDevices,
  ranks,
  values: ranks.map((ids) => ids.join(",")),
  why,
});

/** The devices that a variable names, in order. An empty value names none. */
export const parseVisible = (value: string): DeviceId[] =>
  value.trim() === "" ? [] : value.split(",").map((id) => id.trim());

type DeviceKind = "index" | "uuid" | "mig" | "other";
const kindOf = (id: DeviceId): DeviceKind =>
  /^\d+$/.test(id) ? "index" : /^MIG-/i.test(id) ? "mig" : /^GPU-/i.test(id) ? "uuid" : "other";

/** The GPU whose part a MIG instance is, where its name says so: `MIG-GPU-<uuid>/<gi>/<ci>`. */
const parentOf = (id: DeviceId): DeviceId | undefined =>
  /^MIG-(GPU-[^/]+)\//i.exec(id)?.[1]?.toLowerCase();

function listFaults(request: DeviceRequest, ids: readonly DeviceId[], where: string): Refusal[] {
  const faults: Refusal[] = [];
  const fault = (code: DeviceFault, message: string, fix: string) =>
    faults.push(refusal(request, code, { message, fix }));
  if (ids.some((id) => id === "" || id === "-1")) {
    fault(
      "devices-wrong",
      `${where} has ${
        ids.includes("-1") ? "-1, which hides every device after it" : "an empty name"
      }.`,
      "Name each device once, separated by commas.",
    );
  }
  const twice = [...new Set(ids.filter((id, i) => id !== "" && ids.indexOf(id) !== i))];
  if (twice.length) {
    fault(
      "devices-twice",
      `${where} has ${twice.join(", ")} more than once, and no device serves two ranks.`,
      "Name each device once.",
    );
  }
  const whole = new Set(ids.map((id) => id.toLowerCase()));
  const parts = ids.filter((id) => parentOf(id) !== undefined && whole.has(parentOf(id)!));
  if (parts.length) {
    fault(
      "devices-twice",
      `${parts.join(", ")} is a part of a GPU that ${where} has as a whole.`,
      "Name the GPU or its parts.",
    );
  }
  const kinds = [...new Set(ids.filter((id) => id !== "" && id !== "-1").map(kindOf))];
  if (kinds.includes("index") && kinds.length > 1) {
    fault(
      "devices-mixed",
      `${where} mixes numbers and ids, so an overlap cannot be seen.`,
      "Name all devices by number, or all by id.",
    );
  }
  return faults;
}

type DeviceFault = "devices-missing" | "devices-twice" | "devices-mixed" | "devices-wrong";

const refusal = (
  request: DeviceRequest,
  code: DeviceFault,
  text: { readonly message: string; readonly fix: string },
): Refusal => ({
  code,
  flag: request.explicit || request.visible === undefined
    ? "devices"
    : request.platform.visibleDevices,
  value: request.explicit
    ? request.explicit.map((ids) => ids.join(",")).join("; ")
    : request.visible ?? String(request.count ?? "unset"),
  ...text,
});

const ranksText = (n: number): string => n === 1 ? "1 rank" : `${n} ranks`;
const devices = (n: number): string => n === 1 ? "one device" : `${n} devices`;

/** A rank's claim on devices of a host, for {@link overlaps}. */
export interface DeviceClaim {
  readonly who: string;
  readonly host: string;
  readonly ids: readonly DeviceId[];
}

/** Devices that more than one rank of the same host claims, each with everybody who claims it. */
export function overlaps(
  claims: readonly DeviceClaim[],
): { readonly host: string; readonly id: DeviceId; readonly who: readonly string[] }[] {
  const claimed = new Map<string, { host: string; id: DeviceId; who: string[] }>();
  for (const { who, host, ids } of claims) {
    for (const id of ids) {
      const key = `${host} ${id}`;
      const entry = claimed.get(key) ?? { host, id, who: [] };
      entry.who.push(who);
      claimed.set(key, entry);
    }
  }
  return [...claimed.values()].filter((entry) => entry.who.length > 1);
}
