/**
 * The ROUTER on which engines shake hands (wire spec, 2): frames in, typed messages out, INIT by rank.
 *
 * It decides nothing. A message of a rank that is expected here is reported, also when it cannot be read, as long as the
 * rank does not flood; everything else is a stranger, counted and reported at a bounded rate. No bytes that a peer can
 * send end it.
 */
import { Buffer } from "node:buffer";
import {
  encodeInit,
  encodeScaleUpInit,
  type EngineHandshake,
  type Hello,
  type Init,
  type ScaleUpInit,
} from "../../protocol/handshake.ts";
import { decodeEngineHandshake } from "../../protocol/handshake.ts";
import { decodeIdentity, encodeIdentity } from "../../protocol/identity.ts";
import type { WireRank } from "../../protocol/ranks.ts";
import type { Decoded, Refusal } from "../../protocol/refusal.ts";
import { RankLimit } from "./rank-limit.ts";
import type { Frames } from "./readiness.ts";
import { bindRouter, type Context, type Sent } from "./sockets.ts";
import { StrangerCounter, type Strangers } from "./strangers.ts";

export interface HandshakeRouterOptions {
  /** `tcp://host:port`, port 0 for one that the system chooses, or `ipc:///path`. */
  readonly address: string;
  /** Whether a rank is awaited here; asked for every message, so that it may change. */
  readonly expects: (rank: WireRank) => boolean;
  /** HELLO of a rank that is not awaited; it is counted as a stranger all the same. */
  readonly onEarlyHello?: (rank: WireRank, hello: Hello) => void;
  /** HELLO, READY, or a status that nobody knows. */
  readonly onMessage: (rank: WireRank, message: EngineHandshake) => void;
  /** An expected rank sent something that cannot be read. */
  readonly onMalformed: (rank: WireRank, refusal: Refusal) => void;
  /** At most once a second and kind. */
  readonly onStrangers: (strangers: Strangers) => void;
  readonly context?: Context;
}

export interface HandshakeRouter {
  /** Where it is bound, with its real port. */
  readonly endpoint: string;
  /** Answers a rank's HELLO: flat, or wrapped for a rank that joins (7.6). */
  sendInit(rank: WireRank, init: Init | ScaleUpInit): Promise<Sent>;
  /** Reports what was counted last, and gives the address back. */
  close(): void;
}

/** HELLO and READY have less than 300 bytes; a peer that sends more than this is disconnected. */
const MAX_MESSAGE_BYTES = 1 << 20;
/** So many unread messages of one connection are kept. */
const UNREAD = 1_000;

/** Binds the ROUTER; rejects with `BindError`, `AddressError` or `IpcPathHeldError`. */
export async function bindHandshakeRouter(
  options: HandshakeRouterOptions,
): Promise<HandshakeRouter> {
  const decode = rememberingDecoder();
  const strangers = new StrangerCounter(options.onStrangers);
  const limit = new RankLimit();
  const socket = await bindRouter({
    address: options.address,
    ...(options.context === undefined ? {} : { context: options.context }),
    maxMessageBytes: MAX_MESSAGE_BYTES,
    highWaterMark: UNREAD,
    onMessage: (frames) => receive(frames, options, strangers, limit, decode),
    onRefusedConnection: () =>
      strangers.count("connection", () => "a connection that did not speak ZMTP 3"),
  });
  let encoded: { init: Init | ScaleUpInit; bytes: Uint8Array } | undefined;
  return {
    endpoint: socket.endpoint,
    sendInit: (rank, init) => {
      if (encoded?.init !== init) {
        const bytes = "engineMetadata" in init ? encodeScaleUpInit(init) : encodeInit(init);
        encoded = { init, bytes };
      }
      return socket.send([encodeIdentity(rank), encoded.bytes]);
    },
    close: () => {
      socket.close();
      strangers.close();
    },
  };
}

function receive(
  frames: Frames,
  options: HandshakeRouterOptions,
  strangers: StrangerCounter,
  limit: RankLimit,
  decode: typeof decodeEngineHandshake,
): void {
  const identity = frames[0];
  const payload = frames[1];
  if (identity === undefined || payload === undefined || frames.length !== 2) {
    const sizes = frames.slice(0, 5).map((frame) => frame.length).join(", ");
    return strangers.count(
      "frames",
      () => `${frames.length} frames (${sizes} bytes) instead of two`,
    );
  }
  const rank = decodeIdentity(identity);
  if (!rank.ok) return strangers.count("identity", () => rank.refusal.text);
  if (!options.expects(rank.value)) {
    const early = options.onEarlyHello === undefined ? undefined : decode(payload);
    if (early?.ok && early.value.type === "hello") options.onEarlyHello!(rank.value, early.value);
    return strangers.count("rank", () => `rank ${rank.value}, which is not awaited here`);
  }
  if (!limit.allows(rank.value)) {
    return strangers.count("flood", () => `rank ${rank.value} says more than it has to`);
  }
  const message = decode(payload);
  if (message.ok) options.onMessage(rank.value, message.value);
  else options.onMalformed(rank.value, message.refusal);
}

/** Ranks say the same, byte for byte: what was read last, of each length, is not read anew. */
function rememberingDecoder(): typeof decodeEngineHandshake {
  type Read = { readonly payload: Uint8Array; readonly message: Decoded<EngineHandshake> };
  const last = new Map<number, Read>();
  return (payload) => {
    const known = last.get(payload.length);
    if (known !== undefined && Buffer.compare(known.payload, payload) === 0) return known.message;
    const message = decodeEngineHandshake(payload);
    if (payload.length <= LONGEST) last.set(payload.length, { payload, message });
    return message;
  };
}

/** Bytes of a message that is remembered; HELLO and READY are shorter. */
const LONGEST = 300;
