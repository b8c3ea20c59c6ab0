/**
 * The keys and values of an external scaling operation in the stores (wire spec, 7.3 and 7.4). The TCPStore client
 * puts a `/` before every key; that is its matter, not this file's.
 */
import { type Decoded, decoded, Refused } from "./refusal.ts";

/** Which store holds a key: the one that serves now, the operation's own, or both. */
export type StoreRole = "control" | "reconfig" | "both";

/** A key and the stores that hold it. */
export type StoreKey = { readonly store: StoreRole; readonly key: string };

const PREFIX = "elastic_ep/external";
const key = (store: StoreRole, ...parts: (string | number)[]): StoreKey => ({
  store,
  key: [PREFIX, ...parts].join("/"),
});

/** The epoch that both stores name; written after its bootstrap and phase. */
export const currentEpochKey: StoreKey = key("both", "current_epoch");

/** The keys of one epoch, as the original writes them. */
export type EpochKeys = {
  readonly bootstrap: StoreKey;
  readonly phase: StoreKey;
  readonly numRedundantExperts: StoreKey;
  readonly prepared: StoreKey;
  readonly completed: StoreKey;
  readonly error: StoreKey;
  readonly commitReady: (rank: number) => StoreKey;
  readonly oldRankFinished: (rank: number) => StoreKey;
  readonly shutdownComplete: (rank: number) => StoreKey;
  /** Newest releases. */
  readonly operationId: StoreKey;
  readonly effectiveDpSize: StoreKey;
  readonly topologyKnown: StoreKey;
  /** Of the fork: a pause before the commit. */
  readonly pauseBeforeCommit: StoreKey;
  readonly resume: StoreKey;
  readonly commitStarted: StoreKey;
  /** Muster's own write-once outcome, `commit` or `abort`. Original ranks ignore it. */
  readonly decision: StoreKey;
};

/** The keys of the operation with this epoch (32 hex characters). */
export function epochKeys(epoch: string): EpochKeys {
  if (latest?.epoch !== epoch) latest = { epoch, keys: keysOf(epoch) };
  return latest.keys;
}

/** Questions come for one epoch after another, many for each. */
let latest: { readonly epoch: string; readonly keys: EpochKeys } | undefined;

function keysOf(epoch: string): EpochKeys {
  return {
    bootstrap: key("both", epoch, "bootstrap"),
    phase: key("both", epoch, "phase"),
    numRedundantExperts: key("control", epoch, "num_redundant_experts"),
    prepared: key("control", epoch, "prepared"),
    completed: key("both", epoch, "completed"),
    error: key("both", epoch, "error"),
    commitReady: (rank) => key("reconfig", epoch, "commit_ready", rank),
    oldRankFinished: (rank) => key("reconfig", epoch, "old_rank_finished", rank),
    shutdownComplete: (rank) => key("reconfig", epoch, "shutdown_complete", rank),
    operationId: key("both", epoch, "operation_id"),
    effectiveDpSize: key("both", epoch, "effective_dp_size"),
    topologyKnown: key("both", epoch, "topology_known"),
    pauseBeforeCommit: key("both", epoch, "pause_before_commit"),
    resume: key("reconfig", epoch, "resume"),
    commitStarted: key("reconfig", epoch, "commit_started"),
    decision: key("control", epoch, "decision"),
  };
}

/** Keys without the prefix, written by engines in the reconfiguration store. */
export const engineKeys: {
  /** Each engine at its commit point; the rank is that of the new configuration. */
  readonly eepReady: (rank: number) => StoreKey;
  /** Rank 0 of the new group: the port of its rendezvous, as decimal text. */
  readonly dpMasterPort: StoreKey;
  /** Workers of new ranks; the scope is the store's port, absent in older releases. */
  readonly newWorkerReady: (globalWorkerRank: number, scope?: number) => StoreKey;
} = {
  eepReady: (rank) => ({ store: "reconfig", key: `eep_ready/${rank}` }),
  dpMasterPort: { store: "reconfig", key: "dp_master_port" },
  newWorkerReady: (worker, scope) => ({
    store: "reconfig",
    key: ["eep_new_worker_dist_init_ready", ...(scope === undefined ? [] : [scope]), worker]
      .join("/"),
  }),
};

/** The phases that the original writes; `paused` is the fork's, `idle` is never stored. */
export const SCALING_PHASES: readonly [
  "idle",
  "preparing",
  "committing",
  "failed",
  "completed",
  "paused",
] = ["idle", "preparing", "committing", "failed", "completed", "paused"];
export type ScalingPhase = (typeof SCALING_PHASES)[number];

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The bytes of a stored text: an epoch, a phase, an error, a decimal. */
export const encodeStoreText = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What a flag key holds. */
export const STORE_FLAG: Uint8Array = encodeStoreText("1");

/** A stored text. */
export function decodeStoreText(bytes: Uint8Array): Decoded<string> {
  return decoded("stored text", () => storedText(bytes));
}

/** A stored count, such as the number of redundant experts: ASCII digits. */
export function decodeStoreDecimal(bytes: Uint8Array): Decoded<number> {
  return decoded("stored number", () => {
    const text = storedText(bytes);
    if (/^-?[0-9]{1,15}$/.test(text)) return Number(text);
    throw new Refused("wrong-value", "", "decimal digits", shown(text));
  });
}

/** A stored epoch: 32 hex characters. */
export function decodeStoreEpoch(bytes: Uint8Array): Decoded<string> {
  return decoded("stored epoch", () => {
    const text = storedText(bytes);
    if (/^[0-9a-f]{32}$/.test(text)) return text;
    throw new Refused("wrong-value", "", "32 hex characters", shown(text));
  });
}

/** A stored phase. */
export function decodeStorePhase(bytes: Uint8Array): Decoded<ScalingPhase> {
  return decoded("stored phase", () => {
    const text = storedText(bytes);
    const phase = SCALING_PHASES.find((known) => known === text);
    if (phase !== undefined) return phase;
    throw new Refused("wrong-value", "", SCALING_PHASES.join(", "), shown(text));
  });
}

// ---- Internals ---------------------------------------------------------------------------------------------

function storedText(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Refused("malformed", "", "text in UTF-8", `${bytes.length} bytes that are not`);
  }
}

const shown = (text: string): string => JSON.stringify(text.slice(0, 80));
