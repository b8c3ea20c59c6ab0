import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface LeaseHolder {
  /** A guard asks whether its rank may run (on). */
  may(id: string): boolean;
  /** A guard tells how its rank ended: an exit code, above 128 a signal's. */
  ended(id: string, code: number): void;
}

/** What the guards of ranks on Ray ask, in a line of text each. Ids it does not know may not run. */
export class LeaseServer {
  readonly #server: Server;
  readonly #seen = new Map<string, number>();
  readonly host: string;

  private constructor(server: Server, host: string) {
    this.#server = server;
    this.host = host;
  }

  /**
   * @param host an address of this host that every node reaches; the server listens on it.
   * @param port 0 takes a free one.
   */
  static open(holder: LeaseHolder, host: string, port: number): Promise<LeaseServer> {
    return new Promise((done, failed) => {
      const server = createServer((request, response) => lease.#answer(holder, request, response));
      const lease = new LeaseServer(server, host);
      server.once("error", failed);
      server.listen(port, host, () => done(lease));
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** When a guard last asked (wall clock, milliseconds), or null. */
  lastSeen(id: string): number | null {
    return this.#seen.get(id) ?? null;
  }

  forget(id: string): void {
    this.#seen.delete(id);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections?.();
    await new Promise<void>((done) => this.#server.close(() => done()));
  }

  #answer(holder: LeaseHolder, request: IncomingMessage, response: ServerResponse): void {
    const [, verb, id = "", code] = (request.url ?? "").split("/");
    response.setHeader("connection", "close");
    if (verb === "may") {
      const may = holder.may(id);
      if (may) this.#seen.set(id, Date.now());
      response.end(may ? "run\n" : "stop\n");
    } else if (verb === "ended" && /^\d{1,3}$/.test(code ?? "")) {
      response.end("noted\n");
      holder.ended(id, Number(code));
    } else {
      response.statusCode = 404;
      response.end("unknown\n");
    }
  }
}
