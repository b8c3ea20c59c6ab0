import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { MAX_LINE_BYTES } from "./protocol.ts";

/** What a connection tells its owner. */
export interface LineHandlers {
  /** One whole line, parsed. */
  line(message: unknown): void;
  /** Called once; `reason` is null when the other side simply closed. */
  closed(reason: string | null): void;
}

/** A socket that carries one JSON object a line, in both directions. Anything else ends the connection. */
export class LineSocket {
  readonly #socket: Socket;
  readonly #handlers: LineHandlers;
  #parts: Buffer[] = [];
  #held = 0;
  #reason: string | null = null;
  #closed = false;

  constructor(socket: Socket, handlers: LineHandlers) {
    this.#socket = socket;
    this.#handlers = handlers;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", (error: Error) => this.#reason ??= error.message);
    socket.on("close", () => {
      if (this.#closed) return;
      this.#closed = true;
      this.#handlers.closed(this.#reason);
    });
  }

  get open(): boolean {
    return !this.#closed && this.#socket.writable;
  }

  /** Sends one object. After the connection has closed it does nothing: the owner was told. */
  send(message: unknown): void {
    if (this.open) this.#socket.write(JSON.stringify(message) + "\n");
  }

  /** Sends what is queued, then closes. */
  end(): void {
    this.#socket.end();
    // A peer that never reads must not keep the connection: it has a second for what is queued.
    const timer = setTimeout(() => this.#socket.destroy(), 1000) as unknown as { unref?(): void };
    timer.unref?.();
  }

  /** Closes at once. */
  destroy(reason: string | null = null): void {
    this.#reason ??= reason;
    this.#socket.destroy();
  }

  /** Lets the program end although this connection is open. */
  unref(): void {
    this.#socket.unref();
  }

  #take(chunk: Buffer): void {
    let rest = chunk;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const line = Buffer.concat([...this.#parts, rest.subarray(0, end)]);
      this.#parts = [];
      this.#held = 0;
      rest = rest.subarray(end + 1);
      if (line.length > MAX_LINE_BYTES) return this.#tooLong();
      let message: unknown;
      try {
        message = JSON.parse(line.toString("utf8"));
      } catch {
        return this.destroy("a line that is not JSON");
      }
      this.#handlers.line(message);
      if (this.#closed || this.#socket.destroyed) return;
    }
    if (rest.length === 0) return;
    this.#parts.push(rest);
    this.#held += rest.length;
    if (this.#held > MAX_LINE_BYTES) this.#tooLong();
  }

  #tooLong(): void {
    this.destroy(`a line of more than ${MAX_LINE_BYTES} bytes`);
  }
}
