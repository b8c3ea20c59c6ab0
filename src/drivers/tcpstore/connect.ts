import { connect as connectSocket, type Socket } from "node:net";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { encodeValidate, REPLY_LIMITS } from "../../protocol/tcpstore/mod.ts";
import { Conversation } from "./conversation.ts";
import { TcpStoreError } from "./errors.ts";

/** Whom to connect to, and for how long to try. */
export interface ConnectOptions {
  readonly host: string;
  readonly port: number;
  /**
   * How long connecting and the handshake may take together, over all attempts. Default: 30 s. A listener that never
   * answers costs this long, where torch's own client would hang.
   */
  readonly connectMs?: number;
  /** Try again until `connectMs` is over while nobody listens, or who does hangs up. Default: true, as torch does. */
  readonly retry?: boolean;
  /** How long the reply to CANCEL_WAIT may take before the connection is given up. Default: 5 s. */
  readonly cancelMs?: number;
  readonly signal?: AbortSignal;
}

const CONNECT_MS = 30_000;
const CANCEL_MS = 5_000;
/** What a timer takes. */
const LONGEST_MS = 2 ** 31 - 1;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Opens a connection and makes the handshake: VALIDATE and PING in one write, and the PING's reply within the deadline
 * (tcpstore-wire, section 3).
 * @throws TcpStoreError `connect-failed`, `not-a-store` or `aborted`.
 */
export async function openConversation(options: ConnectOptions): Promise<Conversation> {
  const { host, port, signal } = options;
  const server = `${host}:${port}`;
  const since = performance.now();
  const until = since + Math.min(options.connectMs ?? CONNECT_MS, LONGEST_MS);
  for (let attempt = 0;; attempt++) {
    let failure: unknown;
    try {
      return await attemptOnce(options, server, until);
    } catch (error) {
      failure = error;
    }
    const waitedMs = Math.round(performance.now() - since);
    const settled = failure instanceof TcpStoreError && failure.code !== "closed";
    if (settled) throw failure;
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt) *
      (0.5 + Math.random() / 2);
    if (options.retry === false || performance.now() + pause >= until) {
      const tries = attempt === 0 ? "1 attempt" : `${attempt + 1} attempts`;
      throw new TcpStoreError(
        "connect-failed",
        `no TCPStore at ${server} after ${tries} in ${waitedMs} ms: ${(failure as Error).message}`,
        { server, waitedMs, cause: failure },
      );
    }
    await sleep(pause, signal, server);
  }
}

async function attemptOnce(
  options: ConnectOptions,
  server: string,
  until: number,
): Promise<Conversation> {
  const { signal } = options;
  const socket = await openSocket(options, server, until);
  const conversation = new Conversation(socket, server, {
    cancelMs: options.cancelMs ?? CANCEL_MS,
    limits: REPLY_LIMITS,
    opening: encodeValidate(),
  });
  const nonce = process.pid >>> 0;
  const left = Math.max(1, until - performance.now());
  try {
    const reply = await conversation.call({
      requests: [{ op: "ping", nonce }],
      operation: "handshake",
      keys: [],
      timeoutMs: left,
      signal,
    });
    if (reply?.kind === "nonce" && reply.value === nonce) return conversation;
    throw notAStore(server, "answered the PING with another nonce");
  } catch (error) {
    conversation.close();
    if (!(error instanceof TcpStoreError)) throw error;
    if (error.code === "deadline") {
      throw notAStore(server, `did not answer the PING within ${Math.round(left)} ms, or hangs`);
    }
    if (error.code === "bad-reply") throw notAStore(server, "said what no TCPStore says", error);
    throw error;
  }
}

const notAStore = (server: string, what: string, cause?: unknown): TcpStoreError =>
  new TcpStoreError("not-a-store", `${server} accepted and ${what}: not a TCPStore`, {
    server,
    operation: "handshake",
    cause,
  });

function openSocket(options: ConnectOptions, server: string, until: number): Promise<Socket> {
  const { host, port, signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(aborted(server, signal));
    const socket = connectSocket({ host, port, noDelay: true });
    const end = (settle: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.removeAllListeners();
      settle();
    };
    const give = (error: Error) =>
      end(() => {
        socket.on("error", () => {}).destroy();
        reject(error);
      });
    const onAbort = () => give(aborted(server, signal!));
    const timer = setTimeout(
      () => give(new Error("no connection within the deadline")),
      Math.max(1, until - performance.now()),
    );
    signal?.addEventListener("abort", onAbort, { once: true });
    socket.once("error", give);
    socket.once("connect", () => end(() => resolve(socket)));
  });
}

function sleep(ms: number, signal: AbortSignal | undefined, server: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(aborted(server, signal!));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

const aborted = (server: string, signal: AbortSignal): TcpStoreError =>
  new TcpStoreError("aborted", `connecting to ${server} was aborted`, {
    server,
    operation: "connect",
    cause: signal.reason,
  });
