import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { type StoreAnswer, StoreTables } from "../../peers/tcpstore.ts";
import { KeyCache, StoreProtocolError, type StoreRequest } from "../../protocol/tcpstore/mod.ts";
import { onChunk } from "./chunks.ts";
import { ServerConnection } from "./server-connection.ts";
import {
  SERVER_LIMITS,
  type StoreCloseCode,
  type StoreServerLimits,
  type StoreServerOptions,
  type StoreServerStats,
} from "./server-options.ts";

const BACKLOG = 4096;
const SWEEP_MS = 250;
const KEEP_ALIVE_MS = 60_000;

/**
 * A TCPStore server: every operation of torch's libuv server, for clients of both flavours (tcpstore-wire). It differs
 * where the specification recommends it: a connection that starts wrong is closed at once, compare_set wakes waiters
 * exactly when the key exists afterwards, a wait for a filled queue and a missing key wakes, and a request takes
 * effect when it is complete, as a whole.
 *
 * ```ts
 * await using server = await TcpStoreServer.listen();
 * console.log(server.port);
 * ```
 */
export class TcpStoreServer {
  readonly #server: Server;
  readonly #limits: StoreServerLimits;
  readonly #onStranger: StoreServerOptions["onStranger"];
  readonly #tables = new StoreTables();
  readonly #cache = new KeyCache();
  readonly #connections = new Map<number, ServerConnection>();
  readonly #slow = new Set<ServerConnection>();
  readonly #woken = new Set<ServerConnection>();
  readonly #closed = new Map<StoreCloseCode, number>();
  #sweeper: ReturnType<typeof setInterval> | undefined;
  /** The time of the last sweep: precise enough for deadlines, and free to ask. */
  #clock = performance.now();
  #nextId = 1;
  #requests = 0;
  #buffered = 0;
  #current: ServerConnection | undefined;
  #address: AddressInfo | undefined;

  /**
   * Binds and listens.
   * @throws the operating system's error (`EADDRINUSE`, `EADDRNOTAVAIL`, `EACCES`) when it cannot.
   */
  static async listen(options: StoreServerOptions = {}): Promise<TcpStoreServer> {
    const server = new TcpStoreServer(options);
    await server.#listen(options.host, options.port ?? 0);
    return server;
  }

  private constructor(options: StoreServerOptions) {
    this.#limits = { ...SERVER_LIMITS, ...options.limits };
    this.#onStranger = options.onStranger;
    this.#server = createServer({
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
    });
    this.#server.on("connection", (socket) => this.#accept(socket));
  }

  /** The port that it listens on. */
  get port(): number {
    return this.#address!.port;
  }

  /** The address that it is bound to, `::` for all. */
  get host(): string {
    return this.#address!.address;
  }

  /** What it did and holds. */
  get stats(): StoreServerStats {
    return {
      connections: this.#connections.size,
      accepted: this.#nextId - 1,
      waiting: this.#tables.waiters.size,
      requests: this.#requests,
      keys: this.#tables.keys.size,
      storeBytes: this.#tables.bytes,
      bufferedBytes: this.#buffered,
      closed: Object.fromEntries(this.#closed),
    };
  }

  /** Stops listening and closes every connection; those who wait see the end of the stream. */
  async close(): Promise<void> {
    if (this.#sweeper !== undefined) clearInterval(this.#sweeper);
    this.#sweeper = undefined;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const connection of [...this.#connections.values()]) this.#close(connection);
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Lets the program end although the server listens. */
  unref(): this {
    this.#server.unref();
    return this;
  }

  async #listen(host: string | undefined, port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      const listening = () => {
        this.#server.removeListener("error", reject);
        resolve();
      };
      if (host === undefined) this.#server.listen({ port, backlog: BACKLOG }, listening);
      else this.#server.listen({ host, port, backlog: BACKLOG }, listening);
    });
    this.#server.on("error", (error) => this.#count("accept-failed", error.message, "unknown"));
    this.#address = this.#server.address() as AddressInfo;
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#sweeper.unref();
  }

  #accept(socket: Socket): void {
    if (this.#connections.size >= this.#limits.maxConnections) {
      const remote = `${socket.remoteAddress ?? "unknown"}:${socket.remotePort ?? 0}`;
      socket.on("error", () => {}).destroy();
      const message = `${this.#limits.maxConnections} connections are open already`;
      return this.#count("too-many-connections", message, remote);
    }
    const connection = new ServerConnection(this.#nextId++, socket, this.#limits, this.#cache);
    this.#connections.set(connection.id, connection);
    this.#markSlow(connection, true);
    onChunk(socket, (chunk) => {
      connection.decoder.push(chunk);
      this.#serve(connection);
    });
    socket.on("drain", () => {
      connection.congested = false;
      this.#serve(connection);
      if (!connection.congested && !connection.closed) socket.resume();
    });
    socket.on("error", () => {}); // `close` follows, and says all that is of use.
    socket.on("close", () => this.#left(connection));
  }

  /** Serves what the connection has said so far, then hands over what was answered to it and to those it woke. */
  #serve(connection: ServerConnection): void {
    this.#current = connection;
    const before = this.#requests;
    try {
      while (!connection.congested && !connection.closed) {
        const request = connection.decoder.next();
        if (request === undefined) break;
        this.#requests++;
        if (this.#full(request)) {
          this.#refuse(
            connection,
            "store-full",
            `${request.op} on a store of ${this.#tables.bytes} bytes`,
          );
          break;
        }
        this.#tables.serve(connection.id, request, this.#answer);
      }
    } catch (error) {
      if (!(error instanceof StoreProtocolError)) throw error;
      this.#refuse(connection, error.code, error.message);
    } finally {
      this.#current = undefined;
    }
    if (connection.congested) connection.decoder.settle();
    // Whoever got a request through is not slow, whatever has begun since.
    if (this.#requests > before) this.#markSlow(connection, false);
    this.#settle(connection);
    if (this.#woken.size > 0) {
      for (const woken of this.#woken) this.#settle(woken);
      this.#woken.clear();
    }
    if (this.#buffered > this.#limits.maxBufferedBytes) this.#closeLargest();
  }

  readonly #answer = (to: number | string, answer: StoreAnswer): void => {
    const current = this.#current!;
    const connection = to === current.id ? current : this.#connections.get(to as number);
    if (connection === undefined || connection.closed) return;
    if (answer.kind === "refused") return this.#refuse(connection, answer.code, answer.message);
    const limit = Math.min(
      this.#limits.maxConnectionBytes,
      this.#limits.maxBufferedBytes - this.#buffered + connection.counted,
    );
    if (!connection.reply(answer, limit)) {
      this.#refuse(connection, "too-much-outstanding", `a reply of more than ${limit} bytes`);
    } else if (connection !== current) this.#woken.add(connection);
  };

  /** Hands over replies and brings the books up to date. */
  #settle(connection: ServerConnection): void {
    if (connection.closed) return;
    connection.flush();
    const outstanding = connection.outstanding;
    this.#buffered += outstanding - connection.counted;
    connection.counted = outstanding;
    const { incomplete, validated } = connection.decoder;
    if (incomplete) connection.rememberRemote();
    this.#markSlow(connection, connection.congested || incomplete || !validated);
  }

  #markSlow(connection: ServerConnection, slow: boolean): void {
    if (slow === (connection.slowSince > 0)) return;
    connection.slowSince = slow ? this.#clock : 0;
    if (slow) this.#slow.add(connection);
    else this.#slow.delete(connection);
  }

  #full(request: StoreRequest): boolean {
    const { bytes } = this.#tables;
    return bytes + this.#tables.growth(request) > this.#limits.maxStoreBytes;
  }

  #sweep(): void {
    this.#clock = performance.now();
    for (const connection of this.#slow) {
      const [code, limit, what] = !connection.decoder.validated
        ? ["handshake-deadline", this.#limits.handshakeMs, "no VALIDATE"] as const
        : connection.congested
        ? ["drain-deadline", this.#limits.drainMs, "replies unread"] as const
        : ["request-deadline", this.#limits.requestMs, "a request unfinished"] as const;
      const ms = Math.round(this.#clock - connection.slowSince);
      if (limit > 0 && ms >= limit) this.#refuse(connection, code, `${what} after ${ms} ms`);
    }
  }

  #closeLargest(): void {
    while (this.#buffered > this.#limits.maxBufferedBytes) {
      let largest: ServerConnection | undefined;
      for (const each of this.#connections.values()) {
        if (largest === undefined || each.counted > largest.counted) largest = each;
      }
      if (largest === undefined) return;
      const message =
        `${largest.counted} of ${this.#buffered} bytes outstanding, more than any other`;
      this.#refuse(largest, "too-much-outstanding", message);
    }
  }

  #refuse(connection: ServerConnection, code: StoreCloseCode, message: string): void {
    if (connection.closed) return;
    const { remote } = connection;
    connection.flush();
    this.#close(connection);
    this.#count(code, message, remote);
  }

  #count(code: StoreCloseCode, message: string, remote: string): void {
    this.#closed.set(code, (this.#closed.get(code) ?? 0) + 1);
    this.#onStranger?.({ code, message, remote });
  }

  #left(connection: ServerConnection): void {
    if (connection.closed) return;
    const { decoder } = connection;
    if (decoder.incomplete && !connection.congested) {
      this.#count(
        "cut-short",
        `closed in the middle of a request, after ${decoder.held} bytes of it`,
        connection.remote,
      );
    }
    this.#close(connection);
  }

  #close(connection: ServerConnection): void {
    connection.closed = true;
    this.#connections.delete(connection.id);
    this.#slow.delete(connection);
    this.#buffered -= connection.counted;
    connection.counted = 0;
    this.#tables.disconnect(connection.id);
    connection.socket.destroy();
  }
}
