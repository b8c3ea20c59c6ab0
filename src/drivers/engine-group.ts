/**
 * How the ranks of a group come together without a GPU: over a TCPStore that rank 0 hosts, where real engines have a collective.
 * Like a collective it completes when every rank is there, and not before.
 */
import { TcpStoreClient, TcpStoreServer } from "./tcpstore/mod.ts";

export interface GroupOptions {
  readonly rank: number;
  readonly size: number;
  readonly host: string;
  readonly port: number;
}

export class EngineGroup {
  readonly size: number;
  readonly #server: TcpStoreServer | undefined;
  readonly #options: GroupOptions;
  /** One connection for each thing that is waited for at the same time. */
  readonly #clients = new Map<string, Promise<TcpStoreClient>>();
  readonly #counts = new Map<string, number>();
  #closed = false;

  private constructor(options: GroupOptions, server: TcpStoreServer | undefined) {
    this.#options = options;
    this.size = options.size;
    this.#server = server;
  }

  /** Rank 0 hosts, everybody else dials for as long as it takes. A group of one needs nobody. */
  static async form(options: GroupOptions): Promise<EngineGroup> {
    const { rank, size, host, port } = options;
    const hosts = rank === 0 && size > 1;
    const server = hosts ? await TcpStoreServer.listen({ host, port }) : undefined;
    return new EngineGroup(options, server);
  }

  /**
   * Resolves when all ranks have come to the same occasion: whether any of them is busy. The n-th call for `what` of one rank meets
   * the n-th call of the others. Rejects when the group is gone.
   */
  async meet(what: string, busy: boolean): Promise<boolean> {
    if (this.size === 1) return busy;
    const n = (this.#counts.get(what) ?? 0) + 1;
    this.#counts.set(what, n);
    const key = `group/${what}/${n}`;
    const client = await this.#client(what);
    if (busy) await client.add(`${key}/busy`, 1);
    const arrived = await client.add(`${key}/arrived`, 1);
    if (arrived === BigInt(this.size)) await client.set(`${key}/met`, "1");
    await client.wait([`${key}/met`], { timeoutMs: FOREVER });
    return await client.check([`${key}/busy`]);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const client of this.#clients.values()) void client.then((c) => c.close(), () => {});
    await this.#server?.close();
  }

  #client(what: string): Promise<TcpStoreClient> {
    let client = this.#clients.get(what);
    if (client === undefined) {
      client = this.#dial();
      this.#clients.set(what, client);
    }
    return client;
  }

  async #dial(): Promise<TcpStoreClient> {
    const { host, port } = this.#options;
    const client = await TcpStoreClient.connect({ host, port, timeoutMs: FOREVER });
    if (this.#closed) client.close();
    return client;
  }
}

const FOREVER = 24 * 3_600_000;
