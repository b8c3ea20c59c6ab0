/**
 * Every ZeroMQ socket of Muster is made here.
 *
 * The options are not taste: without a ZAP domain a bound ROUTER that is closed while raw bytes arrive aborts the whole
 * process about once in two to ten closes, and bytes of strangers are delivered as messages; without `mandatory` a send
 * to nobody succeeds; without `handover` an engine that restarts is never heard again.
 */
import { Buffer } from "node:buffer";
import { setTimeout as delay } from "node:timers/promises";
import * as zmq from "zeromq";
import { encodeIdentity } from "../../protocol/identity.ts";
import type { WireRank } from "../../protocol/ranks.ts";
import { type Address, bindable, parseAddress } from "./address.ts";
import { type IpcLock, lockIpcPath } from "./ipc-lock.ts";
import {
  deliverFrom,
  type Delivery,
  type Frames,
  type ReadableSocket,
  waitsNatively,
} from "./readiness.ts";

/** Sockets share a context; more than 1,000 in one process need one of their own. */
export type Context = zmq.Context;

/** A context for many sockets; each needs about two file descriptors. */
export const makeContext = (maxSockets: number): Context => new zmq.Context({ maxSockets });

/** What became of a message: on its way, or why not. */
export type Sent =
  | { readonly ok: true }
  | {
    readonly ok: false;
    /** `unreachable`: nobody has this identity. `full`: the peer does not read. `closed`: the socket is. */
    readonly reason: "unreachable" | "full" | "closed" | "failed";
    readonly text: string;
  };

/** What all sockets take. */
export interface SocketOptions {
  /** `tcp://host:0` for a port that the system chooses. */
  readonly address: string;
  readonly onMessage?: (frames: Frames) => void;
  readonly context?: Context;
  /** How long unsent messages are kept after closing. 0 by default. */
  readonly lingerMs?: number;
  /** Of one frame; a peer that sends more is disconnected. */
  readonly maxMessageBytes?: number;
  /** Messages kept for a peer that does not read, and from one that we do not read; 0 for no limit. */
  readonly highWaterMark?: number;
  /**
   * Bound sockets: somebody connected who never spoke ZMTP 3. ZeroMQ does not say who. Never called on Deno, where
   * listening to a socket's events waits in native code and crashes the process when the socket closes.
   */
  readonly onRefusedConnection?: () => void;
}

/** A socket in use. */
export interface ZmqSocket {
  /** Where it is bound, with its real port; or where it is connected to. */
  readonly endpoint: string;
  /** Sends in the order of the calls. A failure is a value; it never throws. */
  send(frames: Frames): Promise<Sent>;
  /** Stops delivery, gives the address back and removes what is left of an ipc path. Idempotent. */
  close(): void;
}

/** The address cannot be bound. */
export class BindError extends Error {
  override readonly name = "BindError";
  readonly code: "address-in-use" | "address-unavailable";
  readonly address: string;
  constructor(code: BindError["code"], address: string, why: string) {
    super(`cannot bind ${address}: ${why}`);
    this.code = code;
    this.address = address;
  }
}

/** 64 MiB: far above control messages, and prompts with images pass. */
const MAX_MESSAGE_BYTES = 64 << 20;
/** The system's usual limit; with libzmq's own default of 100, a thousand engines at once are five times slower. */
const BACKLOG = 4096;

type Raw = zmq.Socket & { sendTimeout?: number; receiveTimeout?: number };

const common = (options: SocketOptions, address: Address) => ({
  ...(options.context === undefined ? {} : { context: options.context }),
  zapDomain: "muster",
  linger: options.lingerMs ?? 0,
  handshakeInterval: 5_000,
  maxMessageSize: options.maxMessageBytes ?? MAX_MESSAGE_BYTES,
  ipv6: address.transport === "tcp" && address.ipv6,
});
// A timeout of 0 makes a send one attempt that succeeds or fails at once: nothing waits in native code.
const sending = (options: SocketOptions) => ({
  sendTimeout: 0,
  sendHighWaterMark: options.highWaterMark ?? 0,
});
const receiving = (options: SocketOptions) => ({
  receiveTimeout: waitsNatively ? -1 : 0,
  receiveHighWaterMark: options.highWaterMark ?? 0,
});
const reconnecting = { reconnectInterval: 20, reconnectMaxInterval: 200 };

/** A ROUTER for engines: unknown identities are refused when sending, and a restarted engine takes its place. */
export function bindRouter(options: SocketOptions): Promise<ZmqSocket> {
  return bind(options, (address) =>
    new zmq.Router({
      ...common(options, address),
      ...sending(options),
      ...receiving(options),
      mandatory: true,
      handover: true,
      backlog: BACKLOG,
      heartbeatInterval: 1_000,
      heartbeatTimeout: 5_000,
    }));
}

/** A PULL that reads what many push. */
export function bindPull(options: SocketOptions): Promise<ZmqSocket> {
  return bind(
    options,
    (address) =>
      new zmq.Pull({ ...common(options, address), ...receiving(options), backlog: BACKLOG }),
  );
}

/**
 * An XPUB that reports every subscription, not only the first of a topic. A subscriber that does not read loses messages
 * beyond the high-water mark (1000 by default) silently.
 */
export function bindXPublisher(options: SocketOptions): Promise<ZmqSocket> {
  const limits = { ...options, highWaterMark: options.highWaterMark ?? 1000 };
  return bind(options, (address) =>
    new zmq.XPublisher({
      ...common(options, address),
      ...sending(limits),
      receiveTimeout: waitsNatively ? -1 : 0,
      verbosity: "allSubs",
      backlog: BACKLOG,
    }));
}

/** An engine's side of a ROUTER; `rank` is its identity. */
export function connectDealer(options: SocketOptions & { readonly rank: WireRank }): ZmqSocket {
  return connect(options, (address) =>
    new zmq.Dealer({
      ...common(options, address),
      ...sending(options),
      ...receiving(options),
      ...reconnecting,
      // The type says text, which would be encoded as UTF-8; the library takes a Buffer as it is.
      routingId: Buffer.from(encodeIdentity(options.rank)) as unknown as string,
    }));
}

/** An engine's side of a PULL. */
export function connectPush(options: SocketOptions): ZmqSocket {
  return connect(
    options,
    (address) =>
      new zmq.Push({ ...common(options, address), ...sending(options), ...reconnecting }),
  );
}

/** A subscriber that can also speak upstream. It subscribes with a frame `01`, like every subscriber. */
export function connectXSubscriber(options: SocketOptions): ZmqSocket {
  return connect(options, (address) =>
    new zmq.XSubscriber({
      ...common(options, address),
      ...reconnecting,
      sendTimeout: 0,
      receiveTimeout: waitsNatively ? -1 : 0,
      receiveHighWaterMark: options.highWaterMark ?? 1000,
    }));
}

// ---- Internals ---------------------------------------------------------------------------------------------

async function bind(options: SocketOptions, make: (address: Address) => Raw): Promise<ZmqSocket> {
  const address = parseAddress(options.address);
  const lock = address.transport === "ipc" ? lockIpcPath(address.path) : undefined;
  for (;;) {
    let raw: Raw | undefined;
    try {
      raw = make(address);
      // Synchronous, so that no call can meet the socket while another thread of the library uses it.
      raw.bindSync(bindable(address));
      return inUse(raw, options, raw.lastEndpoint ?? options.address, lock);
    } catch (error) {
      raw?.close();
      if (!wasOurs(options.address, error)) {
        lock?.release();
        throw bindError(error, options.address);
      }
      await delay(5);
    }
  }
}

/** Endpoints that this process closed, and until when the library may still hold them, on the clock of `performance`. */
const closing = new Map<string, number>();
const CLOSING_MS = 5_000;

/** The library's own thread closes a listener some time after `unbind` has returned. */
function gaveBack(endpoint: string): void {
  const now = performance.now();
  for (const [old, until] of closing) if (until <= now) closing.delete(old);
  closing.set(endpoint, now + CLOSING_MS);
}

/** Whether an address is in use only because a socket of ours that was closed is still on its way out. */
function wasOurs(address: string, error: unknown): boolean {
  const until = closing.get(address);
  return (error as { code?: string }).code === "EADDRINUSE" && until !== undefined &&
    until > performance.now();
}

function connect(options: SocketOptions, make: (address: Address) => Raw): ZmqSocket {
  const raw = make(parseAddress(options.address));
  raw.connect(options.address);
  return inUse(raw, options, options.address, undefined, false);
}

function inUse(
  raw: Raw,
  options: SocketOptions,
  endpoint: string,
  lock: IpcLock | undefined,
  bound = true,
): ZmqSocket {
  const delivery: Delivery | undefined = "receive" in raw && "readable" in raw
    ? deliverFrom(raw as unknown as ReadableSocket, options.onMessage ?? (() => {}))
    : undefined;
  const watched = options.onRefusedConnection !== undefined && waitsNatively;
  if (watched) void watch(raw, options.onRefusedConnection!);
  let closed = false;
  return {
    endpoint,
    send: async (frames) => {
      if (closed) return { ok: false, reason: "closed", text: `the socket ${endpoint} is closed` };
      try {
        const sent = (raw as unknown as zmq.Router).send(frames as Uint8Array[]);
        delivery?.poke();
        await sent;
        return { ok: true };
      } catch (error) {
        return failure(error, endpoint);
      }
    },
    close: () => {
      if (closed) return;
      closed = true;
      delivery?.stop();
      if (bound) {
        try {
          // Of a socket that is watched this would wait for room among its events, for ever when they are many: nobody reads them meanwhile.
          if (!watched) raw.unbindSync(endpoint);
        } catch { /* it is being closed anyway */ }
        gaveBack(endpoint);
      }
      raw.close();
      lock?.release();
    },
  };
}

/**
 * Counts connections that ended without a handshake. Events do not say which connection they mean, so an honest peer
 * that leaves while another is still greeting may be counted early; the sum is right once both are through.
 *
 * Events are read to their end, also when the socket is closed: the library's thread, which serves every socket of the process, waits
 * for ever where it has an event to tell and nobody reads.
 */
async function watch(raw: Raw, refused: () => void): Promise<void> {
  const { events } = raw;
  let greeting = 0;
  try {
    for (;;) {
      const { type } = await events.receive();
      if (type === "accept") greeting++;
      else if (type === "handshake") greeting--;
      else if (type === "disconnect" && greeting > 0) {
        greeting--;
        if (!raw.closed) refused();
      } else if (type === "end") return;
    }
  } catch { /* there are none any more */ }
}

function failure(error: unknown, endpoint: string): Sent {
  const { code, message } = error as { code?: string; message: string };
  const reason = code === "EHOSTUNREACH"
    ? "unreachable"
    : code === "EAGAIN"
    ? "full"
    : code === "EBADF" || code === "ENOTSOCK" || code === "ETERM"
    ? "closed"
    : "failed";
  return { ok: false, reason, text: `${endpoint}: ${message}` };
}

function bindError(error: unknown, address: string): Error {
  const { code } = error as { code?: string };
  if (code === "EADDRINUSE") {
    return new BindError(
      "address-in-use",
      address,
      "another socket has it; choose another port or stop its owner",
    );
  }
  if (code === "EADDRNOTAVAIL" || code === "ENODEV") {
    return new BindError("address-unavailable", address, "this host has no such address");
  }
  if (code === "ENOENT" || code === "EACCES") {
    return new BindError("address-unavailable", address, `the directory cannot be used (${code})`);
  }
  return error as Error;
}
