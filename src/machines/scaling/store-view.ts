/**
 * Between roles and keys: which key of a store an effect means, what its value is on the wire, and what a look at a
 * store says of an epoch. Pure; the store's driver and the models read and write through it.
 */
import {
  decodeReconfigureRequest,
  decodeStoreDecimal,
  encodeReconfigureRequest,
  engineKeys,
  type EpochKeys,
  epochKeys,
  KEEP_CURRENT_RANK,
} from "../../protocol/mod.ts";
import { bytesOf, type ByteString, byteString, textOf, utf8 } from "../../protocol/tcpstore/mod.ts";
import type { Bootstrap, KeyValue, StoreFact, WatchFacts, WrittenKey } from "../effects/scaling.ts";
import type { EpochView, ScalingEvent } from "../scaling.ts";

/** Reads one key; undefined where there is none. */
export type Look = (key: string) => ByteString | undefined;

const PREFIX = "elastic_ep/external";

/** Where a store names its epoch. */
export const CURRENT_EPOCH: string = `${PREFIX}/current_epoch`;

/** Where Muster's rank 0 says which epoch an operation has. */
export const operationKey = (operation: string): string => `${PREFIX}/operation/${operation}`;

/** What a set writes: its key and its bytes. */
export const entryOf = (set: KeyValue, epoch: string, rank: number): [string, ByteString] =>
  set.key === "operation_epoch"
    ? [operationKey(String(set.value)), utf8(epoch)]
    : [keyOf(set.key, epoch, rank), valueOf(set)];

/** The key that a role means, for the rank that writes or reads it. */
export function keyOf(
  role: Exclude<WrittenKey, "operation_epoch">,
  epoch: string,
  rank: number,
): string {
  const keys = epochKeys(epoch);
  switch (role) {
    case "current_epoch":
      return CURRENT_EPOCH;
    case "bootstrap":
      return keys.bootstrap.key;
    case "phase":
      return keys.phase.key;
    case "operation_id":
      return keys.operationId.key;
    case "num_redundant_experts":
      return keys.numRedundantExperts.key;
    case "prepared":
      return keys.prepared.key;
    case "completed":
      return keys.completed.key;
    case "decides":
      return `${PREFIX}/${epoch}/decides/${rank}`;
    case "commit_ready":
      return keys.commitReady(rank).key;
    case "old_rank_finished":
      return keys.oldRankFinished(rank).key;
    case "shutdown_complete":
      return keys.shutdownComplete(rank).key;
  }
}

/** The decision and error keys of an epoch, which are not written by plain sets. */
export const decisionKey = (epoch: string): string => epochKeys(epoch).decision.key;
export const errorKey = (epoch: string): string => epochKeys(epoch).error.key;
export const phaseKey = (epoch: string): string => epochKeys(epoch).phase.key;

/** The bytes of a value. */
const valueOf = ({ value }: KeyValue): ByteString =>
  typeof value === "string"
    ? utf8(value)
    : byteString(encodeReconfigureRequest(requestOf(value, KEEP_CURRENT_RANK)));

/** A bootstrap as the request that engines take. */
export const requestOf = (
  bootstrap: Bootstrap,
  rank: number,
): Parameters<typeof encodeReconfigureRequest>[0] => ({
  newDataParallelSize: bootstrap.size,
  newDataParallelRank: rank,
  newDataParallelRankLocal: KEEP_CURRENT_RANK,
  newDataParallelMasterIp: bootstrap.masterIp,
  newDataParallelMasterPort: bootstrap.masterPort,
  newDataParallelMasterPortList: bootstrap.masterPorts,
  coordStorePort: bootstrap.storePort,
});

/** A bootstrap record, or null for one that cannot be read. */
export function bootstrapOf(bytes: ByteString | undefined): Bootstrap | null {
  if (bytes === undefined) return null;
  const read = decodeReconfigureRequest(bytesOf(bytes));
  if (!read.ok || read.value.coordStorePort === undefined) return null;
  return {
    size: read.value.newDataParallelSize,
    masterIp: read.value.newDataParallelMasterIp,
    masterPort: read.value.newDataParallelMasterPort,
    masterPorts: read.value.newDataParallelMasterPortList ?? [],
    storePort: read.value.coordStorePort,
  };
}

/** What a control store says of its current epoch; null when it names none. */
export function epochViewOf(look: Look): EpochView | null {
  const epoch = look(CURRENT_EPOCH);
  if (epoch === undefined || epoch === "") return null;
  const keys = epochKeys(epoch);
  const text = (key: string): string | null => {
    const value = look(key);
    return value === undefined ? null : textOf(value);
  };
  const redundancy = look(keys.numRedundantExperts.key);
  const decimal = redundancy === undefined ? undefined : decodeStoreDecimal(bytesOf(redundancy));
  return {
    epoch,
    // Read in this order: what says that a thing is whole is looked at before the thing, what ends it last.
    prepared: look(keys.prepared.key) !== undefined,
    bootstrap: bootstrapOf(look(keys.bootstrap.key)),
    operation: text(keys.operationId.key),
    redundancy: decimal?.ok === true ? decimal.value : null,
    completed: look(keys.completed.key) !== undefined,
    error: text(keys.error.key),
  };
}

/** The keys that an epoch view looks at. */
export const epochViewKeys = (epoch: string): readonly string[] => {
  const k = epochKeys(epoch);
  return [k.prepared, k.bootstrap, k.operationId, k.numRedundantExperts, k.completed, k.error]
    .map(({ key }) => key);
};

type Watched = Pick<WatchFacts, "epoch" | "oldSize" | "target">;

const ranks = (size: number): number[] => Array.from({ length: size }, (_, rank) => rank);

/** For each rank of a fact: keys of which one has to be there. Facts without ranks have one entry. */
export function keysOfFact(fact: StoreFact, { epoch, oldSize, target }: Watched): string[][] {
  const k: EpochKeys = epochKeys(epoch);
  switch (fact) {
    case "enginesReady":
      return ranks(target).map((r) => [engineKeys.eepReady(r).key]);
    case "everyoneDecides":
      return ranks(oldSize).map((r) => [keyOf("decides", epoch, r)]);
    case "everyoneVoted":
      return ranks(oldSize).map((r) => [k.commitReady(r).key]);
    case "everyoneFinished":
      return ranks(oldSize).map((r) => [k.oldRankFinished(r).key, k.shutdownComplete(r).key]);
    case "completed":
      return [[k.completed.key]];
    case "decision":
      return [[k.decision.key]];
    case "error":
      return [[k.error.key]];
  }
}

/** The input that says that a fact is true, or undefined while it is not. */
export function factIn(look: Look, fact: StoreFact, watched: Watched): ScalingEvent | undefined {
  const there = keysOfFact(fact, watched).every((any) => any.some((k) => look(k) !== undefined));
  if (!there) return undefined;
  switch (fact) {
    case "completed":
      return { type: "completedSeen" };
    case "decision":
      return {
        type: "decisionSeen",
        outcome: look(decisionKey(watched.epoch)) === "commit" ? "commit" : "abort",
      };
    case "error":
      return { type: "errorSeen", text: textOf(look(errorKey(watched.epoch)) ?? "") };
    default:
      return { type: fact };
  }
}

/** Ranks that a fact still waits for. */
export const missingFor = (look: Look, fact: StoreFact, watched: Watched): readonly number[] =>
  keysOfFact(fact, watched).flatMap((any, rank) =>
    any.some((key) => look(key) !== undefined) ? [] : [rank]
  );
