import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import {
  type ByteString,
  encodeRequest,
  FLAG_READY,
  ReplyDecoder,
  replyShapeOf,
  type StoreLimits,
  type StoreReply,
} from "../../protocol/tcpstore/mod.ts";
import { AbortWatch } from "./abort-watch.ts";
import { aborted, type Call, late, lost, type Slot } from "./call.ts";
import { TcpStoreError, type TcpStoreErrorCode } from "./errors.ts";

/** Requests that may be on their way at a time; more stand in line. */
const MAX_IN_FLIGHT = 1024;
const GATHER_BYTES = 256 * 1024;
/** The longest time that a timer takes. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Requests and replies of one client connection. Replies carry no id, so they are matched first in, first out, and
 * nothing is sent behind a pending wait, whose reply may never come (tcpstore-wire, section 12). A call that ran into
 * its deadline leaves its place in the line, so that its late reply is not taken for another's. What waits is cancelled
 * by CANCEL_WAIT, and the connection stays usable.
 */
export class Conversation {
  readonly #socket: Socket;
  readonly #server: string;
  readonly #cancelMs: number;
  readonly #decoder: ReplyDecoder;
  /** Not sent yet: from `#head` on. */
  #queue: Slot[] = [];
  #head = 0;
  readonly #sent: (Slot | "cancel")[] = [];
  /** Writes without a reply: gathered, and handed to the socket that has not taken them yet. */
  #gathered: Slot[] = [];
  readonly #leaving = new Set<Slot>();
  readonly #signals = new AbortWatch<Slot>((slot) => this.#stop(slot, "aborted"));
  #waiting: Slot | undefined;
  #cancelTimer: ReturnType<typeof setTimeout> | undefined;
  #out: ByteString = "";
  #scheduled = false;
  #full = false;
  #failure: TcpStoreError | undefined;
  #onClosed: ((error: TcpStoreError) => void)[] = [];

  constructor(
    socket: Socket,
    server: string,
    options: {
      readonly cancelMs: number;
      readonly limits: StoreLimits;
      /** Bytes that leave ahead of the first call, in the same write. */
      readonly opening: ByteString;
    },
  ) {
    this.#socket = socket;
    this.#server = server;
    this.#cancelMs = options.cancelMs;
    this.#out = options.opening;
    this.#decoder = new ReplyDecoder(options.limits, Buffer.allocUnsafe);
    socket.on("data", (chunk: Uint8Array) => this.#received(chunk));
    socket.on("drain", () => {
      this.#full = false;
      this.#pump();
    });
    socket.on(
      "error",
      (error) => this.#fail("closed", `connection failed: ${error.message}`, error),
    );
    socket.on("close", () => this.#fail("closed", "the server closed the connection"));
  }

  /** Why the connection ended, if it did. */
  get failure(): TcpStoreError | undefined {
    return this.#failure;
  }

  /** Is told once when the connection has ended. */
  onClosed(listener: (error: TcpStoreError) => void): void {
    if (this.#failure !== undefined) listener(this.#failure);
    else this.#onClosed.push(listener);
  }

  /** Makes a call; answers its last reply, or `undefined` for a request that has none. */
  call(call: Call): Promise<StoreReply | undefined> {
    return new Promise((resolve, reject) => {
      const slot: Slot = {
        call,
        since: performance.now(),
        resolve,
        reject,
        phase: "queued",
        at: 0,
      };
      if (this.#failure !== undefined) return reject(lost(slot, this.#failure));
      if (call.signal?.aborted) return reject(aborted(slot, this.#server));
      if (call.signal !== undefined) this.#signals.add(call.signal, slot);
      if (call.timeoutMs < Number.POSITIVE_INFINITY) {
        const ms = Math.min(call.timeoutMs, MAX_TIMER_MS);
        slot.timer = setTimeout(() => this.#stop(slot, "timeout"), ms);
      }
      this.#queue.push(slot);
      this.#schedule();
    });
  }

  /** Ends the connection, and with it every call that is under way. */
  close(): void {
    this.#fail("closed", "closed by this side");
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Calls made in one turn leave in one write.
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (
      this.#head < this.#queue.length && this.#waiting === undefined && !this.#full &&
      this.#sent.length < MAX_IN_FLIGHT && this.#failure === undefined
    ) this.#send(this.#queue[this.#head++]!);
    if (this.#head === this.#queue.length || this.#head >= MAX_IN_FLIGHT) this.#compact();
    this.#flush();
  }

  #compact(without?: Slot): void {
    this.#queue = this.#queue.slice(this.#head).filter((each) => each !== without);
    this.#head = 0;
  }

  #send(slot: Slot): void {
    const request = slot.call.requests[slot.at]!;
    slot.phase = "sent";
    this.#out += encodeRequest(request);
    if (replyShapeOf(request) === "none") this.#gathered.push(slot);
    else this.#sent.push(slot);
    if (request.op === "wait" || request.op === "barrier") this.#waiting = slot;
    if (this.#out.length >= GATHER_BYTES) this.#flush();
  }

  /** Hands what was gathered to the socket, in one write. */
  #flush(): void {
    if (this.#out === "" || this.#failure !== undefined) return;
    const text = this.#out;
    this.#out = "";
    const writes = this.#gathered;
    if (writes.length === 0) {
      if (!this.#socket.write(text, "latin1")) this.#full = true;
      return;
    }
    this.#gathered = [];
    for (const slot of writes) this.#leaving.add(slot);
    const taken = (error?: Error | null) => {
      if (error) return; // The connection has failed, and everything is told so.
      for (const slot of writes) {
        this.#leaving.delete(slot);
        this.#done(slot, undefined);
      }
    };
    if (!this.#socket.write(text, "latin1", taken)) this.#full = true;
  }

  #received(chunk: Uint8Array): void {
    this.#decoder.push(chunk);
    try {
      while (this.#sent.length > 0) {
        const slot = this.#sent[0]!;
        const shape = slot === "cancel" ? "flag" : replyShapeOf(slot.call.requests[slot.at]!);
        const reply = this.#decoder.next(shape as Exclude<typeof shape, "none">);
        if (reply === undefined) break;
        this.#sent.shift();
        this.#replied(slot, reply);
      }
      if (this.#sent.length === 0 && this.#decoder.available > 0) {
        throw new Error(`${this.#decoder.available} bytes that nothing asked for`);
      }
    } catch (error) {
      this.#fail("bad-reply", (error as Error).message, error);
    }
    if (this.#head < this.#queue.length) this.#pump();
  }

  #replied(slot: Slot | "cancel", reply: StoreReply): void {
    if (slot === "cancel") {
      if (reply.kind !== "flag" || reply.value === FLAG_READY) {
        throw new Error("a CANCEL_WAIT was answered with 00, expected 01");
      }
      return this.#cancelled();
    }
    if (slot !== this.#waiting) return this.#done(slot, reply);
    const woken = reply.kind === "flag" && reply.value === FLAG_READY;
    if (slot.why !== undefined) {
      // The wake and the cancel crossed: the acknowledgement is still to come.
      if (woken) this.#sent.unshift("cancel");
      else this.#cancelled();
      if (woken && slot.call.requests.length === 1) this.#done(slot, reply);
      else this.#stopped(slot);
      return;
    }
    if (!woken) throw new Error(`${slot.call.operation} was answered with 01, expected 00`);
    this.#waiting = undefined;
    if (slot.call.requests.length === slot.at + 1) return this.#done(slot, reply);
    slot.at++;
    this.#send(slot);
    this.#flush();
  }

  /** The deadline passed or the caller gave up. */
  #stop(slot: Slot, why: "timeout" | "aborted"): void {
    if (slot.phase === "done" || slot.why !== undefined) return;
    slot.why = why;
    if (slot.phase === "queued") this.#compact(slot);
    if (slot !== this.#waiting) return this.#stopped(slot);
    this.#out += encodeRequest({ op: "cancelWait" });
    this.#flush();
    this.#cancelTimer = setTimeout(
      () => this.#fail("deadline", `CANCEL_WAIT was not answered within ${this.#cancelMs} ms`),
      this.#cancelMs,
    );
    // A wait whose deadline passed may still turn out to be satisfied; who gave up hears so at once.
    if (why === "aborted") this.#stopped(slot);
  }

  #cancelled(): void {
    clearTimeout(this.#cancelTimer);
    this.#waiting = undefined;
    this.#schedule();
  }

  #done(slot: Slot, reply: StoreReply | undefined): void {
    if (slot.phase === "done") return;
    this.#release(slot);
    slot.resolve(reply);
  }

  /** Ends a call that was stopped, with the reason. A reply that still comes finds its place and is dropped. */
  #stopped(slot: Slot): void {
    if (slot.phase === "done") return;
    const error = slot.why === "aborted" ? aborted(slot, this.#server) : late(slot, this.#server);
    this.#release(slot);
    slot.reject(error);
  }

  #release(slot: Slot): void {
    slot.phase = "done";
    clearTimeout(slot.timer);
    if (slot.call.signal !== undefined) this.#signals.delete(slot.call.signal, slot);
  }

  #fail(code: TcpStoreErrorCode, message: string, cause?: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = new TcpStoreError(code, `TCPStore ${this.#server}: ${message}`, {
      server: this.#server,
      cause,
    });
    clearTimeout(this.#cancelTimer);
    this.#socket.destroy();
    const slots = [...this.#sent, ...this.#gathered, ...this.#leaving];
    slots.push(...this.#queue.slice(this.#head));
    if (this.#waiting !== undefined) slots.push(this.#waiting);
    this.#sent.length = 0;
    this.#leaving.clear();
    this.#gathered = [];
    this.#queue = [];
    this.#head = 0;
    this.#waiting = undefined;
    for (const slot of slots) {
      if (slot === "cancel" || slot.phase === "done") continue;
      const error = lost(slot, this.#failure);
      this.#release(slot);
      slot.reject(error);
    }
    for (const listener of this.#onClosed.splice(0)) listener(this.#failure);
  }
}
