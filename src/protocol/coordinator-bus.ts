/**
 * The DP coordinator's three sockets (wire spec, section 5): what front-ends say and hear, and what engines hear.
 * (What engines say is in `engine-outputs.ts`.)
 */
import { asArray, asArrayOf, asBool, asInt, asNumber, orNull } from "./fields.ts";
import { toHex } from "./hex.ts";
import { decodeIdentity, encodeIdentity } from "./identity.ts";
import { type Encodable, encode, Float } from "./msgpack.ts";
import { readAll, type Wire } from "./msgpack-reader.ts";
import { MAX_RANK, type WireRank, wireRank } from "./ranks.ts";
import { type Decoded, decoded, Refused } from "./refusal.ts";

// ---- What a subscriber says --------------------------------------------------------------------------------

/** A subscription frame; the topic is hex, and empty for everything. */
export type Subscription = {
  readonly type: "subscribe" | "unsubscribe";
  readonly topic: string;
};

/** XSUB upstream: subscribe to everything. */
export const SUBSCRIBE_ALL: Uint8Array = Uint8Array.of(1);
/** What an XPUB receives when the last subscriber to everything leaves. */
export const UNSUBSCRIBE_ALL: Uint8Array = Uint8Array.of(0);

/** Peers subscribe to everything; a long topic is somebody else's. */
const MAX_TOPIC_BYTES = 64;

function subscription(frame: Uint8Array): Subscription | undefined {
  if (frame[0] !== 0 && frame[0] !== 1) return undefined;
  if (frame.length > 1 + MAX_TOPIC_BYTES) {
    const got = `${frame.length - 1} bytes`;
    throw new Refused("too-large", "topic", `at most ${MAX_TOPIC_BYTES} bytes`, got);
  }
  return { type: frame[0] === 1 ? "subscribe" : "unsubscribe", topic: toHex(frame.subarray(1)) };
}

/** A frame on the back XPUB: engines subscribe, and say nothing else there. */
export function decodeBackFrame(frames: readonly Uint8Array[]): Decoded<Subscription> {
  return decoded("subscription", () => {
    const found = subscription(singleFrame(frames));
    if (found === undefined) {
      throw new Refused("wrong-value", "", "00 or 01", shownFrame(frames[0]!));
    }
    return found;
  });
}

// ---- Front-ends --------------------------------------------------------------------------------------------

/** A front-end has sent a first request while the engines are paused. */
export type WakeUp = {
  readonly type: "wake-up";
  /** The engine that the request goes to, and which need not be woken. */
  readonly exclude: WireRank | null;
  /**
   * How it was named. The original sends its two-byte identity, which its engines compare with an integer, so
   * that nobody is excluded in practice; an index really excludes.
   */
  readonly excludeAs: "index" | "identity" | "none";
  /** The wave that the front-end believes in. */
  readonly wave: number;
};

/** A front-end tells the new number of engines. */
export type ScaleElasticEp = { readonly type: "scale-elastic-ep"; readonly size: number };

/** Everything that a front-end can say to the coordinator. */
export type FrontMessage = Subscription | WakeUp | ScaleElasticEp;

/** A frame on the front XPUB. */
export function decodeFrontFrame(frames: readonly Uint8Array[]): Decoded<FrontMessage> {
  return decoded("front-end message", () => {
    const frame = singleFrame(frames);
    const found = subscription(frame);
    if (found !== undefined) return found;
    const items = asArray(readAll(frame), "");
    if (items.length !== 2) {
      throw new Refused("wrong-value", "", "two elements", `${items.length}`);
    }
    const [first, second] = items;
    if (first === "SCALE_ELASTIC_EP") {
      return { type: "scale-elastic-ep", size: asInt(second, "[1]", 1, MAX_RANK + 1) };
    }
    return { type: "wake-up", ...excludeOf(first), wave: asInt(second, "[1]", 0) };
  });
}

/** The wake-up of a front-end; as an index unless `excludeAs` says that it should look like the original's. */
export function encodeWakeUp(
  message: { readonly exclude: number | null; readonly wave: number },
  excludeAs: "index" | "identity" = "index",
): Uint8Array {
  const { exclude, wave } = message;
  const named = exclude === null || excludeAs === "index"
    ? exclude
    : encodeIdentity(wireRank(exclude));
  return encode([named, wave]);
}

/** Tells the coordinator the new number of engines. It has no reply; repeats are harmless. */
export function encodeScaleElasticEp(size: number): Uint8Array {
  return encode(["SCALE_ELASTIC_EP", size]);
}

/** The load of one engine. */
export type LoadRow = {
  readonly waiting: number;
  readonly running: number;
  /** A fraction; absent in the older, two-column form. */
  readonly kvCacheUsage?: number;
};

/** What the coordinator publishes to front-ends. */
export type Publish = {
  readonly type: "publish";
  /** By engine index; null when only the wave or the run state changed. */
  readonly counts: readonly LoadRow[] | null;
  readonly wave: number;
  readonly running: boolean;
};

/** The published tuple; rows have three columns where the load says how full the cache is, else two. */
export function encodePublish(message: Omit<Publish, "type">): Uint8Array {
  const row = ({ waiting, running, kvCacheUsage }: LoadRow): Encodable =>
    kvCacheUsage === undefined ? [waiting, running] : [waiting, running, new Float(kvCacheUsage)];
  return encode([message.counts?.map(row) ?? null, message.wave, message.running]);
}

/** The published tuple, of either width. */
export function decodePublish(frames: readonly Uint8Array[]): Decoded<Publish> {
  return decoded("publish", () => {
    const items = asArray(readAll(singleFrame(frames)), "");
    const [counts, wave, running] = items;
    if (items.length !== 3) {
      throw new Refused("wrong-value", "", "three elements", `${items.length}`);
    }
    return {
      type: "publish",
      counts: orNull((value, at) => asArrayOf(rowOf, value, at), counts, "counts"),
      wave: asInt(wave, "current_wave", 0),
      running: asBool(running, "engines_running"),
    };
  });
}

// ---- Engines -----------------------------------------------------------------------------------------------

/** The coordinator has seen enough subscriptions. A raw frame, not MessagePack. */
export const COORDINATOR_READY: Uint8Array = new TextEncoder().encode("READY");

/** What engines hear from the coordinator. */
export type CoordinatorMessage =
  | { readonly type: "coordinator-ready" }
  | {
    readonly type: "start-dp-wave";
    readonly wave: number;
    /** The engine that is not woken. */
    readonly exclude: WireRank | null;
    readonly excludeAs: "index" | "identity" | "none";
  };

/** START_DP_WAVE as its two frames. */
export function encodeStartDpWave(
  message: { readonly wave: number; readonly exclude: number | null },
): Uint8Array[] {
  return [Uint8Array.of(2), encode([message.wave, message.exclude])];
}

/** What an engine's XSUB receives. */
export function decodeCoordinatorFrames(
  frames: readonly Uint8Array[],
): Decoded<CoordinatorMessage> {
  return decoded("coordinator message", () => {
    const [first, payload] = frames;
    if (frames.length === 1 && first !== undefined && toHex(first) === toHex(COORDINATOR_READY)) {
      return { type: "coordinator-ready" };
    }
    if (frames.length !== 2 || first === undefined || payload === undefined) {
      throw new Refused(
        "wrong-frames",
        "",
        "READY, or a type and a payload",
        `${frames.length} frames`,
      );
    }
    if (first.length !== 1 || first[0] !== 2) {
      throw new Refused("wrong-value", "type", "2 (START_DP_WAVE)", shownFrame(first));
    }
    const [wave, exclude] = asArray(readAll(payload), "");
    return { type: "start-dp-wave", wave: asInt(wave, "wave", 0), ...excludeOf(exclude ?? null) };
  });
}

// ---- Internals ---------------------------------------------------------------------------------------------

function excludeOf(
  value: Wire | undefined,
): { exclude: WireRank | null; excludeAs: "index" | "identity" | "none" } {
  if (value === null || value === undefined) return { exclude: null, excludeAs: "none" };
  if (value instanceof Uint8Array) {
    const identity = decodeIdentity(value);
    if (identity.ok) return { exclude: identity.value, excludeAs: "identity" };
    throw new Refused("wrong-identity", "exclude", "two bytes", `${value.length} bytes`);
  }
  const rank = asInt(value, "exclude", 0, MAX_RANK);
  return { exclude: wireRank(rank), excludeAs: "index" };
}

function rowOf(value: Wire | undefined, at: string): LoadRow {
  const [waiting, running, usage] = asArray(value, at);
  return {
    waiting: asInt(waiting, `${at}.waiting`, 0),
    running: asInt(running, `${at}.running`, 0),
    ...(usage === undefined ? {} : { kvCacheUsage: asNumber(usage, `${at}.kv_cache_usage`) }),
  };
}

function singleFrame(frames: readonly Uint8Array[]): Uint8Array {
  if (frames.length === 1) return frames[0]!;
  throw new Refused("wrong-frames", "", "one frame", `${frames.length}`);
}

const shownFrame = (frame: Uint8Array): string =>
  frame.length === 0 ? "an empty frame" : toHex(frame.subarray(0, 16));
