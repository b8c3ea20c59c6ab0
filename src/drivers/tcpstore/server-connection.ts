import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import {
  type ByteString,
  encodeReply,
  type KeyCache,
  replyBytes,
  RequestDecoder,
  type StoreLimits,
  type StoreReply,
} from "../../protocol/tcpstore/mod.ts";

/** Replies are handed to the socket at the end of a turn, or earlier when there is this much of them. */
const GATHER_BYTES = 64 * 1024;

/** One connection of a server: its socket, what it is still saying, and what it was answered and did not read. */
export class ServerConnection {
  readonly id: number;
  readonly socket: Socket;
  readonly decoder: RequestDecoder;
  /** Bytes of this connection that the server's total counts. */
  counted = 0;
  /** Since when it is slow (unvalidated, in the middle of a request, not reading), or 0. */
  slowSince = 0;
  closed = false;
  /** Whether replies wait for the other side to read; no request is served meanwhile. */
  congested = false;
  #out: ByteString = "";

  #remote: string | undefined;

  constructor(id: number, socket: Socket, limits: StoreLimits, cache: KeyCache) {
    this.id = id;
    this.socket = socket;
    this.decoder = new RequestDecoder(limits, Buffer.allocUnsafe, cache);
  }

  /** `address:port` of the other side. */
  get remote(): string {
    this.rememberRemote();
    return this.#remote!;
  }

  /** A closed socket does not tell it any more, and asking costs a system call: so it is asked when there is cause. */
  rememberRemote(): void {
    this.#remote ??= `${this.socket.remoteAddress ?? "unknown"}:${this.socket.remotePort ?? 0}`;
  }

  /** Bytes outstanding in both directions. */
  get outstanding(): number {
    return this.decoder.held + this.unread;
  }

  /** Bytes of replies that the socket has not taken. */
  get unread(): number {
    return this.#out.length + this.socket.writableLength;
  }

  /** Adds a reply; answers false when it would be more than `limit` bytes unread. */
  reply(reply: StoreReply, limit: number): boolean {
    if (
      (reply.kind === "keys" || reply.kind === "values" || reply.kind === "value") &&
      replyBytes(reply) + this.unread > limit
    ) return false;
    this.#out += encodeReply(reply);
    if (this.#out.length >= GATHER_BYTES) this.flush();
    return true;
  }

  /** Hands what was gathered to the socket, in one write. */
  flush(): void {
    if (this.#out === "" || this.closed) return;
    const text = this.#out;
    this.#out = "";
    if (!this.socket.write(text, "latin1") && !this.congested) {
      this.congested = true;
      this.socket.pause();
    }
  }
}
