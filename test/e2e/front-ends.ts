/** A cluster behind an external load balancer as its operator starts it: one `muster serve` for each rank, each with its own journal and keeper. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { OperationRecord, ScalingStatus } from "../../src/view/scaling.ts";
import type { ClusterStatus } from "../../src/view/status.ts";
import { Muster } from "./support.ts";

export interface FrontEndsOptions {
  readonly maxSize?: number;
  /** More flags of every `muster serve`. */
  readonly flags?: readonly string[];
  readonly engineArgs?: string;
}

export type Served = ClusterStatus & { readonly scaling: ScalingStatus };

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

export class FrontEnds {
  readonly #directory: string;
  readonly #rpcPort: number;
  readonly #options: FrontEndsOptions;
  readonly #servers = new Map<number, { server: Muster; http: number; size: number }>();

  private constructor(directory: string, rpcPort: number, options: FrontEndsOptions) {
    this.#directory = directory;
    this.#rpcPort = rpcPort;
    this.#options = options;
  }

  static async start(
    t: TestContext,
    size: number,
    options: FrontEndsOptions = {},
  ): Promise<FrontEnds> {
    const directory = mkdtempSync(join(tmpdir(), "mf-"));
    const cluster = new FrontEnds(directory, await freePort(), options);
    t.after(async () => {
      await cluster.stop();
      rmSync(directory, { recursive: true, force: true });
    });
    await Promise.all(Array.from({ length: size }, (_, rank) => cluster.serve(rank, size)));
    await Promise.all(Array.from({ length: size }, (_, rank) => cluster.formed(rank)));
    return cluster;
  }

  /** Starts the server of a rank, also again after it was killed. `joins`: it was told to join a group that scales up. */
  async serve(rank: number, size: number, joins = false, more: string[] = []): Promise<Muster> {
    const known = this.#servers.get(rank);
    const http = known?.http ?? await freePort();
    const { maxSize = 4, flags = [], engineArgs = "--boot-ms 0 --load-ms 50" } = this.#options;
    const server = new Muster([
      "serve",
      ...["--launch", "reference", "--engine-args", engineArgs],
      ...["--data-parallel-size", String(size), "--data-parallel-rank", String(rank)],
      ...["--data-parallel-address", "127.0.0.1", "--data-parallel-rpc-port"],
      ...[String(this.#rpcPort), "--allow-loopback", "--moe", "--max-size", String(maxSize)],
      ...["--http", String(http), "--journal", join(this.#directory, `r${rank}`)],
      ...["--lease", "60s", "--durability", "os"],
      ...(joins ? ["--scale-up-launch"] : []),
      ...flags,
      ...more,
    ]);
    this.#servers.set(rank, { server, http, size });
    await server.said(/the API is at/);
    return server;
  }

  formed(rank: number): Promise<RegExpExecArray> {
    return this.#of(rank).server.said(/cluster formed/);
  }

  /** SIGKILL to the coordinator of a rank; its engine and its keeper live on. */
  async kill(rank: number): Promise<void> {
    const { server } = this.#of(rank);
    server.kill();
    await server.ended;
  }

  /** The same command once more. */
  again(rank: number, joins = false): Promise<Muster> {
    return this.serve(rank, this.#of(rank).size, joins);
  }

  /** Stops every server, and starts those of a group anew. */
  async anew(size: number): Promise<void> {
    await this.stop();
    const ranks = Array.from({ length: size }, (_, rank) => rank);
    await Promise.all(ranks.map((rank) => this.serve(rank, size, false, ["--anew"])));
    await Promise.all(ranks.map((rank) => this.formed(rank)));
  }

  url(rank: number): string {
    return `http://127.0.0.1:${this.#of(rank).http}`;
  }

  /** As `--ranks` wants them. */
  urls(size: number): string {
    return Array.from({ length: size }, (_, rank) => this.url(rank)).join(",");
  }

  server(rank: number): Muster {
    return this.#of(rank).server;
  }

  async status(rank: number): Promise<Served> {
    return await (await fetch(`${this.url(rank)}/status`)).json() as Served;
  }

  /**
   * What no machine of a rank took. That its proposal is answered after it has seen what was decided is no fault: the store says both, on two
   * connections.
   */
  async marks(rank: number): Promise<Served["notes"]> {
    return (await this.status(rank)).notes.filter((n) =>
      n.kind !== "late-outcome" || n.what !== "decided"
    );
  }

  async operation(rank: number, id: string): Promise<OperationRecord | undefined> {
    const answer = await fetch(`${this.url(rank)}/operations/${id}`);
    return answer.ok ? await answer.json() as OperationRecord : undefined;
  }

  async stop(): Promise<void> {
    for (const { server } of this.#servers.values()) server.kill("SIGTERM");
    await Promise.all([...this.#servers.values()].map(({ server }) => server.ended));
  }

  #of(rank: number): { server: Muster; http: number; size: number } {
    const found = this.#servers.get(rank);
    if (found === undefined) throw new Error(`rank ${rank} has no server here`);
    return found;
  }
}
