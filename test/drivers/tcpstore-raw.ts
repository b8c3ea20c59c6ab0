/** A client that says bytes and listens, for tests of servers; and a server that says bytes, for tests of clients. */
import { Buffer } from "node:buffer";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { TestContext } from "node:test";
import {
  type StoreServerLimits,
  type StoreStranger,
  TcpStoreServer,
} from "../../src/drivers/tcpstore/mod.ts";

export const VALIDATE = "00cef7853c";
export const PING = "0d01020304";

/** How long a test waits for what must come, before it fails. */
const PATIENCE_MS = 10_000;

export class RawClient {
  readonly socket: Socket;
  #hex = "";
  #ended: "open" | "EOF" | "RST" = "open";
  readonly #watchers = new Set<() => void>();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk) => {
      this.#hex += Buffer.from(chunk).toString("hex");
      this.#tell();
    });
    socket.on("error", () => this.#ended = "RST");
    socket.on("close", () => {
      if (this.#ended === "open") this.#ended = "EOF";
      this.#tell();
    });
  }

  static open(port: number, host: string = "127.0.0.1"): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host, noDelay: true });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.removeListener("error", reject);
        resolve(new RawClient(socket));
      });
    });
  }

  /** Opened with VALIDATE, and known to be served. */
  static async validated(port: number): Promise<RawClient> {
    const client = await RawClient.open(port);
    client.write(VALIDATE + PING);
    await client.said("01020304");
    client.#hex = "";
    return client;
  }

  /** Everything that came, hex. */
  get hex(): string {
    return this.#hex;
  }

  get ended(): "open" | "EOF" | "RST" {
    return this.#ended;
  }

  write(hex: string): void {
    this.socket.write(Buffer.from(hex, "hex"));
  }

  /** Waits until exactly this has come in all. */
  async said(hex: string): Promise<void> {
    await this.#until(() => this.#hex.length >= hex.length || this.#ended !== "open");
    if (this.#hex !== hex) {
      throw new Error(`the server said ${this.#hex} (${this.#ended}), expected ${hex}`);
    }
  }

  /** Waits until the other side has closed. */
  async closed(): Promise<void> {
    await this.#until(() => this.#ended !== "open");
  }

  close(): void {
    this.socket.destroy();
  }

  async #until(done: () => boolean): Promise<void> {
    if (done()) return;
    await new Promise<void>((resolve, reject) => {
      const finish = (settle: () => void): void => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        settle();
      };
      const look = (): void => {
        if (done()) finish(resolve);
      };
      const timer = setTimeout(
        () =>
          finish(() => reject(new Error(`nothing more came; so far ${this.#hex}, ${this.#ended}`))),
        PATIENCE_MS,
      );
      this.#watchers.add(look);
    });
  }

  #tell(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}

/** A server that does with each connection what the test says. */
export class ScriptedServer {
  readonly port: number;
  readonly sockets: Socket[] = [];
  readonly #close: () => Promise<void>;

  private constructor(port: number, close: () => Promise<void>) {
    this.port = port;
    this.#close = close;
  }

  static listen(serve: (socket: Socket, index: number) => void): Promise<ScriptedServer> {
    return new Promise((resolve) => {
      const sockets: Socket[] = [];
      const server = createServer({ noDelay: true }, (socket) => {
        socket.on("error", () => {});
        sockets.push(socket);
        serve(socket, sockets.length - 1);
      });
      server.listen(0, "127.0.0.1", () => {
        const scripted = new ScriptedServer((server.address() as AddressInfo).port, () => {
          for (const socket of sockets) socket.destroy();
          return new Promise((closed) => server.close(() => closed()));
        });
        resolve(Object.assign(scripted, { sockets }));
      });
    });
  }

  close(): Promise<void> {
    return this.#close();
  }
}

/** Answers the handshake, then gives what follows, byte for byte, to `say`. */
export function afterHandshake(
  socket: Socket,
  say: (bytes: Buffer, everything: Buffer) => void,
): void {
  let opening = Buffer.alloc(0);
  let heard = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    let rest = chunk;
    if (opening.length < 10) {
      opening = Buffer.concat([opening, chunk]);
      if (opening.length < 10) return;
      socket.write(opening.subarray(6, 10));
      rest = opening.subarray(10);
      opening = opening.subarray(0, 10);
      if (rest.length === 0) return;
    }
    heard = Buffer.concat([heard, rest]);
    say(rest, heard);
  });
}

/** A server of ours that remembers whom it closed, and why; closed with the test. */
export async function watched(
  t: TestContext,
  limits: Partial<StoreServerLimits> = {},
): Promise<{ server: TcpStoreServer; strangers: StoreStranger[] }> {
  const strangers: StoreStranger[] = [];
  const onStranger = (stranger: StoreStranger): unknown => strangers.push(stranger);
  const server = await TcpStoreServer.listen({ host: "127.0.0.1", limits, onStranger });
  t.after(() => server.close());
  return { server, strangers };
}

/** Waits for something that must come about soon. */
